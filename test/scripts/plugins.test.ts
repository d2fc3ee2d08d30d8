import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { strFromU8, unzipSync } from 'fflate';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { zipFiles } from '../../scripts/bundle.ts';
import { packPlugins } from '../../scripts/plugins.ts';
import { allTools } from '../../src/board/board.ts';
import { connectCommand, type TestClient } from '../support/clients.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const temporary = createTemporaryFolder();
const plugins = new Map(
  packPlugins().map(({ folderName, files }) => {
    // Use a folder outside the repository, so that the plugin cannot load packages from its node_modules.
    const root = join(temporary, 'with a space', folderName);
    const archive = zipFiles(files);
    for (const [path, content] of Object.entries(unzipSync(archive))) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), content);
    }
    return [
      folderName,
      {
        root,
        files,
        archiveBytes: archive.length,
        readJson: (path: string) => JSON.parse(strFromU8(files[path] ?? new Uint8Array())),
      },
    ];
  }),
);

function findPlugin(folder: string) {
  const plugin = plugins.get(folder);
  if (!plugin) throw new Error(`no plugin in ${folder}`);
  return plugin;
}

interface LaunchEntry {
  command: string;
  args: string[];
  env?: Record<string, string>;
}

/** Starts the server of a plugin like a host: replaces only placeholders that have a value. */
function startPlugin(
  { command, args, env = {} }: LaunchEntry,
  cwd: string,
  placeholders: Record<string, string>,
): Promise<TestClient> {
  const fillIn = (text: string) => text.replace(/\$\{([\w.]+)\}/g, (all, key: string) => placeholders[key] ?? all);
  const values = Object.entries(env).map(([variable, value]) => [variable, fillIn(value)]);
  return connectCommand('v1', { command, args: args.map(fillIn), env: Object.fromEntries(values), cwd });
}

// The rules of https://github.com/agentplugins/agent-plugins-spec/blob/main/spec/1.0.0.md, sections 5 and 7.2.1, and of
// the two schemas that its `$schema` fields name. Both schemas are closed: a client reports every other field.
const agentPluginSchema = z.strictObject({
  $schema: z.literal('https://agent-plugins.org/schemas/1.0.0/plugin.schema.json'),
  name: z
    .string()
    .max(64)
    .regex(/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/)
    .refine((name) => !/--|\.\./.test(name)),
  version: z.string().optional(),
  description: z.string().optional(),
  author: z
    .strictObject({ name: z.string().optional(), email: z.string().optional(), url: z.string().optional() })
    .optional(),
  homepage: z.string().optional(),
  repository: z.string().optional(),
  license: z.string().optional(),
  keywords: z.array(z.string()).optional(),
  extensions: z.record(z.string(), z.object({})).optional(),
});
const agentServersSchema = z.strictObject({
  $schema: z.literal('https://agent-plugins.org/schemas/1.0.0/mcp.schema.json'),
  mcpServers: z.record(
    z.string(),
    z.strictObject({
      type: z.literal('stdio'),
      // A bare name or a path in the plugin. A client does not start shell commands and absolute paths.
      command: z.string().regex(/^(?:\.\/.+|[^/\\\s]+)$/),
      args: z.array(z.string()).optional(),
      env: z.record(z.string().regex(/^(?!PLUGIN_(?:ROOT|DATA)$)/), z.string()).optional(),
      cwd: z
        .string()
        .regex(/^(?:\.\/|\$\{PLUGIN_(?:ROOT|DATA)\}(?:\/|$))/)
        .optional(),
    }),
  ),
});

// The fields of https://json.schemastore.org/claude-code-plugin-manifest.json that the plugin uses. That schema allows
// other fields, but `claude plugin validate --strict` does not.
const claudePluginSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9-]+$/),
  version: z.string(),
  description: z.string(),
  author: z.strictObject({ name: z.string().min(1) }),
  homepage: z.url().optional(),
  repository: z.string().optional(),
  license: z.string(),
  keywords: z.array(z.string()),
  mcpServers: z.record(
    z.string(),
    z.strictObject({ command: z.string().min(1), args: z.array(z.string()), env: z.record(z.string(), z.string()) }),
  ),
  userConfig: z.record(
    z.string().regex(/^[A-Za-z_]\w*$/),
    z.strictObject({
      type: z.enum(['string', 'number', 'boolean', 'directory', 'file']),
      title: z.string(),
      description: z.string(),
      required: z.boolean().optional(),
      default: z.union([z.string(), z.number(), z.boolean()]).optional(),
      sensitive: z.boolean().optional(),
      min: z.number().optional(),
      max: z.number().optional(),
    }),
  ),
});
const claudeMarketplaceSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9-]+$/),
  description: z.string(),
  owner: z.strictObject({ name: z.string().min(1) }),
  plugins: z.array(z.strictObject({ name: z.string(), source: z.string().regex(/^\.\//), description: z.string() })),
});

// The fields of https://github.com/google-gemini/gemini-cli/blob/main/docs/extensions/reference.md.
const geminiExtensionSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9-]+$/),
  version: z.string(),
  description: z.string(),
  mcpServers: z.record(z.string(), z.strictObject({ command: z.string(), args: z.array(z.string()) })),
  settings: z.array(
    z.strictObject({
      name: z.string(),
      description: z.string(),
      envVar: z.string().regex(/^AD_LIBRARY_[A-Z_]+$/),
      sensitive: z.boolean().optional(),
    }),
  ),
});

test('each plugin is small and contains the server, the skill and a README file', () => {
  expect([...plugins.keys()]).toEqual(['agent-plugin', 'claude-plugin', 'gemini-extension']);
  for (const { files, archiveBytes } of plugins.values()) {
    expect(Object.keys(files)).toEqual(
      expect.arrayContaining([
        ...'README.md LICENSE package.json dist/main.js dist/THIRD-PARTY-LICENSES'.split(' '),
        ...'skills/ad-research/SKILL.md skills/ad-research/vocabulary.md'.split(' '),
      ]),
    );
    expect(archiveBytes).toBeLessThan(6 * 1024 * 1024);
  }
});

test('the skill in each plugin conforms to the Agent Skills specification', () => {
  // The rules of https://agentskills.io/specification. A host skips a skill whose name differs from its folder.
  for (const { files } of plugins.values()) {
    const skill = strFromU8(files['skills/ad-research/SKILL.md'] as Uint8Array);
    const [, frontmatter = ''] = /^---\n(.*?)\n---\n/s.exec(skill) ?? [];
    const fields = frontmatter.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2));
    const { name, description, ...otherFields } = Object.fromEntries(fields);
    expect(name).toBe('ad-research');
    expect(description.length).toBeGreaterThan(0);
    expect(description.length).toBeLessThanOrEqual(1024);
    for (const field of Object.keys(otherFields))
      expect(['license', 'compatibility', 'metadata', 'allowed-tools']).toContain(field);
  }
});

test('the Agent Plugin contains no API key and starts with demo data', async () => {
  const { root, readJson } = findPlugin('agent-plugin');
  agentPluginSchema.parse(readJson('plugin.json'));
  const { mcpServers } = agentServersSchema.parse(readJson('mcp.json'));
  claudeMarketplaceSchema.parse(readJson('.claude-plugin/marketplace.json'));
  const client = await startPlugin(mcpServers['ad-library'] as LaunchEntry, root, { PLUGIN_ROOT: root });
  expect(await client.listTools()).toHaveLength(allTools.length);
  expect((await client.call('count_ads')).text).toContain('DEMO DATA');
  await client.close();
});

test('the Claude plugin asks for the API key as a secret', async () => {
  const { root, readJson } = findPlugin('claude-plugin');
  const { mcpServers, userConfig } = claudePluginSchema.parse(readJson('.claude-plugin/plugin.json'));
  const { plugins: offered } = claudeMarketplaceSchema.parse(readJson('.claude-plugin/marketplace.json'));
  expect(offered.map(({ name, source }) => [name, source])).toEqual([['ad-library', './']]);
  expect(Object.entries(userConfig).flatMap(([key, { sensitive }]) => (sensitive ? [key] : []))).toEqual(['api_key']);
  const server = mcpServers['ad-library'] as LaunchEntry;
  const entered = { CLAUDE_PLUGIN_ROOT: root, 'user_config.demo': 'true', 'user_config.credit_budget': '50' };
  const client = await startPlugin(server, temporary, entered);
  expect((await client.call('get_credits')).text).toContain('budget 50');
  expect((await client.call('count_ads')).text).toContain('DEMO DATA');
  await client.close();
});

test('the Claude plugin starts without settings and names the form fields that are missing', async () => {
  const { root, readJson } = findPlugin('claude-plugin');
  const { mcpServers, userConfig } = claudePluginSchema.parse(readJson('.claude-plugin/plugin.json'));
  const client = await startPlugin(mcpServers['ad-library'] as LaunchEntry, temporary, { CLAUDE_PLUGIN_ROOT: root });
  const { text, error } = await client.call('search_ads');
  expect(error).toMatchObject({ kind: 'no_api_key' });
  for (const field of ['api_key', 'base_url', 'demo']) expect(text).toContain(`"${userConfig[field]?.title}"`);
  await client.close();
});

test('the Gemini extension asks for the API key as a secret', async () => {
  const { root, readJson } = findPlugin('gemini-extension');
  const { mcpServers, settings } = geminiExtensionSchema.parse(readJson('gemini-extension.json'));
  expect(settings.flatMap(({ envVar, sensitive }) => (sensitive ? [envVar] : []))).toEqual(['AD_LIBRARY_API_KEY']);
  // docs/hosts.md says how many settings Gemini CLI asks for.
  expect(settings).toHaveLength(5);
  const server = mcpServers['ad-library'] as LaunchEntry;
  const entered = Object.fromEntries(
    settings.map(({ envVar }) => [envVar, envVar === 'AD_LIBRARY_DEMO' ? 'true' : '']),
  );
  const client = await startPlugin({ ...server, env: entered }, temporary, { extensionPath: root });
  expect((await client.call('count_ads')).text).toContain('DEMO DATA');
  await client.close();
});
