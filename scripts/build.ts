/**
 * Builds `dist/`. The command is bundled into several files (chunks), so that a run loads only the chunks it needs and
 * no npm package has to be installed. White space is removed, but names are kept, so that stack traces remain readable.
 *
 * The chunks are in a folder named after a hash of their content. `main.js` refers to this folder only after it is
 * complete, so a starting server never finds missing chunks. The folders of the last few builds remain, so a running
 * server can still load its own chunks.
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
import { sqliteFile } from '../src/dataset/sql/compiled-sqlite.ts';
import { wasmFiles } from '../src/drawing/codecs.ts';
import { fontFiles } from '../src/drawing/text.ts';
import { writeDemoData } from '../src/library/demo/built-demo-data.ts';
import { makeDemoData } from '../src/library/demo/make-demo-data.ts';
import { libraryFilters, resultsPerPage } from '../src/library/search/filters.ts';
import { describedTools } from '../src/mcp/described-tools.ts';
import { skill, skillTools } from '../src/mcp/skill.ts';
import { cardStyles } from '../src/ui/ad-card.tsx';
import { barStyles } from '../src/ui/bars.tsx';
import { createPaletteStyles } from '../src/ui/palette.ts';
import { buildOptions, commonJsVariablesCode } from './bundle.ts';
import { collectLicenses, createBillOfMaterials } from './third-parties.ts';

const buildStartedAt = new Date();
const root = new URL('../', import.meta.url);
const distFolder = new URL('dist/', root);
/**
 * A temporary folder for the build. It is next to `dist`, because files can only be moved quickly within the same file
 * system.
 */
const buildFolder = new URL(`.building-${process.pid}/`, root);
const chunkFolder = new URL('pieces/', buildFolder);
const viewFolder = new URL('src/board/view/', root);
/** The maximum number of builds that stay in `dist`, including the latest one. */
const maxStoredBuilds = 5;
const { resolve } = createRequire(import.meta.url);

/**
 * An esbuild plugin that removes a JSON Schema validator from the MCP SDK. The SDK uses the validator only for requests
 * to clients, which this server never sends. Loading it would take 20% of the start time.
 */
const omitClientValidator: Plugin = {
  name: 'omit-client-validator',
  setup(bundle) {
    bundle.onLoad({ filter: /sdk\/dist\/esm\/validation\/ajv-provider\.js$/ }, () => {
      isClientValidatorOmitted = true;
      return { contents: 'export class AjvJsonSchemaValidator {}' };
    });
  },
};
let isClientValidatorOmitted = false;

/**
 * An esbuild plugin that replaces modules with the values that they compute: the descriptions of tools and filters, and
 * the skill. The server therefore does not compute these values at startup. Also replaces `demo-data.ts` with a module
 * that reads the files of the demo data.
 */
const replaceModulesByValues: Plugin = {
  name: 'replace-modules-by-values',
  setup(bundle) {
    bundle.onLoad({ filter: /src\/mcp\/described-tools\.ts$/ }, () => ({
      contents: `export const describedTools = ${JSON.stringify(describedTools)}`,
    }));
    bundle.onLoad({ filter: /src\/mcp\/skill\.ts$/ }, () => ({
      contents: `export const skill = ${JSON.stringify(skill)}, skillTools = ${JSON.stringify(skillTools)}`,
    }));
    bundle.onLoad({ filter: /src\/library\/search\/filters\.ts$/ }, () => ({
      contents: `export const libraryFilters = ${JSON.stringify(libraryFilters)}, resultsPerPage = ${JSON.stringify(resultsPerPage)}`,
    }));
    bundle.onLoad({ filter: /src\/library\/demo\/demo-data\.ts$/ }, ({ path }) => ({
      contents: `export { readDemoData } from './built-demo-data.ts'`,
      resolveDir: dirname(path),
    }));
  },
};

/**
 * An esbuild plugin for joining chunks. It leaves dynamically imported chunks and already joined chunks out of the
 * joined file, so that they are still loaded separately.
 */
const keepImportsOfOtherGroups: Plugin = {
  name: 'keep-imports-of-other-groups',
  setup(bundle) {
    bundle.onResolve({ filter: /./ }, ({ path, kind }) => {
      const isJoined = kind === 'import-statement' && path.endsWith('-names.js');
      return kind === 'dynamic-import' || isJoined ? { path, external: true } : undefined;
    });
  },
};

/**
 * Source files that the first tool call of a session loads one after another. Their chunks are joined into one file,
 * which loads faster.
 */
const firstCallFiles = ['src/call-modules.ts', 'src/mcp/call-tool.ts'];
/**
 * Source files that only some sessions load at startup: sessions that use a library on this machine, and sessions in
 * protocol revision 2026-07-28.
 */
const optionalStartupFiles = ['src/mcp/served-filters.ts', 'src/mcp/sdk-v2.ts'];
/** The paths of chunks that have already been joined into another file. They must not be joined a second time. */
const joinedChunks = new Set<string>();

/**
 * Escapes the characters outside ASCII that esbuild leaves in regular expressions. A single such character would make
 * V8 store the whole file with two bytes per character, and parsing the file would take a third longer.
 */
const escapeNonAscii = (code: string): string =>
  code.replace(/[^\0-\x7f]/g, (codeUnit) => `\\u${codeUnit.charCodeAt(0).toString(16).padStart(4, '0')}`);

process.once('exit', () => rmSync(buildFolder, { recursive: true, force: true }));
const sharedOptions = {
  absWorkingDir: fileURLToPath(root),
  outdir: fileURLToPath(buildFolder),
  ...buildOptions,
  legalComments: 'none',
  metafile: true,
} satisfies BuildOptions;
const commandBuild = await build({
  ...sharedOptions,
  entryPoints: ['src/main.ts', 'src/embed.ts'],
  splitting: true,
  chunkNames: 'pieces/[name]-[hash]',
  plugins: [omitClientValidator, replaceModulesByValues],
});
if (!isClientValidatorOmitted)
  throw new Error('The SDK has renamed the file of its JSON Schema validator. Change the path in omitClientValidator.');
const joinedMetafiles = await joinChunks();
// Build the worker threads separately. Otherwise the bundler would move the code that they share with the command into
// additional chunks.
const workerBuild = await build({
  ...sharedOptions,
  entryPoints: { 'pieces/sql-worker': 'src/dataset/sql/worker.ts', 'pieces/picture-worker': 'src/pictures/worker.ts' },
});
const outputFiles = [commandBuild.metafile, ...joinedMetafiles, workerBuild.metafile].flatMap(({ outputs }) =>
  Object.keys(outputs),
);
for (const file of new Set(outputFiles)) {
  const path = new URL(file, root);
  const code = escapeNonAscii(readFileSync(path, 'utf8'));
  const needsVariables = /\b(?:require|__filename|__dirname)\b/.test(code);
  writeFileSync(path, needsVariables ? `${commonJsVariablesCode}\n${code}` : code);
}
chmodSync(new URL('main.js', buildFolder), 0o755);
// Write the page of the ad board twice. A bundled server reads the copy next to its chunks, and a server that runs from
// its sources reads the copy in `dist`.
for (const folder of [chunkFolder, buildFolder]) writeFileSync(new URL('board.html', folder), await renderBoardPage());

// The program looks for its SQLite engines, picture codecs and fonts in the folder of the chunk that reads them. Copy
// these files there.
const sqliteEngines = ['node-sqlite3-wasm/dist/node-sqlite3-wasm.wasm', sqliteFile];
const companionFiles = [...sqliteEngines, ...Object.values(wasmFiles), ...fontFiles];
for (const file of companionFiles) copyFileSync(resolve(file), new URL(basename(file), chunkFolder));
const demoFolder = new URL('src/library/demo/', root);
await writeDemoData(await makeDemoData(), chunkFolder);
cpSync(new URL('pictures/', demoFolder), new URL('pictures/', chunkFolder), { recursive: true });
const bundledInputs = [commandBuild, workerBuild].flatMap(({ metafile }) => Object.keys(metafile.inputs));
const inputs = [...bundledInputs, ...companionFiles.map((file) => `node_modules/${file}`)];
writeFileSync(new URL('THIRD-PARTY-LICENSES', buildFolder), collectLicenses(inputs, root));
writeFileSync(new URL('sbom.cdx.json', buildFolder), createBillOfMaterials(inputs, root));

// Generate type declarations only for `src/embed.ts`, because other programs import no other module. The types in this
// file refer to no other module.
const typesFolder = mkdtempSync(join(tmpdir(), 'types-'));
const compilerPath = resolve('typescript/package.json').replace('package.json', 'bin/tsc');
const compilerOptions = ['-p', 'src', '--noCheck', '--noResolve', '--outDir', typesFolder];
execFileSync(process.execPath, [compilerPath, ...compilerOptions], { cwd: root, stdio: 'inherit' });
copyFileSync(join(typesFolder, 'embed.d.ts'), new URL('embed.d.ts', buildFolder));
rmSync(typesFolder, { recursive: true });

// The final name of the chunk folder contains a hash of its files. The folder is complete now, so write this name into
// the entry files.
const buildName = computeBuildName(chunkFolder);
for (const entryFile of ['main.js', 'embed.js']) {
  const entryPath = new URL(entryFile, buildFolder);
  writeFileSync(entryPath, readFileSync(entryPath, 'utf8').replaceAll('./pieces/', `./${buildName}/`));
}
mkdirSync(distFolder, { recursive: true });
const currentFolder = new URL(`${buildName}/`, distFolder);
if (!existsSync(currentFolder)) renameSync(chunkFolder, currentFolder);
// Give the folder the time at which the build started. A source file that was changed during the build is then newer
// than the folder, so the tests can tell that the build is outdated.
utimesSync(currentFolder, buildStartedAt, buildStartedAt);
rmSync(chunkFolder, { recursive: true, force: true });
// Tell npm to publish only the latest build, without files that are needed only to run the sources.
writeFileSync(new URL('.npmignore', buildFolder), `/*/\n!/${buildName}/\n/board.html\n`);
const buildEntries = readdirSync(buildFolder).sort(
  (left, right) => Number(left === 'main.js') - Number(right === 'main.js'),
);
for (const entry of buildEntries) renameSync(new URL(entry, buildFolder), new URL(entry, distFolder));

const isBuild = (entryName: string) => entryName.startsWith('build-');
const readBuildTime = (buildFolderName: string) => statSync(new URL(buildFolderName, distFolder)).mtimeMs;
const distEntries = readdirSync(distFolder);
const builds = distEntries.filter(isBuild).sort((left, right) => readBuildTime(right) - readBuildTime(left));
const staleEntries = distEntries.filter((entry) => !isBuild(entry) && !buildEntries.includes(entry));
for (const entry of [...staleEntries, ...builds.slice(maxStoredBuilds)])
  rmSync(new URL(entry, distFolder), { recursive: true });

/**
 * Returns the paths of the chunks that a chunk imports. `importKind` selects static imports (`import-statement`) or
 * dynamic imports (`dynamic-import`).
 */
function listImportedChunks(path: string, importKind: 'import-statement' | 'dynamic-import'): string[] {
  const imports = commandBuild.metafile.outputs[path]?.imports ?? [];
  return imports.filter((chunk) => !chunk.external && chunk.kind === importKind).map((chunk) => chunk.path);
}

/** Returns the path of the chunk that the bundler created for a source file. */
function findChunkOfSource(sourceFile: string): string {
  const { outputs } = commandBuild.metafile;
  const chunkPath = Object.keys(outputs).find((output) => outputs[output]?.entryPoint === sourceFile);
  if (chunkPath === undefined)
    throw new Error(`No chunk begins with ${sourceFile}. Correct the lists of chunks to join.`);
  return chunkPath;
}

/**
 * Joins the chunks that a session loads at startup, for its first tool call, and when it opens the demo data. Without
 * this step there are about 150 chunks, and a first call loads about 75 of them. Loading that many files would take a
 * third of the time of the first call in demo mode, and an eighth of the start time.
 */
async function joinChunks(): Promise<Metafile[]> {
  const runChunks = listImportedChunks(findChunkOfSource('src/main.ts'), 'dynamic-import');
  const startChunks = runChunks.flatMap((path) => listImportedChunks(path, 'import-statement'));
  const firstCallChunks = collectImportedChunks(firstCallFiles);
  const optionalStartupChunks = collectImportedChunks(optionalStartupFiles);
  return [
    await joinChunkGroup('start', startChunks, runChunks),
    // Startup must not load code that only a first tool call needs. Therefore, the chunks that both startup and first
    // calls need are joined into a separate file.
    await joinChunkGroup('filters', [findChunkOfSource('src/library/open.ts')]),
    await joinChunkGroup('exports', [findChunkOfSource('src/storage/exports.ts')]),
    await joinChunkGroup(
      'shared',
      [...firstCallChunks].filter((path) => optionalStartupChunks.has(path)),
    ),
    await joinChunkGroup('call', firstCallFiles.map(findChunkOfSource)),
    await joinChunkGroup('demo', [findChunkOfSource('src/library/demo/demo.ts')]),
    await joinChunkGroup('research', [findChunkOfSource('src/board/board.ts')]),
  ];
}

/** Returns the chunks that contain the source files, and all chunks that these chunks import statically. */
function collectImportedChunks(sourceFiles: string[]): Set<string> {
  const chunks = new Set(sourceFiles.map(findChunkOfSource));
  for (const chunk of chunks) for (const path of listImportedChunks(chunk, 'import-statement')) chunks.add(path);
  return chunks;
}

/**
 * Joins chunks and their static imports into one file. Other chunks still import from the original chunks, so the
 * original chunks remain as files that only re-export names. Chunks that were already joined are omitted.
 * @param chunksToJoin the chunks whose code goes into the new file
 * @param importers chunks that are changed to import directly from the new file instead of the original chunks
 */
async function joinChunkGroup(groupName: string, chunksToJoin: string[], importers: string[] = []): Promise<Metafile> {
  const chunks = new Set(chunksToJoin.filter((path) => !joinedChunks.has(path)));
  for (const chunk of chunks)
    for (const path of listImportedChunks(chunk, 'import-statement')) if (!joinedChunks.has(path)) chunks.add(path);
  const chunkExports = [...chunks].map((path, index) => {
    const exported = commandBuild.metafile.outputs[path]?.exports ?? [];
    return { path, names: exported.map((name) => ({ name, joinedName: `${name}_${groupName}${index}` })) };
  });
  const namesFile = fileURLToPath(new URL(`${groupName}-names.js`, chunkFolder));
  const exportStatements = chunkExports.map(({ path, names }) => {
    const exportList = names.map(({ name, joinedName }) => `${name} as ${joinedName}`);
    return `export{${exportList}}from"./${basename(path)}";`;
  });
  writeFileSync(namesFile, exportStatements.join('\n'));
  const { metafile } = await build({
    ...sharedOptions,
    outdir: fileURLToPath(chunkFolder),
    entryPoints: [namesFile, ...importers],
    entryNames: '[name]',
    // Do not add a hash to the file name. The hash would depend on the path of the build folder, so builds of the same
    // sources would differ.
    chunkNames: groupName,
    splitting: true,
    allowOverwrite: true,
    plugins: [keepImportsOfOtherGroups],
  });
  for (const { path, names } of chunkExports) {
    const exportList = names.map(({ name, joinedName }) => `${joinedName} as ${name}`);
    writeFileSync(new URL(path, root), `export{${exportList}}from"./${groupName}-names.js";`);
    joinedChunks.add(path);
  }
  return metafile;
}

function computeBuildName(folder: URL): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const hashLines = files.map(({ parentPath, name }) => {
    const path = join(parentPath, name);
    return `${relative(fileURLToPath(folder), path)} ${hash('sha256', readFileSync(path))}`;
  });
  return `build-${hash('sha256', hashLines.sort().join('\n')).slice(0, 12)}`;
}

/** Builds the page of the ad board: one HTML file that contains its script and styles. */
async function renderBoardPage(): Promise<string> {
  // The CSS variables with which an MCP host can override the colors of the board.
  const hostColorVariables = {
    paper: '--color-background-primary',
    panel: '--color-background-secondary',
    ink: '--color-text-primary',
    soft: '--color-text-secondary',
    line: '--color-border-primary',
  };
  const [script, styles] = await Promise.all([
    bundleViewFile('main.tsx', { target: 'es2022' }),
    bundleViewFile('board.css'),
  ]);
  const pageHtml = readFileSync(new URL('board.html', viewFolder), 'utf8')
    .replace(/\n\s*/g, '\n')
    .replace('/* styles */', () => createPaletteStyles(hostColorVariables) + cardStyles + barStyles + styles)
    .replace('/* script */', () => script);
  // Insert a token into the page. The tools for the board return data only to callers that send this token. It is a
  // hash of the page, so identical builds have the same token.
  return pageHtml.replace('/* page token */', hash('sha256', pageHtml).slice(0, 16));
}

async function bundleViewFile(file: string, options: BuildOptions = {}): Promise<string> {
  const entryPoints = [fileURLToPath(new URL(file, viewFolder))];
  const viewOptions = { bundle: true, write: false, format: 'esm', minify: true, charset: 'utf8' } as const;
  const { outputFiles } = await build({ ...options, ...viewOptions, legalComments: 'none', entryPoints });
  return outputFiles[0]?.text.trim() ?? '';
}
