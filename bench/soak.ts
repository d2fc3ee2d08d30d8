import { parseArgs } from 'node:util';
import { startChild } from './child.ts';
import { type SoakOptions, soakHttp } from './soak-http.ts';
import { soakStdio } from './soak-stdio.ts';

/**
 * Whether the server comes to rest: long mixed traffic over both transports against the local library, and what of it
 * stayed in memory. `npm run soak -- --seconds 600 --calls 5000`
 */
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    calls: { type: 'string', default: '5000' },
  },
});
const callers = 32;

const say = (line: string) => process.stdout.write(`${line}\n`);

const library = await startChild<Pick<SoakOptions, 'baseUrl' | 'callers'>>('soak-library.ts', String(callers));
say(`node ${process.version}`);
const results = [
  await soakHttp({ ...library.ready, say }, Number(values.seconds)),
  await soakStdio({ ...library.ready, say }, Number(values.calls)),
];
library.process.kill();
say(results.every(Boolean) ? 'at rest' : 'NOT AT REST, or answers were wrong');
process.exitCode = results.every(Boolean) ? 0 : 1;
