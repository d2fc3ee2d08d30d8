import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, openApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { createLogger } from '../../src/logging/log.ts';
import type { ToolResult } from '../../src/mcp/call-tool.ts';
import type { Catalog } from '../../src/mcp/catalog.ts';
import { createHttpApp } from '../../src/transports/http/app.ts';
import { type ListeningServer, listen } from '../../src/transports/http/server.ts';
import fixtures from './fixtures.json' with { type: 'json' };

const resolvePath = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const runner = resolvePath('../../node_modules/@modelcontextprotocol/conformance/dist/index.js');

let app: App;
let listener: ListeningServer;
let results: string;
beforeAll(async () => {
  const log = createLogger('silent', () => {});
  app = await openApp({
    config: { ...readConfig({}), demo: true },
    log,
    now: Date.now,
    monotonicNow: Date.now,
    random: Math.random,
  });
  const http = createHttpApp({
    catalog: withFixtures(app.catalog),
    log,
    monotonicNow: Date.now,
    onCall: () => {},
    allowedNames: { allowedOrigins: ['localhost'] },
    authentication: { demo: app.credentials },
    limits: { maxRunningCalls: 16, maxRunningCallsPerKey: 16, maxWaitingCalls: 64 },
  });
  listener = await listen(http.fetch, { host: '127.0.0.1', port: 0 });
  results = await mkdtemp(join(tmpdir(), 'conformance-'));
});
afterAll(async () => {
  await listener.close(0);
  await app.close();
  await rm(results, { recursive: true });
});

// The runner also fails if a scenario passes that is listed as a known failure.
test.each(['2025-11-25', '2026-07-28'])(
  'the HTTP endpoint passes the MCP conformance suite for protocol revision %s, except for known failures',
  { timeout: 120_000 },
  async (revision) => {
    const url = listener.url.replace('127.0.0.1', 'localhost');
    const expectedFailures = resolvePath(
      revision === '2026-07-28' ? 'expected-failures.2026.yml' : 'expected-failures.2025.yml',
    );
    const { code, output } = await conformance([
      ...['server', '--url', `${url}/mcp`, '--suite', 'all', '--spec-version', revision],
      ...['--expected-failures', expectedFailures, '--output-dir', results],
    ]);
    expect(code, output).toBe(0);
  },
);

function conformance(args: string[]): Promise<{ code: number; output: string }> {
  const nodeArgs = ['--import', resolvePath('glob-sync.mjs'), runner, ...args];
  return new Promise((resolve) => {
    execFile(process.execPath, nodeArgs, { cwd: tmpdir(), maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? 1) : 0, output: (stdout + stderr).slice(-4000) }),
    );
  });
}

/** The results of the tools that the conformance scenarios call, by tool name. */
const contents: Record<string, object[]> = fixtures.contents;

const prompts: Record<string, (values: Record<string, string>) => object> = {
  test_simple_prompt: () => ({ type: 'text', text: 'This is a simple prompt for testing.' }),
  test_prompt_with_arguments: ({ arg1, arg2 }) => ({
    type: 'text',
    text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  }),
  test_prompt_with_embedded_resource: ({ resourceUri: uri }) => ({
    type: 'resource',
    resource: { uri, mimeType: 'text/plain', text: 'A resource.' },
  }),
  test_prompt_with_image: () => fixtures.contents.test_image_content[0] ?? {},
};

function withFixtures(catalog: Catalog): Catalog {
  const annotations = {
    title: 'Fixture',
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: false,
  };
  const listed = { title: 'Fixture', description: 'For conformance tests', annotations };
  const empty = { type: 'object' as const, properties: {} };
  const plain = Object.keys(contents).map((name) => ({ ...listed, name, inputSchema: empty }));
  return {
    ...catalog,
    getToolList: async () => [
      ...(await catalog.getToolList({})),
      ...plain,
      { ...listed, name: 'json_schema_2020_12_tool', inputSchema: fixtures.schema as typeof empty },
    ],
    callTool: async (call) => {
      const content = contents[call.name];
      return content ? ({ content } as ToolResult) : catalog.callTool(call);
    },
    getPrompt: (request, invalid) => {
      const write = prompts[request.name];
      if (!write) return catalog.getPrompt(request, invalid);
      const content = write(request.arguments ?? {});
      return {
        description: 'A fixture',
        messages: [{ role: 'user', content: content as { type: 'text'; text: string } }],
      };
    },
  };
}
