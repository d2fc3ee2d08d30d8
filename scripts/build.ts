/**
 * Builds `dist/`: the command as one bundle in a few pieces, so that a run loads only what it needs and nothing is
 * left to install. Names stay readable, because stack traces are read by people; white space goes.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build, type Plugin } from 'esbuild';
import { describedTools } from '../src/mcp/described-tools.ts';
import { packagedFiles } from '../src/raster/packaged-file.ts';
import { boardPage } from './board-page.ts';
import { licences } from './licences.ts';
import { billOfMaterials } from './sbom.ts';

const root = new URL('../', import.meta.url);
const dist = new URL('dist/', root);
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

/** What is told of the tools, in place of the code that works it out. */
const withDescribedTools: Plugin = {
  name: 'with-described-tools',
  setup(bundle) {
    bundle.onLoad({ filter: /src\/mcp\/described-tools\.ts$/ }, () => ({
      contents: `export const describedTools = ${JSON.stringify(describedTools)}`,
    }));
  },
};

rmSync(dist, { recursive: true, force: true });
const shared = {
  absWorkingDir: fileURLToPath(root),
  outdir: 'dist',
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  metafile: true,
} satisfies BuildOptions;
const command = await build({
  ...shared,
  entryPoints: ['src/main.ts', 'src/embed.ts'],
  splitting: true,
  plugins: [withoutClientValidator, withDescribedTools],
});
// Each by itself, so that the command is not cut into more pieces for what a worker shares with it.
const workers = await build({
  ...shared,
  entryPoints: { 'sql-worker': 'src/dataset/sql/worker.ts', 'picture-worker': 'src/pictures/worker.ts' },
});
for (const file of [command, workers].flatMap(({ metafile }) => Object.keys(metafile.outputs))) {
  const path = new URL(file, root);
  const code = readFileSync(path, 'utf8');
  if (/\b(?:require|__filename|__dirname)\b/.test(code)) writeFileSync(path, `${commonJs}\n${code}`);
}
chmodSync(new URL('main.js', dist), 0o755);
writeFileSync(new URL('board.html', dist), await boardPage());

// What is read while the program runs is looked for beside the piece that reads it.
const engines = ['node-sqlite3-wasm/dist/node-sqlite3-wasm.wasm', '@sqlite.org/sqlite-wasm/sqlite3.wasm'];
const beside = [...engines, ...Object.values(packagedFiles)];
for (const file of beside) copyFileSync(resolve(file), new URL(basename(file), dist));
cpSync(new URL('src/library/demo/pictures/', root), new URL('pictures/', dist), { recursive: true });
const bundled = [command, workers].flatMap(({ metafile }) => Object.keys(metafile.inputs));
const inputs = [...bundled, ...beside.map((file) => `node_modules/${file}`)];
writeFileSync(new URL('THIRD-PARTY-LICENSES', dist), licences(inputs, root));
writeFileSync(new URL('sbom.cdx.json', dist), billOfMaterials(inputs, root));

// Types of the one module that programs import. It names no type of another, so its own file is enough.
const types = mkdtempSync(join(tmpdir(), 'types-'));
execFileSync(
  process.execPath,
  [resolve('typescript/package.json').replace('package.json', 'bin/tsc'), '-p', 'src', '--outDir', types],
  {
    cwd: root,
    stdio: 'inherit',
  },
);
copyFileSync(join(types, 'embed.d.ts'), new URL('embed.d.ts', dist));
rmSync(types, { recursive: true });
