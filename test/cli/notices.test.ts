import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { run, serveHttp, start } from '../support/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = realpathSync(temporaryFolder());

describe('a port that is in use', () => {
  test.each([[['http', '--demo']], [['library', 'serve', '--demo']]])('stops %j with one sentence', async (words) => {
    const { port, close } = await serveHttp(['--demo']);
    onTestFinished(async () => void (await close()));
    const { code, stdout, stderr } = await run([...words, '--port', String(port)]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toBe(`ad-library-mcp: port ${port} of 127.0.0.1 is in use: choose another one with --port\n`);
  });
});

describe('variables that look like settings', () => {
  const warnings = async (env: Record<string, string>) => (await run(['library', 'filters'], { env })).stderr;

  test('are named with the setting that may have been meant, and their values are not shown', async () => {
    const stderr = await warnings({
      AD_LIBRARY_CREDITS_BUDGET: 'svc_live_CANARY',
      AD_LIBRARY_KEY: 'svc_live_CANARY',
      AD_LIBRARY_XQZW: '1',
    });
    expect(stderr.split('\n')).toEqual([
      'ad-library-mcp: AD_LIBRARY_CREDITS_BUDGET is not a setting and has no effect; did you mean AD_LIBRARY_CREDIT_BUDGET?',
      'ad-library-mcp: AD_LIBRARY_KEY is not a setting and has no effect; did you mean AD_LIBRARY_API_KEY?',
      'ad-library-mcp: AD_LIBRARY_XQZW is not a setting and has no effect',
      '',
    ]);
  });

  test('are counted where there are many, and shown as plain text', async () => {
    const names = Array.from({ length: 40 }, (_, at) => `AD_LIBRARY_\u001b[2J${at}${'x'.repeat(10_000)}`);
    const stderr = await warnings(Object.fromEntries(names.map((name) => [name, ''])));
    expect(stderr.length).toBeLessThan(1000);
    expect(stderr).not.toMatch(/[^\n\P{Cc}]/u);
    expect(stderr).toContain('ad-library-mcp: 35 more variables that begin with AD_LIBRARY_ are not settings\n');
  });

  test('are not those of other programs, nor settings that are empty', async () => {
    expect(await warnings({ AD_LIBRARIES: '1', MY_AD_LIBRARY_KEY: '1', AD_LIBRARY_TOOLS: '' })).toBe('');
  });
});

test('a library that is served says which file that is, and what it holds', async () => {
  const database = join(folder, 'ads.db');
  const served = async () => {
    const serving = start(['library', 'serve', '--port', '0', '--database', database]);
    await serving.says(/^ad-library-mcp: library on http:\/\/127\.0\.0\.1:\d+$/m);
    serving.child.kill();
    return (await serving.ended).stderr.split('\n')[0];
  };
  expect(await served()).toBe(`ad-library-mcp: ${database} is empty; "library import" loads ads and pages into it`);
  const input =
    '{"id":"11111111-1111-4111-8111-111111111111"}\n{"pageId":"p","pageName":"P"}\n{"pageId":"q","pageName":"Q"}\n';
  await run(['library', 'import', '-', '--database', database], { input });
  expect(await served()).toBe(`ad-library-mcp: ${database} holds 1 ad and 2 pages`);
});

test.each([
  [['http'], 'listening on http://%:\\d+/mcp'],
  [['library', 'serve'], 'library on http://%:\\d+'],
])('%j says on which host it listens, as it was asked to', async (words, line) => {
  for (const [host, named] of [
    ['0.0.0.0', '0.0.0.0'],
    ['127.0.0.1', '127.0.0.1'],
    ['::1', '[::1]'],
  ] as const) {
    const serving = start([...words, '--demo', '--allowed-hosts', 'a.example', '--host', host, '--port', '0']);
    await serving.says(
      new RegExp(`^ad-library-mcp: ${line.replace('%', () => named.replace(/[[\].]/g, '\\$&'))}$`, 'm'),
    );
    serving.child.kill();
    await serving.ended;
  }
});
