/**
 * Builds `dist/`: the command as one bundle in a few pieces, so that a run loads only what it needs and nothing is
 * left to install. Names stay readable, because stack traces are read by people; white space goes.
 *
 * The pieces lie in a folder of their own, which is named after what is in it and is there before `main.js` leads to it;
 * those of earlier builds stay for a while. So a server that runs goes on loading its own, and none starts in between.
 */
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build, type Metafile, type Plugin } from 'esbuild';
import { packagedFiles } from '../src/drawing/codecs.ts';
import { fontFiles } from '../src/drawing/text.ts';
import { makeDemoData } from '../src/library/demo/make-demo-data.ts';
import { packDemoData } from '../src/library/demo/packed-demo-data.ts';
import { libraryFilters, searchLimit } from '../src/library/search/filters.ts';
import { describedTools } from '../src/mcp/described-tools.ts';
import { skill, skillTools } from '../src/mcp/skill.ts';
import { cardStyles } from '../src/ui/ad-card.tsx';
import { barStyles } from '../src/ui/bars.tsx';
import { createPaletteStyles } from '../src/ui/palette.ts';
import { buildOptions } from './bundle.ts';
import { billOfMaterials, licences } from './third-parties.ts';

const root = new URL('../', import.meta.url);
const dist = new URL('dist/', root);
/** Where everything is built, on the same file system. */
const made = new URL(`.building-${process.pid}/`, root);
const pieces = new URL('pieces/', made);
const view = new URL('src/board/view/', root);
/** Builds that stay, with the one that was made last. */
const kept = 5;
const { resolve } = createRequire(import.meta.url);

/** What CommonJS packages expect to find around them. Only where it is named: in every piece, it takes a tenth of a start. */
const commonJs = [
  `import { createRequire as requireFrom } from 'node:module';`,
  'const require = requireFrom(import.meta.url), __filename = import.meta.filename, __dirname = import.meta.dirname;',
].join('');

/**
 * The first line of the SDK loads a JSON Schema validator for what servers ask of clients. This server asks nothing,
 * and the validator is a fifth of the time it takes to start.
 */
const withoutClientValidator: Plugin = {
  name: 'without-client-validator',
  setup(bundle) {
    bundle.onLoad({ filter: /sdk\/dist\/esm\/validation\/ajv-provider\.js$/ }, () => ({
      contents: 'export class AjvJsonSchemaValidator {}',
    }));
  },
};

/**
 * Replaces code by its results: the descriptions of tools and filters, the skill, and the data of the demo, which is in a
 * file of its own.
 */
const withResults: Plugin = {
  name: 'with-results',
  setup(bundle) {
    bundle.onLoad({ filter: /src\/mcp\/described-tools\.ts$/ }, () => ({
      contents: `export const describedTools = ${JSON.stringify(describedTools)}`,
    }));
    bundle.onLoad({ filter: /src\/mcp\/skill\.ts$/ }, () => ({
      contents: `export const skill = ${JSON.stringify(skill)}, skillTools = ${JSON.stringify(skillTools)}`,
    }));
    bundle.onLoad({ filter: /src\/library\/search\/filters\.ts$/ }, () => ({
      contents: `export const libraryFilters = ${JSON.stringify(libraryFilters)}, searchLimit = ${JSON.stringify(searchLimit)}`,
    }));
    bundle.onLoad({ filter: /src\/library\/demo\/demo-data\.ts$/ }, ({ path }) => ({
      contents: `export { readDemoData } from './packed-demo-data.ts'`,
      resolveDir: dirname(path),
    }));
  },
};

/** Leaves pieces that are loaded later where they are. */
const laterAsItIs: Plugin = {
  name: 'later-as-it-is',
  setup(bundle) {
    bundle.onResolve({ filter: /./ }, ({ path, kind }) =>
      kind === 'dynamic-import' ? { path, external: true } : undefined,
    );
  },
};

process.once('exit', () => rmSync(made, { recursive: true, force: true }));
const shared = {
  absWorkingDir: fileURLToPath(root),
  outdir: fileURLToPath(made),
  ...buildOptions,
  legalComments: 'none',
  metafile: true,
} satisfies BuildOptions;
const command = await build({
  ...shared,
  entryPoints: ['src/main.ts', 'src/embed.ts'],
  splitting: true,
  chunkNames: 'pieces/[name]-[hash]',
  plugins: [withoutClientValidator, withResults],
});
const joined = await joinStart(command.metafile.outputs);
// Each by itself, so that the command is not cut into more pieces for what a worker shares with it.
const workers = await build({
  ...shared,
  entryPoints: { 'pieces/sql-worker': 'src/dataset/sql/worker.ts', 'pieces/picture-worker': 'src/pictures/worker.ts' },
});
const written = [command.metafile, joined, workers.metafile].flatMap(({ outputs }) => Object.keys(outputs));
for (const file of new Set(written)) {
  const path = new URL(file, root);
  const code = readFileSync(path, 'utf8');
  if (/\b(?:require|__filename|__dirname)\b/.test(code)) writeFileSync(path, `${commonJs}\n${code}`);
}
chmodSync(new URL('main.js', made), 0o755);
// Once more for those who run the sources.
for (const folder of [pieces, made]) writeFileSync(new URL('board.html', folder), await boardPage());

// What is read while the program runs is looked for beside the piece that reads it.
const engines = ['node-sqlite3-wasm/dist/node-sqlite3-wasm.wasm', '@sqlite.org/sqlite-wasm/sqlite3.wasm'];
const beside = [...engines, ...Object.values(packagedFiles), ...fontFiles];
for (const file of beside) copyFileSync(resolve(file), new URL(basename(file), pieces));
const demo = new URL('src/library/demo/', root);
for (const [file, bytes] of Object.entries(packDemoData(await makeDemoData())))
  writeFileSync(new URL(file, pieces), bytes);
cpSync(new URL('pictures/', demo), new URL('pictures/', pieces), { recursive: true });
const bundled = [command, workers].flatMap(({ metafile }) => Object.keys(metafile.inputs));
const inputs = [...bundled, ...beside.map((file) => `node_modules/${file}`)];
writeFileSync(new URL('THIRD-PARTY-LICENSES', made), licences(inputs, root));
writeFileSync(new URL('sbom.cdx.json', made), billOfMaterials(inputs, root));

// Types of the one module that programs import. It names no type of another, so its own file is enough, unchecked.
const types = mkdtempSync(join(tmpdir(), 'types-'));
const compiler = resolve('typescript/package.json').replace('package.json', 'bin/tsc');
const alone = ['-p', 'src', '--noCheck', '--noResolve', '--outDir', types];
execFileSync(process.execPath, [compiler, ...alone], { cwd: root, stdio: 'inherit' });
copyFileSync(join(types, 'embed.d.ts'), new URL('embed.d.ts', made));
rmSync(types, { recursive: true });

// What runs leads to its pieces last, when all of it is there.
const name = contentName(pieces);
for (const entry of ['main.js', 'embed.js']) {
  const path = new URL(entry, made);
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll('./pieces/', `./${name}/`));
}
mkdirSync(dist, { recursive: true });
const current = new URL(`${name}/`, dist);
if (!existsSync(current)) renameSync(pieces, current);
utimesSync(current, new Date(), new Date());
rmSync(pieces, { recursive: true, force: true });
// Packages hold the last build alone, without what those need who run the sources.
writeFileSync(new URL('.npmignore', made), `/*/\n!/${name}/\n/board.html\n`);
const entries = readdirSync(made).sort((left, right) => Number(left === 'main.js') - Number(right === 'main.js'));
for (const entry of entries) renameSync(new URL(entry, made), new URL(entry, dist));

const isBuild = (entry: string) => entry.startsWith('build-');
const timeOf = (build: string) => statSync(new URL(build, dist)).mtimeMs;
const found = readdirSync(dist);
const builds = found.filter(isBuild).sort((left, right) => timeOf(right) - timeOf(left));
const others = found.filter((entry) => !isBuild(entry) && !entries.includes(entry));
for (const entry of [...others, ...builds.slice(kept)]) rmSync(new URL(entry, dist), { recursive: true });

/**
 * Puts what every session starts with into one piece. The bundler cuts it into many, by who else needs which part, and
 * to read and link them takes an eighth of a start. They stay as names, for what is loaded later.
 */
async function joinStart(outputs: Metafile['outputs']): Promise<Metafile> {
  const importsOf = (path: string, kind: string) =>
    (outputs[path]?.imports ?? []).filter((one) => !one.external && one.kind === kind).map((one) => one.path);
  const main = Object.keys(outputs).find((path) => outputs[path]?.entryPoint === 'src/main.ts') ?? '';
  const runs = importsOf(main, 'dynamic-import');
  const parts = new Set(runs.flatMap((run) => importsOf(run, 'import-statement')));
  for (const part of parts) for (const path of importsOf(part, 'import-statement')) parts.add(path);
  const named = [...parts].map((path, at) => {
    const exported = (outputs[path]?.exports ?? []).map((name) => ({ name, joined: `${name}_${at}` }));
    return { path, exported };
  });
  const names = fileURLToPath(new URL('start-names.js', pieces));
  const all = named.map(({ path, exported }) => {
    const list = exported.map(({ name, joined }) => `${name} as ${joined}`);
    return `export{${list}}from"./${basename(path)}";`;
  });
  writeFileSync(names, all.join('\n'));
  const { metafile } = await build({
    ...shared,
    outdir: fileURLToPath(pieces),
    entryPoints: [names, ...runs],
    entryNames: '[name]',
    // By its content it would be named after where it was built, too.
    chunkNames: 'start',
    splitting: true,
    allowOverwrite: true,
    plugins: [laterAsItIs],
  });
  for (const { path, exported } of named) {
    const list = exported.map(({ name, joined }) => `${joined} as ${name}`);
    writeFileSync(new URL(path, root), `export{${list}}from"./start-names.js";`);
  }
  return metafile;
}

function contentName(folder: URL): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const sums = files.map(({ parentPath, name }) => {
    const path = join(parentPath, name);
    return `${relative(fileURLToPath(folder), path)} ${hash('sha256', readFileSync(path))}`;
  });
  return `build-${hash('sha256', sums.sort().join('\n')).slice(0, 12)}`;
}

/** The board as one page that needs nothing else: its markup with its script and its styles. */
async function boardPage(): Promise<string> {
  // The colours of a host, where it has them.
  const hostColours = {
    paper: '--color-background-primary',
    panel: '--color-background-secondary',
    ink: '--color-text-primary',
    soft: '--color-text-secondary',
    line: '--color-border-primary',
  };
  const [script, styles] = await Promise.all([viewFile('main.tsx', { target: 'es2022' }), viewFile('board.css')]);
  const page = readFileSync(new URL('board.html', view), 'utf8')
    .replace(/\n\s*/g, '\n')
    .replace('/* styles */', () => createPaletteStyles(hostColours) + cardStyles + barStyles + styles)
    .replace('/* script */', () => script);
  // The token by which the tools of the board recognize the page. Equal builds have the same token on every machine.
  return page.replace('/* page token */', hash('sha256', page).slice(0, 16));
}

async function viewFile(file: string, options: BuildOptions = {}): Promise<string> {
  const entryPoints = [fileURLToPath(new URL(file, view))];
  const page = { bundle: true, write: false, format: 'esm', minify: true, charset: 'utf8' } as const;
  const { outputFiles } = await build({ ...options, ...page, legalComments: 'none', entryPoints });
  return outputFiles[0]?.text.trim() ?? '';
}
