import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { BuildOptions } from 'esbuild';
import { strToU8, type ZipOptions, zipSync } from 'fflate';

const root = new URL('../', import.meta.url);
const readProjectFile = (path: string) => readFileSync(new URL(path, root));

/**
 * The esbuild options of `npm run build`. Benchmarks use the same options for the programs that they compare with the
 * server, so that the comparison is fair.
 */
export const buildOptions = {
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  minifySyntax: true,
  minifyWhitespace: true,
} satisfies BuildOptions;

/**
 * Code that defines `require`, `__filename` and `__dirname` for bundled CommonJS packages. Only files that use these
 * variables get the code, because adding it to every chunk would increase the start time by 10%.
 */
export const commonJsVariablesCode = [
  `import { createRequire as requireFrom } from 'node:module';`,
  'const require = requireFrom(import.meta.url), __filename = import.meta.filename, __dirname = import.meta.dirname;',
].join('');

/**
 * Checks that the URLs of privacy policies use https. MCP hosts show these URLs as links before installation. Returns a
 * message for each invalid URL.
 */
export function findPolicyProblems(policyUrls: readonly string[]): string[] {
  const isHttpsUrl = (url: string) => URL.canParse(url) && new URL(url).protocol === 'https:';
  return policyUrls
    .filter((url) => !isHttpsUrl(url))
    .map((url) => `${JSON.stringify(url)} is not the URL of a privacy policy, such as https://example.com/privacy`);
}

/**
 * Packs the desktop bundle (MCPB) from `dist/`. The same files produce identical bytes on every machine, so that anyone
 * can verify the contents of a bundle.
 */
export function packBundle(addedPolicyUrls: readonly string[] = []): {
  fileName: string;
  bytes: Uint8Array;
  policyUrls: string[];
} {
  const manifest = JSON.parse(String(readProjectFile('manifest.json')));
  const policyUrls = [...manifest.privacy_policies, ...addedPolicyUrls];
  const bytes = zipFiles({
    'manifest.json': encodeJson({ ...manifest, privacy_policies: policyUrls }),
    'icon.png': readProjectFile('docs/pictures/icon.png'),
    [manifest.screenshots[0]]: readProjectFile(`docs/pictures/${manifest.screenshots[0]}`),
    ...readServerFiles(),
  });
  return { fileName: `ad-library-mcp-${manifest.version}.mcpb`, bytes, policyUrls };
}

/** Returns the files of the built server that a host needs to run the server over stdio. The keys are file paths. */
export function readServerFiles(): Record<string, Uint8Array> {
  const { name, version, license, type, engines } = JSON.parse(String(readProjectFile('package.json')));
  const files: Record<string, Uint8Array> = {
    // This `package.json` only tells Node that the other files are ES modules. It has no dependencies and cannot be
    // used to install the server with npm.
    'package.json': encodeJson({ name, version, license, type, engines }),
    LICENSE: readProjectFile('LICENSE'),
  };
  for (const file of listNeededFiles().sort()) files[file] = readProjectFile(file);
  return files;
}

/**
 * Returns the files as a ZIP archive. The bytes of the archive depend only on the files, not on the time or the
 * machine.
 */
export function zipFiles(files: Record<string, Uint8Array>): Uint8Array {
  const fileOptions: ZipOptions = { os: 3, attrs: 0o644 << 16 };
  const entries = Object.entries(files).map(([path, content]): [string, [Uint8Array, ZipOptions]] => [
    path,
    [content, fileOptions],
  ]);
  // Use a fixed time, so that archives of the same files are identical. It is the earliest time that a ZIP archive can
  // store, in local time, because ZIP archives store local times.
  return zipSync(Object.fromEntries(entries), { level: 9, mtime: new Date(1980, 0, 1) });
}

const listFiles = (folder: string): string[] =>
  readdirSync(new URL(folder, root), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? listFiles(`${folder}${entry.name}/`) : `${folder}${entry.name}`,
  );

/** Returns the folder with the code and data of the latest build, e.g. `dist/build-1a2b3c4d5e6f/`. */
export function findLatestBuildFolder(): string {
  const [folderName = ''] = /build-\w+/.exec(String(readProjectFile('dist/main.js'))) ?? [];
  return `dist/${folderName}/`;
}

/** Returns the files of the latest build. `dist` may also contain earlier builds. */
export function listLatestBuild(): string[] {
  const buildFolder = findLatestBuildFolder();
  return listFiles('dist/').filter(
    (file) => !/^dist\/(?:\.npmignore$|board\.html$|build-)/.test(file) || file.startsWith(buildFolder),
  );
}

/**
 * Matches the names of code files (chunks) that a desktop host does not need, e.g. `serve-1a2b3c4d.js`. Such a host
 * only starts the server over stdio, and never runs other commands or replicas.
 */
const unneededChunkPattern =
  /^(?:serve|library|import|call|metrics|sign-in|replica-state|open-store|redis|postgres)-\w{8}\.js$/;

/**
 * Returns the code files (chunks) that `main.js` can load when the server runs over stdio, and all files that are not
 * code.
 */
function listNeededFiles(): string[] {
  const filesByName = new Map(listLatestBuild().map((file) => [basename(file), file]));
  const loadedFiles = new Set<string>();
  const addChunk = (chunkName: string) => {
    const file = filesByName.get(chunkName);
    if (file === undefined || loadedFiles.has(file) || unneededChunkPattern.test(chunkName)) return;
    loadedFiles.add(file);
    for (const [importedName] of String(readProjectFile(file)).matchAll(/[\w.-]+\.js\b/g)) addChunk(importedName);
  };
  addChunk('main.js');
  return [...filesByName.values()].filter((file) => loadedFiles.has(file) || !/\.(?:js|d\.ts)$/.test(file));
}

export const encodeJson = (value: object): Uint8Array => strToU8(`${JSON.stringify(value, null, 2)}\n`);
