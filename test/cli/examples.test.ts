import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { commandLines } from '../../src/cli/parse.ts';
import { command } from '../support/process.ts';
import { runLine } from '../support/run-line.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const run = (line: string) => runLine(line, { cwd: folder, programs: folder });

/** One line of each command is run; `parse.test.ts` reads them all, and `test/replicas` runs those for a shared state. */
const lines = new Set(
  Object.values(commandLines).flatMap(({ examples: [first = ''] }) => (/revoke|state/.test(first) ? [] : [first])),
);

// The examples are written for the shells of Unix.
describe.skipIf(process.platform === 'win32')('the examples in help', () => {
  beforeAll(() => {
    const { command: node, args } = command();
    writeFileSync(join(folder, 'ad-library-mcp'), `#!/bin/sh\nexec "${node}" "${args[0]}" "$@"\n`);
    chmodSync(join(folder, 'ad-library-mcp'), 0o755);
    writeFileSync(join(folder, 'ads.jsonl'), '{"id":"11111111-1111-4111-8111-111111111111"}\n');
    writeFileSync(join(folder, 'pages.jsonl'), '{"pageId":"p","pageName":"P"}\n');
  });

  test.each([...lines])('%s', async (line) => {
    // Any port, as the usual ones may be taken on this machine; a flag that comes later counts.
    const serves = /\b(http|library serve)\b(?!:)/.test(line);
    const { code, stderr } = await run(serves ? `exec ${line} --port 0` : line.replace('…', 'x'));
    const complaints = stderr.split('\n').filter((text) => /must|fail|unknown|error/.test(text));
    expect(complaints.filter((text) => !text.includes('until you set'))).toEqual([]);
    expect(code).toBe(0);
  });

  test('ad-library-mcp library key revoke …', async () => {
    const { stdout: key } = await run('ad-library-mcp library key create');
    const { code, stdout } = await run(`ad-library-mcp library key revoke ${key.slice(0, 17)}`);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `revoked ${key.slice(0, 17)}…\n` });
  });
});
