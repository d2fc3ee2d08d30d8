import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
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

const library = fork(fileURLToPath(new URL('soak-library.ts', import.meta.url)), [String(callers)], {
  execArgv: ['--import', 'tsx'],
});
const service = await new Promise<Pick<SoakOptions, 'baseUrl' | 'callers'>>((resolve, reject) => {
  library.once('message', (told) => resolve(told as SoakOptions));
  library.once('exit', (code) => reject(new Error(`The library ended with ${code}.`)));
});
say(`node ${process.version}`);
const results = [
  await soakHttp({ ...service, say }, Number(values.seconds)),
  await soakStdio({ ...service, say }, Number(values.calls)),
];
library.kill();
say(results.every(Boolean) ? 'at rest' : 'NOT AT REST, or answers were wrong');
process.exitCode = results.every(Boolean) ? 0 : 1;
