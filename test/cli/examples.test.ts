import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { examples } from '../../src/cli/examples.ts';
import { command } from '../support/process.ts';

const folder = mkdtempSync(join(tmpdir(), 'examples-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a line in a shell that has the command in its path. Ends a server once it is ready. */
function runLine(line: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const env = { PATH: `${folder}${delimiter}${process.env.PATH}` };
  const child = spawn('sh', ['-c', line], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (text) => {
    stdout += text;
  });
  child.stderr.on('data', (text) => {
    stderr += text;
    if (/(listening|library) on http/.test(stderr) && child.pid) process.kill(-child.pid, 'SIGTERM');
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
}

// The examples are written for the shells of Unix.
describe.skipIf(process.platform === 'win32')('the examples in help', () => {
  beforeAll(() => {
    const { command: node, args } = command();
    writeFileSync(join(folder, 'ad-library-mcp'), `#!/bin/sh\nexec "${node}" "${args[0]}" "$@"\n`);
    chmodSync(join(folder, 'ad-library-mcp'), 0o755);
    writeFileSync(join(folder, 'ads.jsonl'), '{"id":"11111111-1111-4111-8111-111111111111"}\n');
    writeFileSync(join(folder, 'pages.jsonl'), '{"pageId":"p","pageName":"P"}\n');
  });

  const lines = new Set(Object.values(examples).flat());
  lines.delete('ad-library-mcp library key revoke svc_live_1a2b3c4d');

  test.each([...lines])('%s', async (line) => {
    // Any port, as the usual ones may be taken on this machine; a flag that comes later counts.
    const serves = /\b(http|library serve)\b(?!:)/.test(line);
    const { code, stderr } = await runLine(serves ? `exec ${line} --port 0` : line.replace('…', 'x'));
    const complaints = stderr.split('\n').filter((text) => /must|fail|unknown|error/.test(text));
    expect(complaints.filter((text) => !text.includes('until you set'))).toEqual([]);
    expect(code).toBe(0);
  });

  test('ad-library-mcp library key revoke …', async () => {
    const { stdout: key } = await runLine('ad-library-mcp library key create');
    const { code, stdout } = await runLine(`ad-library-mcp library key revoke ${key.slice(0, 17)}`);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `revoked ${key.slice(0, 17)}…\n` });
  });
});
