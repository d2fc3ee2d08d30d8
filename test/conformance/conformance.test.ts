import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, openApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { createLog } from '../../src/log/log.ts';
import { createHttpApp } from '../../src/serve/http/app.ts';
import { type Listener, listen } from '../../src/serve/http/server.ts';
import { withFixtures } from './fixtures.ts';

const here = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const runner = here('../../node_modules/@modelcontextprotocol/conformance/dist/index.js');

let app: App;
let listener: Listener;
let results: string;
beforeAll(async () => {
  const log = createLog('silent', () => {});
  app = await openApp({
    config: { ...readConfig({}), demo: true },
    log,
    now: Date.now,
    elapsed: Date.now,
    random: Math.random,
  });
  const http = createHttpApp({
    catalog: withFixtures(app.catalog),
    log,
    now: Date.now,
    onCall: () => {},
    allowed: { allowedOrigins: ['localhost'] },
    callers: { demo: app.credentials },
    limits: { atOnce: 16, perKey: 16, waiting: 64, waitingPerKey: 64 },
  });
  listener = await listen(http.fetch, { host: '127.0.0.1', port: 0 });
  results = await mkdtemp(join(tmpdir(), 'conformance-'));
});
afterAll(async () => {
  await listener.close(0);
  await app.close();
  await rm(results, { recursive: true });
});

/** Every scenario of the official suite; the runner fails on one that fails unexpectedly and on one that has ceased to. */
test.each(['2025-06-18', '2025-11-25', '2026-07-28'])(
  'the endpoint conforms to %s',
  { timeout: 120_000 },
  async (revision) => {
    const url = listener.address.replace('127.0.0.1', 'localhost');
    const known = here(revision === '2026-07-28' ? 'expected-failures.2026.yml' : 'expected-failures.2025.yml');
    const { code, output } = await conformance([
      ...['server', '--url', `${url}/mcp`, '--suite', 'all', '--spec-version', revision],
      ...['--expected-failures', known, '--output-dir', results],
    ]);
    expect(code, output).toBe(0);
  },
);

function conformance(args: string[]): Promise<{ code: number; output: string }> {
  const whole = ['--import', here('glob-sync.mjs'), runner, ...args];
  return new Promise((resolve) => {
    execFile(process.execPath, whole, { cwd: tmpdir(), maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? 1) : 0, output: (stdout + stderr).slice(-4000) }),
    );
  });
}
