import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const filesIn = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => join(folder, file));

interface Source {
  file: string;
  text: string;
  /** Files of ours it imports, types included. */
  ours: string[];
  packages: string[];
}

/** Imports and re-exports, static and dynamic. */
const importing = /(?:^(?:import|export)\b[^'"]*?from\s+|^import\s+|\bimport\()['"]([^'"]+)['"]/gm;

function read(file: string): Source {
  const text = readFileSync(join(root, file), 'utf8');
  const names = [...text.matchAll(importing)].map(([, name = '']) => name);
  return {
    file,
    text,
    ours: names
      .filter((name) => name.startsWith('.') && name.endsWith('.ts'))
      .map((name) => relative(root, resolve(root, dirname(file), name))),
    packages: names.filter((name) => !name.startsWith('.') && !name.startsWith('node:')),
  };
}

const sources = filesIn('src').map(read);
const folderOf = (file: string) => (file.split('/').length > 2 ? (file.split('/')[1] ?? '') : file);

const withoutComments = (text: string) => text.replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*$/gm, '');

/** Where the program begins, as a command or inside another program, and the clock and chance come in. */
const beginnings = ['src/cli/run.ts', 'src/cli/serve.ts', 'src/cli/library.ts', 'src/embed.ts'];

/** Who may import whom: `main → cli → serve → mcp → board → tools → dataset → present → state → credits → api`, and what hangs off that line. */
const mayImport: Record<string, string[]> = {
  'src/version.ts': ['package.json'],
  log: ['log'],
  api: ['api'],
  credits: ['credits', 'api'],
  state: ['state', 'credits', 'api'],
  workers: ['workers', 'api'],
  present: ['present'],
  language: ['language'],
  dataset: ['dataset', 'workers', 'language', 'present', 'state', 'credits', 'api'],
  pictures: ['pictures', 'workers', 'raster', 'state', 'credits', 'api'],
  tools: ['tools', 'dataset', 'pictures', 'present', 'state', 'credits', 'api'],
  board: ['board', 'tools', 'dataset', 'pictures', 'present', 'state', 'api'],
  prompts: ['prompts', 'present'],
  mcp: ['mcp', 'board', 'tools', 'prompts', 'present', 'state', 'api', 'log'],
  serve: ['serve', 'mcp', 'api', 'log'],
  raster: ['raster'],
  library: ['library', 'language', 'raster', 'api'],
  config: ['config', 'api', 'log'],
  'src/send-chain.ts': ['api', 'credits', 'state', 'dataset', 'pictures', 'config', 'tools', 'log', 'src/version.ts'],
  'src/app.ts': [
    'api',
    'mcp',
    'prompts',
    'pictures',
    'library',
    'config',
    'log',
    'src/send-chain.ts',
    'src/version.ts',
  ],
  cli: ['cli', 'library', 'serve', 'state', 'config', 'log', 'src/app.ts', 'src/version.ts'],
  'src/embed.ts': ['mcp', 'config', 'log', 'src/app.ts'],
  'src/main.ts': ['cli'],
};

describe.each(sources)('$file', ({ file, text, ours, packages }) => {
  test('imports only what its place allows', () => {
    const allowed = mayImport[folderOf(file)];
    expect(allowed, 'a folder that the design does not know').toBeDefined();
    for (const imported of ours) {
      expect(existsSync(join(root, imported)), imported).toBe(true);
      expect(allowed, imported).toContain(folderOf(imported));
    }
    for (const name of packages) {
      if (name.startsWith('@modelcontextprotocol/')) expect(['mcp', 'serve']).toContain(folderOf(file));
      if (name === 'undici' && file !== 'src/api/undici-fetch.ts') expect(folderOf(file)).toBe('pictures');
      if (name === '@redis/client') expect(dirname(file)).toBe('src/state/redis');
      if (name === 'node-sqlite3-wasm') expect(folderOf(file)).toBe('library');
      if (name === '@sqlite.org/sqlite-wasm') expect(dirname(file)).toBe('src/dataset/sql');
      if (/^(?:@jsquash\/|opentype\.js)/.test(name)) expect(folderOf(file)).toBe('raster');
      if (name === 'commander') expect(folderOf(file)).toBe('cli');
    }
  });

  test('takes settings, time and chance from outside, and writes to no console', () => {
    const code = withoutComments(text);
    if (file !== 'src/cli/run.ts') expect(code).not.toMatch(/\bprocess\.env\b/);
    if (!beginnings.includes(file)) expect(code).not.toMatch(/\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b/);
    expect(code).not.toMatch(/\bconsole\./);
  });

  test('is small, named for what it holds, and exports by name', () => {
    expect(text.split('\n').length).toBeLessThanOrEqual(250);
    if (folderOf(file) === 'tools') expect(text.split('\n').length).toBeLessThanOrEqual(110);
    expect(file).not.toMatch(/\b(utils?|helpers?|common|core|shared|misc|types|constants|index|manager)\b/);
    expect(text).not.toMatch(/^export default/m);
    expect(text).not.toMatch(/^export \* from/m);
  });
});

test.each(['test', 'bench', 'scripts'].flatMap(filesIn))('%s is as small as a source', (file) => {
  expect(read(file).text.split('\n').length).toBeLessThanOrEqual(250);
});

test('no file imports itself by a detour', () => {
  const graph = new Map(sources.map(({ file, ours }) => [file, ours]));
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    expect(path, 'a circle of imports').not.toContain(file);
    if (done.has(file)) return;
    for (const next of graph.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
});

test('the local library can be left out: only the app and its own command know of it', () => {
  const users = sources.filter(
    ({ file, ours }) => folderOf(file) !== 'library' && ours.some((name) => folderOf(name) === 'library'),
  );
  expect(users.map(({ file }) => file).toSorted()).toEqual(['src/app.ts', 'src/cli/library.ts']);
});

test('what is in Redis is loaded on demand alone: outside of it there are imports of types, and dynamic ones', () => {
  const statically = /^import (?!type )[^'"]*?['"][^'"]*\/redis\/[^'"]+['"]/m;
  const loading = sources.filter(({ file, text }) => dirname(file) !== 'src/state/redis' && statically.test(text));
  expect(loading.map(({ file }) => file)).toEqual([]);
});

test('no tool speaks of what its call cost: whoever calls it adds the receipt', () => {
  const naming = sources.filter(
    ({ file, text }) => folderOf(file) === 'tools' && /\breceipt|\bcharged?\b/.test(withoutComments(text)),
  );
  expect(naming.map(({ file }) => file)).toEqual([]);
});
