import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { createToolCall } from '../support/http.ts';
import { runCommand } from '../support/process.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { envelope, initialize, request } from '../transports/stdio/session.ts';

const folder = createTemporaryFolder();

/** Runs a session over stdio and returns the names of the built files that the process loaded. */
async function listLoadedFiles(messages: object[], settings: Record<string, string>): Promise<string[]> {
  const coverageFolder = mkdtempSync(join(folder, 'coverage-'));
  const input = messages.map((message) => JSON.stringify(message)).join('\n');
  const { stdout } = await runCommand([], { env: { ...settings, NODE_V8_COVERAGE: coverageFolder }, input });
  expect(stdout.trim().split('\n')).toHaveLength(messages.length);
  return readdirSync(coverageFolder).flatMap((file) => {
    const { result } = JSON.parse(readFileSync(join(coverageFolder, file), 'utf8')) as { result: { url: string }[] };
    return result.map(({ url }) => basename(url));
  });
}

const demo = { AD_LIBRARY_DEMO: 'true' };
/** A base URL on this machine, so that startup requests the filters of a library. Nothing listens there. */
const library = { AD_LIBRARY_API_KEY: 'svc_live_one', AD_LIBRARY_BASE_URL: 'http://127.0.0.1:9' };
const listSession = [initialize('2025-11-25'), request(2, 'tools/list')];

test.each([
  ['with demo data', listSession, demo],
  ['with a library on this machine', listSession, library],
  ['in protocol revision 2026-07-28', [request(1, 'server/discover', { _meta: envelope })], demo],
])(
  'an MCP session that only lists the tools does not load the code for tool calls (session: %s)',
  async (_, messages, settings) => {
    const loadedFiles = await listLoadedFiles(messages, settings);
    expect(loadedFiles).toContain('start.js');
    expect(loadedFiles).not.toContain('call-names.js');
    expect(loadedFiles).not.toContain('demo-names.js');
  },
);

test('an MCP session that calls a tool with demo data loads the code for tool calls and for demo data', async () => {
  const loadedFiles = await listLoadedFiles([initialize('2025-11-25'), createToolCall('search_ads')], demo);
  expect(loadedFiles).toEqual(expect.arrayContaining(['start.js', 'call-names.js', 'demo-names.js']));
  // Most of the code belongs to research tools, which this session does not use.
  expect(loadedFiles).not.toContain('research-names.js');
});
