import { readFileSync } from 'node:fs';
import { McpbManifestSchema } from '@anthropic-ai/mcpb/schemas/0.3';
import { expect, test } from 'vitest';
import { withCatalog } from '../../scripts/docs/manifest.ts';
import { type SettingName, settings } from '../../src/config/settings.ts';

const manifest = JSON.parse(readFileSync(new URL('../../manifest.json', import.meta.url), 'utf8'));

test('the desktop manifest is as its format wants it', () => {
  const { error } = McpbManifestSchema.safeParse(manifest);
  expect(error?.issues ?? []).toEqual([]);
  expect(manifest.manifest_version).toBe('0.3');
});

test('it names the version, the tools and the prompts that the code has (npm run docs writes them)', () => {
  expect(withCatalog(manifest)).toEqual(manifest);
});

test('it passes every user setting on by its name, and keeps the key secret', () => {
  const { env } = manifest.server.mcp_config;
  const asked = Object.keys(manifest.user_config);
  expect(Object.values(env)).toEqual(asked.map((name) => `\${user_config.${name}}`));
  const named = (name: string): SettingName =>
    name.replace(/_./g, (part) => part.charAt(1).toUpperCase()) as SettingName;
  expect(Object.keys(env)).toEqual(asked.map((name) => settings[named(name)].variable));
  for (const name of asked)
    expect(manifest.user_config[name].sensitive === true).toBe('secret' in settings[named(name)]);
});
