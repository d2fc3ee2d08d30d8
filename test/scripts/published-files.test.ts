import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { McpbManifestSchema } from '@anthropic-ai/mcpb/schemas/0.3';
import { describe, expect, test } from 'vitest';
import { listPlaceholders, type Publisher } from '../../scripts/docs/published.ts';
import { generatedFiles } from '../../scripts/docs/write.ts';
import { type SettingName, settings } from '../../src/config/settings.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const readPublishedFile = (file: string) => readFileSync(`${root}${file}`, 'utf8');
const json = (file: string) => JSON.parse(readPublishedFile(file));
const [publisher, manifest, registryFile, dockerfile] = [
  json('package.json') as Publisher,
  json('manifest.json'),
  json('server.json'),
  readPublishedFile('Dockerfile'),
];
const createPublishedFiles = async (publisher: Publisher) => {
  const write = async (file: string) => String(await generatedFiles[file]?.(readPublishedFile(file), publisher));
  return {
    manifest: JSON.parse(await write('manifest.json')),
    registryFile: JSON.parse(await write('server.json')),
    dockerfile: await write('Dockerfile'),
  };
};

test("every published file contains the publisher's details from package.json", async () => {
  const published = await createPublishedFiles({
    ...publisher,
    // `$` starts a variable in a Dockerfile, so it must be escaped.
    description: 'for "$5"',
    mcpName: 'io.github.someone/ad-library-mcp',
    homepage: 'https://ads.test',
    repository: { type: 'git', url: 'git+https://github.com/someone/ad-library-mcp.git' },
    bugs: { url: 'https://github.com/someone/ad-library-mcp/issues' },
    privacyPolicies: ['https://ads.test/privacy'],
  });
  expect(McpbManifestSchema.safeParse(published.manifest).error?.issues ?? []).toEqual([]);
  expect(published.manifest).toMatchObject({
    homepage: 'https://ads.test',
    documentation: 'https://github.com/someone/ad-library-mcp#readme',
    support: 'https://github.com/someone/ad-library-mcp/issues',
    repository: { type: 'git', url: 'https://github.com/someone/ad-library-mcp' },
    privacy_policies: ['https://ads.test/privacy'],
  });
  expect(published.registryFile).toMatchObject({
    name: 'io.github.someone/ad-library-mcp',
    websiteUrl: 'https://ads.test',
    repository: { url: 'https://github.com/someone/ad-library-mcp', source: 'github' },
  });
  const labels = ['source="https://github.com/someone/ad-library-mcp"', 'url="https://ads.test"'];
  for (const label of [...labels, String.raw`description="for \"\$5\""`])
    expect(published.dockerfile).toContain(`org.opencontainers.image.${label}`);
});

test("publishing fails while package.json contains placeholders instead of the publisher's details", async () => {
  const empty = {
    ...publisher,
    mcpName: 'com.example/x',
    homepage: 'https://example.com/x',
    repository: { type: 'git', url: 'git+https://example.com/x.git' },
    bugs: { url: 'https://example.com/x/issues' },
    privacyPolicies: ['https://example.com/x'],
  };
  expect(listPlaceholders(empty)).toEqual(['mcpName', 'homepage', 'repository.url', 'bugs.url', 'privacyPolicies']);
  for (const file of Object.values(await createPublishedFiles(empty)))
    expect(JSON.stringify(file)).not.toContain('example.com/x');
  const script = `${root}scripts/check-publisher.ts`;
  const { status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', script], { encoding: 'utf8' });
  const openFields = listPlaceholders(publisher);
  expect(status).toBe(openFields.length > 0 ? 1 : 0);
  for (const name of openFields) expect(stderr).toContain(name);
});

describe('The manifest of the desktop bundle', () => {
  const { user_config: form, server } = manifest;
  const toSettingName = (name: string) => name.replace(/_./g, (part) => part.charAt(1).toUpperCase()) as SettingName;

  test('the manifest of the desktop bundle is valid according to its schema', () => {
    expect(McpbManifestSchema.safeParse(manifest).error?.issues ?? []).toEqual([]);
    expect(manifest.manifest_version).toBe('0.3');
    expect(manifest.compatibility.runtimes).toEqual(publisher.engines);
  });

  test('the manifest of the desktop bundle passes each form field to the matching environment variable', () => {
    const names = Object.keys(form);
    const { env } = server.mcp_config;
    expect(Object.values(env)).toEqual(names.map((name) => `\${user_config.${name}}`));
    expect(Object.keys(env)).toEqual(names.map((name) => settings[toSettingName(name)].variable));
    for (const name of names) {
      const setting = settings[toSettingName(name)];
      expect([form[name].sensitive === true, form[name].title]).toEqual([
        'isSecret' in setting,
        (setting as { title?: string }).title,
      ]);
    }
  });

  test('the form of the desktop bundle offers every setting that has a title', () => {
    const titledSettings = Object.entries(settings).filter(([, setting]) => 'title' in setting);
    expect(Object.keys(form).map(toSettingName).sort()).toEqual(titledSettings.map(([name]) => name).sort());
  });

  test('the budget field in the form of the desktop bundle accepts the same numbers as the setting', () => {
    const { default: budget, min, max } = form.credit_budget;
    const parseBudget = (value: number) => settings.creditBudget.parse(String(value));
    expect([budget, min, max].map(parseBudget)).toEqual([200, min, max]);
    for (const value of [min - 1, max + 1, 2.5]) expect(() => parseBudget(value)).toThrow();
    // No call is confirmed by default.
    expect(form.confirm_credits).toMatchObject({ type: 'number', min, max });
    expect(form.confirm_credits).not.toHaveProperty('default');
  });
});

// No npm package contains the schema of 2025-12-11, so this test repeats its rules.
test('the file server.json is valid according to the schema of the MCP registry', () => {
  const version = expect.stringMatching(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
  const shortText = expect.stringMatching(/^.{1,100}$/);
  const nonEmptyTexts = expect.arrayContaining([expect.any(String)]);
  const [{ environmentVariables }] = registryFile.packages;
  const { [provided]: more } = registryFile._meta;
  expect(registryFile).toEqual({
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name: expect.stringMatching(/^(?=.{3,200}$)[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/),
    ...{ title: shortText, description: shortText, version },
    packages: [
      {
        ...{ registryType: 'npm', identifier: expect.any(String), version, runtimeHint: 'npx' },
        ...{ transport: { type: 'stdio' }, environmentVariables },
      },
    ],
    _meta: { [provided]: { ...more, keywords: nonEmptyTexts, categories: nonEmptyTexts, screenshots: nonEmptyTexts } },
  });
  for (const variable of environmentVariables)
    expect(variable).toEqual({
      ...{ name: expect.stringMatching(/./), description: expect.any(String) },
      ...{ isRequired: expect.any(Boolean), isSecret: expect.any(Boolean) },
      format: expect.stringMatching(/^(string|number|boolean|filepath)$/),
    });
  const { keywords: _, categories: __, documentation, privacy, screenshots, ...rest } = more;
  for (const file of [documentation, privacy, ...screenshots]) expect(existsSync(`${root}${file}`), file).toBe(true);
  expect(rest).toEqual({});
});

const provided = 'io.modelcontextprotocol.registry/publisher-provided';

test('the file compose.yaml uses the container image of the current version', () => {
  expect(readPublishedFile('compose.yaml')).toContain(`image: ad-library-mcp:${publisher.version}\n`);
});

test('the Dockerfile pins its base image by digest', () => {
  expect([...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)).toEqual(['${NODE_IMAGE}', '${NODE_IMAGE}']);
  expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:\d+-alpine@sha256:[0-9a-f]{64}$/m);
});

test('the bill of materials (a list of software packages) contains all bundled packages', () => {
  const bill = json('dist/sbom.cdx.json');
  expect(bill).toMatchObject({ bomFormat: 'CycloneDX', metadata: { component: { name: 'ad-library-mcp' } } });
  const licensed = [
    ...readPublishedFile('dist/THIRD-PARTY-LICENSES').matchAll(/(?:^|-{80}\n\n)(\S+) (\S+) \([^)\n]+\)\n\n/g),
  ];
  const packages = licensed.map(([, name, version]) => `${name}@${version}`);
  expect(packages.length).toBeGreaterThan(20);
  expect(bill.components.map((one: { 'bom-ref': string }) => one['bom-ref']).sort()).toEqual(packages.sort());
  for (const { hashes, licenses } of bill.components) expect([hashes.length, licenses.length]).toEqual([1, 1]);
  expect(bill.dependencies[0].dependsOn).toHaveLength(packages.length);
  expect(bill).not.toHaveProperty('serialNumber');
  expect(JSON.stringify(bill)).not.toMatch(/"timestamp"|"tools"/);
});

describe('The list of dependencies in CONTRIBUTING.md', () => {
  const { dependencies = {}, devDependencies } = json('package.json');

  test('the file CONTRIBUTING.md lists every dependency of the project', () => {
    const [, tables = ''] = readPublishedFile('CONTRIBUTING.md').split('## Dependencies');
    const cells = [...tables.matchAll(/^\| (`(?!npm run )[^|]+) \|/gm)];
    expect(dependencies).toEqual({});
    expect(cells.flatMap(([, cell]) => cell?.match(/[^`, ]+/g)).sort()).toEqual(Object.keys(devDependencies).sort());
  });
});

test('all dependencies support this version of Node.js', async () => {
  const args = ['ci', '--dry-run', '--ignore-scripts', '--offline'];
  const { stderr } = await promisify(execFile)('npm', args, { cwd: root, shell: process.platform === 'win32' });
  expect(stderr).not.toContain('EBADENGINE');
});
