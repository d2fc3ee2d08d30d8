import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { inflateSync } from 'node:zlib';
import { McpbManifestSchema } from '@anthropic-ai/mcpb/schemas/0.3';
import { expect, test } from 'vitest';
import { iconPng, iconRows, iconSvg, size } from '../../scripts/docs/icon.ts';
import { replaceMarked } from '../../scripts/docs/marked.ts';
import {
  badges,
  type Publisher,
  placeholders,
  withLabels,
  withManifestPublisher,
  withRegistryPublisher,
} from '../../scripts/docs/publisher.ts';

const bytes = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url));
const read = (file: string) => bytes(file).toString();
const json = (file: string) => JSON.parse(read(file));
const present: Publisher & { engines: { node: string } } = json('package.json');

const filledIn: Publisher = {
  ...present,
  mcpName: 'io.github.someone/ad-library-mcp',
  homepage: 'https://ads.test',
  repository: { type: 'git', url: 'git+https://github.com/someone/ad-library-mcp.git' },
  bugs: { url: 'https://github.com/someone/ad-library-mcp/issues' },
  privacyPolicies: ['https://ads.test/privacy'],
};

test('manifest, registry file, labels and badges are as package.json has them (npm run docs writes them)', () => {
  expect(JSON.parse(JSON.stringify(withManifestPublisher(json('manifest.json'), present)))).toEqual(
    json('manifest.json'),
  );
  expect(JSON.parse(JSON.stringify(withRegistryPublisher(json('server.json'), present)))).toEqual(json('server.json'));
  expect(withLabels(read('Dockerfile'), present)).toBe(read('Dockerfile'));
  const readme = read('README.md');
  expect(replaceMarked(readme, 'badges', badges(present, present.engines))).toBe(readme);
});

test('what is filled in once reaches everything that is published', () => {
  const manifest = withManifestPublisher(json('manifest.json'), filledIn);
  expect(McpbManifestSchema.safeParse(manifest).error?.issues ?? []).toEqual([]);
  expect(manifest).toMatchObject({
    homepage: 'https://ads.test',
    support: 'https://github.com/someone/ad-library-mcp/issues',
    repository: { type: 'git', url: 'https://github.com/someone/ad-library-mcp' },
    privacy_policies: ['https://ads.test/privacy'],
  });
  expect(withRegistryPublisher({}, filledIn)).toEqual({
    name: 'io.github.someone/ad-library-mcp',
    websiteUrl: 'https://ads.test',
    repository: { url: 'https://github.com/someone/ad-library-mcp', source: 'github' },
  });
  const dockerfile = withLabels(read('Dockerfile'), filledIn);
  expect(dockerfile).toContain('org.opencontainers.image.source="https://github.com/someone/ad-library-mcp"');
  expect(dockerfile).toContain('org.opencontainers.image.url="https://ads.test"');
  // In a Dockerfile, $ begins a variable.
  expect(withLabels(dockerfile, { ...filledIn, description: 'for "$5"' })).toContain(String.raw`="for \"\$5\""`);
});

test('what is not filled in appears nowhere, and keeps the package from being published', () => {
  expect(placeholders(filledIn)).toEqual([]);
  const all = ['mcpName', 'homepage', 'repository.url', 'bugs.url', 'privacyPolicies'];
  const empty = {
    ...present,
    mcpName: 'com.example/x',
    homepage: 'https://example.com/x',
    repository: { type: 'git', url: 'git+https://example.com/x.git' },
    bugs: { url: 'https://example.com/x/issues' },
    privacyPolicies: ['https://example.com/privacy'],
  };
  expect(placeholders(empty)).toEqual(all);
  for (const made of [withManifestPublisher({}, empty), withLabels(read('Dockerfile'), empty)])
    expect(JSON.stringify(made)).not.toContain('example.com');
  expect(JSON.parse(JSON.stringify(withRegistryPublisher({}, empty)))).toEqual({ name: 'com.example/x' });
});

test('the script that npm runs before publishing names what is open', () => {
  const script = fileURLToPath(new URL('../../scripts/check-publisher.ts', import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', script], { encoding: 'utf8' });
  const open = placeholders(present);
  expect(status).toBe(open.length > 0 ? 1 : 0);
  for (const name of open) expect(stderr).toContain(name);
});

test('the icon is the drawing of the script, as SVG and as PNG', () => {
  expect(read('docs/pictures/icon.svg')).toBe(iconSvg());
  const png = bytes('docs/pictures/icon.png');
  expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([size, size]);
  // Compressed by whichever zlib: the pixels count.
  const pixels = (file: Buffer) => inflateSync(file.subarray(41, 41 + file.readUInt32BE(33)));
  expect(pixels(png).equals(iconRows())).toBe(true);
  expect(pixels(iconPng()).equals(iconRows())).toBe(true);
});
