import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const filesIn = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
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
      .filter((name) => name.startsWith('.') && /\.tsx?$/.test(name))
      .map((name) => relative(root, resolve(root, dirname(file), name))),
    packages: names.filter((name) => !name.startsWith('.') && !name.startsWith('node:')),
  };
}

const sources = filesIn('src').map(read);
const folderOf = (file: string) => (file.split('/').length > 2 ? (file.split('/')[1] ?? '') : file);

const withoutComments = (text: string) => text.replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*$/gm, '');

/** Where the program begins, as a command or inside another program, and the clock and chance come in. */
const beginnings = ['src/cli/run.ts', 'src/cli/serve.ts', 'src/cli/call.ts', 'src/cli/library.ts', 'src/embed.ts'];

/** Who may import whom: the line that docs/architecture.md draws, and what hangs off it. */
const mayImport: Record<string, string> = {
  'src/lock.ts': 'api',
  logging: 'logging views',
  api: 'api',
  credits: 'credits api',
  storage: 'storage views credits api src/lock.ts',
  cache: 'cache storage credits api',
  workers: 'workers api',
  views: 'views',
  dataset: 'dataset charts workers views storage credits api',
  ui: 'ui views',
  charts: 'charts views',
  pictures: 'pictures charts ui workers drawing storage credits api',
  reports: 'reports ui charts dataset views api',
  watches: 'watches reports ui dataset views storage api',
  tools: 'tools watches dataset charts ui reports pictures views storage credits api',
  board: 'board ui tools watches dataset pictures views storage api',
  mcp: 'mcp workers board tools dataset pictures views cache storage credits api logging',
  transports: 'transports workers mcp ui pictures views storage api logging',
  drawing: 'drawing',
  library: 'library ui reports dataset pictures views api src/lock.ts',
  config: 'config api logging',
  'src/app.ts': 'api cache credits storage tools mcp pictures library config logging',
  cli: 'cli library transports mcp storage api config logging src/app.ts views',
  'src/embed.ts': 'mcp config logging src/app.ts',
  'src/main.ts': 'cli',
};

/** The places where a rule is broken, as `file: what`. */
const broken = (rule: (source: Source) => Iterable<string>) =>
  sources.flatMap((source) => [...rule(source)].map((what) => `${source.file}: ${what}`));

/** The only places that may load a package, as folders or files. */
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

test('every file imports only what its place allows', () => {
  const found = broken(function* ({ file, ours, packages }) {
    const allowed = mayImport[folderOf(file)]?.split(' ');
    if (!allowed) yield 'a folder that the design does not know';
    for (const imported of ours) {
      if (!existsSync(join(root, imported))) yield `${imported} does not exist`;
      if (!allowed?.includes(folderOf(imported))) yield imported;
    }
    for (const name of packages) {
      const places = Object.entries(packagePlaces).find(([prefix]) => name.startsWith(prefix))?.[1];
      if (places && !places.some((place) => file.startsWith(place))) yield name;
    }
  });
  expect(found).toEqual([]);
});

test('the drivers of storage know the storage interface and each other, and nothing that is built above it', () => {
  const allowed = /^src\/(storage\/storage\.ts|storage\/drivers\/|api\/|lock\.ts)/;
  const found = broken(function* ({ file, ours }) {
    if (file.startsWith('src/storage/drivers/')) yield* ours.filter((imported) => !allowed.test(imported));
  });
  expect(found).toEqual([]);
});

test('settings, time and chance come from outside, and no file writes to the console', () => {
  const found = broken(function* ({ file, text }) {
    const code = withoutComments(text);
    if (file !== 'src/cli/run.ts' && /\bprocess\.env\b/.test(code)) yield 'process.env';
    if (!beginnings.includes(file) && /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b/.test(code))
      yield 'time or chance';
    if (/\bconsole\./.test(code)) yield 'console';
  });
  expect(found).toEqual([]);
});

test('every file is named for what it holds, and exports by name', () => {
  const found = broken(function* ({ file, text }) {
    if (/\b(utils?|helpers?|common|core|shared|misc|types|constants|index|manager)\b/.test(file))
      yield 'a name that says nothing';
    if (/^export (?:default|\* from)/m.test(text)) yield 'a default export, or one of everything';
  });
  expect(found).toEqual([]);
});

test('no file is too long to be read in one sitting', () => {
  const files = ['src', 'test', 'bench', 'scripts'].flatMap(filesIn).map(read);
  expect(files.filter(({ text }) => text.split('\n').length > 600).map(({ file }) => file)).toEqual([]);
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

test('the local library can be left out: the app and its own command know its door, and what is behind is loaded on demand', () => {
  const users = sources.flatMap(({ file, ours }) =>
    folderOf(file) === 'library'
      ? []
      : ours.filter((name) => folderOf(name) === 'library').map((name) => `${file}: ${name}`),
  );
  expect([...new Set(users)].toSorted()).toEqual([
    'src/app.ts: src/library/open.ts',
    'src/cli/library.ts: src/library/commands/commands.ts',
    'src/cli/library.ts: src/library/open.ts',
  ]);
  const door = sources.find(({ file }) => file === 'src/library/open.ts');
  const statically = [...(door?.text ?? '').matchAll(/^(?:import|export) (?!type )[^'"]*?from ['"]([^'"]+)['"]/gm)];
  expect(new Set(statically.map(([, name]) => name))).toEqual(new Set(['./demo/demo-key.ts', './search/filters.ts']));
});

test('what drives a store is loaded on demand alone: outside of it there are imports of types, and dynamic ones', () => {
  const found = ['redis', 'postgres'].flatMap((driver) => {
    const statically = new RegExp(`^import (?!type )[^'"]*?['"][^'"]*/drivers/${driver}\\.ts['"]`, 'm');
    return sources.filter(({ text }) => statically.test(text));
  });
  expect(found.map(({ file }) => file)).toEqual([]);
});

test('a session lists its tools without loading one: whatever calls need is loaded with the first', () => {
  const statically = /^(?:import|export) (?!type )[^'"]*?from '(\.[^']+)'/gm;
  const loaded = new Set<string>();
  const load = (file: string): void => {
    if (loaded.has(file)) return;
    loaded.add(file);
    // The build puts values in place of this one.
    if (file === 'src/mcp/described-tools.ts') return;
    const { text = '' } = sources.find((source) => source.file === file) ?? {};
    for (const [, name = ''] of text.matchAll(statically)) load(relative(root, resolve(root, dirname(file), name)));
  };
  load('src/cli/run.ts');
  expect(loaded).toContain('src/mcp/served.ts');
  const late = 'src/tools/tool.ts src/tools/catalog.ts src/api/http.ts src/cache/ src/storage/ src/library/'.split(' ');
  expect([...loaded].filter((file) => late.some((place) => file.startsWith(place)))).toEqual([]);
});

test('pages hold no markup but their own, and no address that was not checked', () => {
  const found = broken(function* ({ file, text }) {
    if (!file.endsWith('x')) return;
    const code = withoutComments(text);
    yield* code.match(/dangerouslySetInnerHTML|srcdoc|\bstyle="|\son[a-z]+=|<script|<iframe|<base\b/g) ?? [];
    // An attribute whose name does not stand in the source could be any.
    yield* code.match(/<[a-z][^<>]*\{\.\.\./g) ?? [];
    if (file === 'src/ui/links.tsx') return;
    yield* code.match(/\s(?:href|src|srcset|action|formaction|xlink:href|poster|ping|data)=/gi) ?? [];
    yield* code.match(/\bas CheckedUrl\b|\bas never\b|\bas any\b/g) ?? [];
  });
  expect(found).toEqual([]);
});

test('no tool speaks of what its call cost: whoever calls it adds the receipt', () => {
  const naming = sources.filter(
    ({ file, text }) => folderOf(file) === 'tools' && /\breceipt|\bcharged?\b/.test(withoutComments(text)),
  );
  expect(naming.map(({ file }) => file)).toEqual([]);
});
