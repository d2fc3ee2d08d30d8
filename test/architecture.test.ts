import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const listFiles = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => join(folder, file));

interface Source {
  file: string;
  text: string;
  /** Files of this repository that the source file imports, including type imports. */
  importedFiles: string[];
  packages: string[];
}

/** Matches imports and re-exports, both static and dynamic. */
const importPattern = /(?:^(?:import|export)\b[^'"]*?from\s+|^import\s+|\bimport\()['"]([^'"]+)['"]/gm;

function parseSource(file: string): Source {
  const text = readFileSync(join(root, file), 'utf8');
  const names = [...text.matchAll(importPattern)].map(([, name = '']) => name);
  return {
    file,
    text,
    importedFiles: names
      .filter((name) => name.startsWith('.') && /\.tsx?$/.test(name))
      .map((name) => relative(root, resolve(root, dirname(file), name))),
    packages: names.filter((name) => !name.startsWith('.') && !name.startsWith('node:')),
  };
}

const sources = listFiles('src').map(parseSource);
const getFolder = (file: string) => (file.split('/').length > 2 ? (file.split('/')[1] ?? '') : file);

const removeComments = (text: string) => text.replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*$/gm, '');

/** The entry points of the commands and of embedded use. Only they may read the clock and create random numbers. */
const entryPoints = ['src/cli/run.ts', 'src/cli/serve.ts', 'src/cli/call.ts', 'src/cli/library.ts', 'src/embed.ts'];

/** A file that all other files may import. It imports no other file. */
const importableEverywhere = 'src/lazy-getter.ts';

/** The folders that each folder may import. See docs/architecture.md for the reasons. */
const mayImport: Record<string, string> = {
  [importableEverywhere]: '',
  'src/lru-options.ts': '',
  'src/lock.ts': 'api',
  'src/packaged-files.ts': '',
  'src/webassembly-start.ts': '',
  logging: 'logging views',
  api: 'api',
  credits: 'credits views api src/lru-options.ts',
  storage: 'storage views credits api src/lru-options.ts src/lock.ts',
  cache: 'cache storage credits api src/lru-options.ts',
  workers: 'workers api',
  views: 'views',
  dataset:
    'dataset charts workers views storage credits api src/lru-options.ts src/packaged-files.ts src/webassembly-start.ts',
  ui: 'ui views',
  charts: 'charts views',
  pictures: 'pictures charts ui workers drawing storage credits api',
  reports: 'reports ui charts dataset views api',
  watches: 'watches reports ui dataset views storage api',
  tools: 'tools watches dataset charts ui reports pictures views storage credits api',
  board: 'board ui tools watches dataset pictures views storage api',
  mcp: 'mcp workers board tools dataset pictures views cache storage credits api logging',
  transports: 'transports workers mcp ui pictures views storage api logging',
  drawing: 'drawing src/packaged-files.ts',
  library: 'library ui reports dataset pictures views api src/lru-options.ts src/lock.ts src/webassembly-start.ts',
  config: 'config api logging',
  'src/app.ts': 'api cache credits storage tools mcp pictures library config logging src/call-modules.ts',
  'src/call-modules.ts': 'api cache credits storage mcp',
  cli: 'cli library transports mcp storage api config logging src/app.ts views',
  'src/embed.ts': 'mcp config logging src/app.ts',
  'src/main.ts': 'cli',
};

/** Returns every violation of a rule, as `file: violation`. */
const findViolations = (rule: (source: Source) => Iterable<string>) =>
  sources.flatMap((source) => [...rule(source)].map((what) => `${source.file}: ${what}`));

/** The files and folders that may import each of these packages. */
const packagePlaces: Record<string, string[]> = {
  '@modelcontextprotocol/': ['src/mcp/', 'src/transports/'],
  undici: ['src/api/http.ts', 'src/pictures/'],
  '@redis/client': ['src/storage/drivers/redis.ts'],
  pg: ['src/storage/drivers/postgres.ts'],
  'node-sqlite3-wasm': ['src/library/'],
  '@sqlite.org/sqlite-wasm': ['src/dataset/sql/'],
  '@jsquash/': ['src/drawing/'],
  'opentype.js': ['src/drawing/'],
  commander: ['src/cli/'],
  '#preact/': ['src/ui/', 'src/reports/', 'src/watches/'],
  preact: ['src/board/view/'],
  diff: ['src/board/view/'],
};

test('source files import only modules that the import rules of their folder allow', () => {
  const violations = findViolations(function* ({ file, importedFiles, packages }) {
    const allowed = mayImport[getFolder(file)]?.split(' ');
    if (!allowed) yield 'a folder that is missing in mayImport';
    for (const imported of importedFiles) {
      if (!existsSync(join(root, imported))) yield `${imported} does not exist`;
      if (imported !== importableEverywhere && !allowed?.includes(getFolder(imported))) yield imported;
    }
    for (const name of packages) {
      const places = Object.entries(packagePlaces).find(([prefix]) => name.startsWith(prefix))?.[1];
      if (places && !places.some((place) => file.startsWith(place))) yield name;
    }
  });
  expect(violations).toEqual([]);
});

test('storage drivers import only the storage interface, the API client and the file lock', () => {
  const allowed = /^src\/(storage\/storage\.ts|storage\/drivers\/|api\/|lock\.ts)/;
  const violations = findViolations(function* ({ file, importedFiles }) {
    if (file.startsWith('src/storage/drivers/')) yield* importedFiles.filter((imported) => !allowed.test(imported));
  });
  expect(violations).toEqual([]);
});

test('only entry points of the program read environment variables, the clock or random numbers', () => {
  const violations = findViolations(function* ({ file, text }) {
    const code = removeComments(text);
    if (file !== 'src/cli/run.ts' && /\bprocess\.env\b/.test(code)) yield 'process.env';
    if (!entryPoints.includes(file) && /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b/.test(code))
      yield 'the clock or a random number';
    if (/\bconsole\./.test(code)) yield 'console';
  });
  expect(violations).toEqual([]);
});

test('source files have descriptive names and only named exports', () => {
  const violations = findViolations(function* ({ file, text }) {
    if (/\b(utils?|helpers?|common|core|shared|misc|types|constants|index|manager)\b/.test(file))
      yield 'an unspecific file name';
    if (/^export (?:default|\* from)/m.test(text)) yield 'a default export or an export of everything';
  });
  expect(violations).toEqual([]);
});

test('no source file has more than 600 lines of code, not counting comments and empty lines', () => {
  const files = ['src', 'test', 'bench', 'scripts'].flatMap(listFiles).map(parseSource);
  const countCodeLines = (text: string) => (removeComments(text).match(/^.*\S.*$/gm) ?? []).length;
  expect(files.filter(({ text }) => countCodeLines(text) > 600).map(({ file }) => file)).toEqual([]);
});

test('the imports between source files contain no cycles', () => {
  const graph = new Map(sources.map(({ file, importedFiles }) => [file, importedFiles]));
  const visitedFiles = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    expect(path, 'a cycle of imports').not.toContain(file);
    if (visitedFiles.has(file)) return;
    for (const next of graph.get(file) ?? []) visit(next, [...path, file]);
    visitedFiles.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
});

test('files outside src/library import only the public interface of src/library', () => {
  const importers = sources.flatMap(({ file, importedFiles }) =>
    getFolder(file) === 'library'
      ? []
      : importedFiles.filter((name) => getFolder(name) === 'library').map((name) => `${file}: ${name}`),
  );
  expect([...new Set(importers)].toSorted()).toEqual([
    'src/app.ts: src/library/open.ts',
    'src/cli/library.ts: src/library/commands/commands.ts',
    'src/cli/library.ts: src/library/open.ts',
  ]);
  const publicInterface = sources.find(({ file }) => file === 'src/library/open.ts');
  const staticImports = [
    ...(publicInterface?.text ?? '').matchAll(/^(?:import|export) (?!type )[^'"]*?from ['"]([^'"]+)['"]/gm),
  ];
  const importedNames = staticImports.map(([, name]) => name);
  expect(importedNames.filter((name) => !name?.startsWith('node:'))).toEqual([
    '../lazy-getter.ts',
    './demo/demo-key.ts',
    './search/filters.ts',
  ]);
});

test('no source file imports the Redis or PostgreSQL driver statically', () => {
  const violations = ['redis', 'postgres'].flatMap((driver) => {
    const staticImport = new RegExp(`^import (?!type )[^'"]*?['"][^'"]*/drivers/${driver}\\.ts['"]`, 'm');
    return sources.filter(({ text }) => staticImport.test(text));
  });
  expect(violations.map(({ file }) => file)).toEqual([]);
});

test('the code that lists the tools statically imports neither the code that runs tools nor the storage code', () => {
  const staticImports = /^(?:import|export) (?!type )[^'"]*?from '(\.[^']+)'/gm;
  const loaded = new Set<string>();
  const loadStatically = (file: string): void => {
    if (loaded.has(file)) return;
    loaded.add(file);
    // The build replaces this file with its computed values.
    if (file === 'src/mcp/described-tools.ts') return;
    const { text = '' } = sources.find((source) => source.file === file) ?? {};
    for (const [, name = ''] of text.matchAll(staticImports))
      loadStatically(relative(root, resolve(root, dirname(file), name)));
  };
  loadStatically('src/cli/run.ts');
  expect(loaded).toContain('src/mcp/catalog.ts');
  const lazyPlaces =
    'src/tools/tool.ts src/tools/catalog.ts src/api/http.ts src/cache/ src/storage/ src/library/'.split(' ');
  expect([...loaded].filter((file) => lazyPlaces.some((place) => file.startsWith(place)))).toEqual([]);
});

test('HTML components contain neither raw markup nor URLs that are not validated', () => {
  const violations = findViolations(function* ({ file, text }) {
    if (!file.endsWith('x')) return;
    const code = removeComments(text);
    yield* code.match(/dangerouslySetInnerHTML|srcdoc|\bstyle="|\son[a-z]+=|<script|<iframe|<base\b/g) ?? [];
    // A spread could set any attribute, because its names are not in the source.
    yield* code.match(/<[a-z][^<>]*\{\.\.\./g) ?? [];
    if (file === 'src/ui/links.tsx') return;
    yield* code.match(/\s(?:href|src|srcset|action|formaction|xlink:href|poster|ping|data)=/gi) ?? [];
    yield* code.match(/\bas CheckedUrl\b|\bas never\b|\bas any\b/g) ?? [];
  });
  expect(violations).toEqual([]);
});

test('the source files in the folder src/tools never refer to credit charges', () => {
  const toolsNamingCharges = sources.filter(
    ({ file, text }) => getFolder(file) === 'tools' && /\breceipt|\bcharged?\b/.test(removeComments(text)),
  );
  expect(toolsNamingCharges.map(({ file }) => file)).toEqual([]);
});
