import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { strFromU8, unzipSync } from 'fflate';
import { expect, test } from 'vitest';
import { packBundle } from '../../scripts/bundle.ts';
import { allTools } from '../../src/board/board.ts';
import { connectCommand } from '../support/clients.ts';
import { makeDemoCalls } from '../support/demo-calls.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const { fileName, bytes } = packBundle();
const files = unzipSync(bytes);
const fields: Record<string, { title: string }> = JSON.parse(
  strFromU8(files['manifest.json'] as Uint8Array),
).user_config;
const folder = join(createTemporaryFolder(), 'with a space');
for (const [path, content] of Object.entries(files)) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
}

/** Starts the server like a desktop host, with the values that the user entered. Missing values stay placeholders. */
function startAsHost(entered: Record<string, string>) {
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
  const fillIn = (text: string) =>
    text
      .replaceAll('${__dirname}', folder)
      .replace(/\$\{user_config\.(\w+)\}/g, (placeholder, key: string) => entered[key] ?? placeholder);
  const { args, env } = manifest.server.mcp_config;
  const settings = Object.entries<string>(env).map(([variable, value]) => [variable, fillIn(value)]);
  return connectCommand('v1', { command: process.execPath, args: args.map(fillIn), env: Object.fromEntries(settings) });
}

test('the desktop bundle is small and complete, and two builds of the bundle are identical', () => {
  expect(fileName).toMatch(/^ad-library-mcp-\d+\.\d+\.\d+\.mcpb$/);
  expect(bytes.length).toBeLessThan(6 * 1024 * 1024);
  expect(Object.keys(files)).toEqual(
    expect.arrayContaining([
      ...'manifest.json package.json LICENSE icon.png conversation.jpg dist/main.js dist/sbom.cdx.json'.split(' '),
      expect.stringMatching(/^dist\/build-\w+\/pictures\/mossgate-1-offer\.webp$/),
    ]),
  );
  expect(
    Object.keys(files).filter((file) => /node_modules|\.node$|\.map$|\/(?:redis|postgres)-\w+\.js$/.test(file)),
  ).toEqual([]);
  expect(Buffer.from(packBundle().bytes).equals(bytes)).toBe(true);
});

test('the desktop bundle contains the licenses of all packages that it includes', () => {
  const licences = strFromU8(files['dist/THIRD-PARTY-LICENSES'] as Uint8Array);
  for (const name of ['@fontsource/inter', '@jsquash/webp', 'opentype.js'])
    expect(`\n${licences}`).toContain(`\n${name} `);
  for (const text of ['SIL OPEN FONT LICENSE', 'work of the Independent JPEG']) expect(licences).toContain(text);
});

test('the server in the unpacked desktop bundle runs every tool on demo data', async () => {
  const client = await startAsHost({ demo: 'true', credit_budget: '50' });
  expect(await client.listTools()).toHaveLength(allTools.length);
  for (const { name, result } of await makeDemoCalls(client.call)) {
    expect([name, result.isError]).toEqual([name, false]);
    expect(result.text).toContain('DEMO DATA');
  }
  expect((await client.call('get_credits')).text).toContain('budget 50');
  await client.close();
});

test('the server in the unpacked desktop bundle starts without settings and names the missing form fields', async () => {
  const client = await startAsHost({ demo: 'false', read_only: 'true' });
  expect(await client.listTools()).toHaveLength(allTools.length - 1);
  const { text, error } = await client.call('search_ads');
  expect(error).toMatchObject({ kind: 'no_api_key' });
  for (const field of ['api_key', 'base_url', 'demo']) expect(text).toContain(`"${fields[field]?.title}"`);
  await client.close();
});

test.each(['http', 'call whoami', 'library key list'])(
  'the command %j in the unpacked desktop bundle says that the bundle contains only the server over stdio',
  async (command) => {
    const mainFile = join(folder, 'dist', 'main.js');
    const run = promisify(execFile)(process.execPath, [mainFile, ...command.split(' ')], {
      env: { AD_LIBRARY_DEMO: 'true' },
    });
    const { code, stderr } = await run.then(() => ({ code: 0, stderr: '' })).catch((error) => error);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^ad-library-mcp: [^\n]* contains only the server over stdio\. [^\n]*\n$/);
  },
);

test('building the desktop bundle fails and names every privacy policy URL that is invalid', async () => {
  const script = fileURLToPath(new URL('../../scripts/write-bundle.ts', import.meta.url));
  const invalidUrls = ['not-a-url', 'http://example.com/privacy', 'javascript:alert(1)'];
  const packed = promisify(execFile)(process.execPath, [
    '--import',
    'tsx',
    script,
    'https://example.com/ok',
    ...invalidUrls,
  ]);
  const { code, stderr } = await packed.then(() => ({ code: 0, stderr: '' })).catch((error) => error);
  expect(code).toBe(2);
  const lines = stderr.trim().split('\n');
  expect(lines).toEqual(invalidUrls.map((policy) => expect.stringContaining(JSON.stringify(policy))));
});
