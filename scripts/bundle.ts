import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { BuildOptions } from 'esbuild';
import { strToU8, type ZipOptions, zipSync } from 'fflate';

const root = new URL('../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root));

/** How `npm run build` makes the command, so that benchmarks make what they compare it with in the same way. */
export const buildOptions = {
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  minifySyntax: true,
  minifyWhitespace: true,
} satisfies BuildOptions;

/** What is wrong with the addresses of privacy policies, which hosts show as links. */
export function policyProblems(addresses: readonly string[]): string[] {
  const isWeb = (address: string) => URL.canParse(address) && new URL(address).protocol === 'https:';
  return addresses
    .filter((address) => !isWeb(address))
    .map(
      (address) => `${JSON.stringify(address)} is no address of a privacy policy such as https://example.com/privacy`,
    );
}

/**
 * The desktop bundle (MCPB) of what `npm run build` left in `dist/`. The same files give the same bytes, on every
 * machine and day, so that anyone can check what a bundle was made of.
 */
export function packBundle(privacyPolicies: readonly string[] = []): {
  name: string;
  bytes: Uint8Array;
  policies: string[];
} {
  const manifest = JSON.parse(String(read('manifest.json')));
  const policies = [...manifest.privacy_policies, ...privacyPolicies];
  const { name, version, license, type, engines } = JSON.parse(String(read('package.json')));
  const files: Record<string, Uint8Array> = {
    'manifest.json': json({ ...manifest, privacy_policies: policies }),
    // Says that the files are ES modules, and no more: the bundle is not to be installed.
    'package.json': json({ name, version, license, type, engines }),
    LICENSE: read('LICENSE'),
    'icon.png': read('docs/pictures/icon.png'),
    [manifest.screenshots[0]]: read(`docs/pictures/${manifest.screenshots[0]}`),
  };
  for (const file of neededFiles().sort()) files[file] = read(file);
  const mode: ZipOptions = { os: 3, attrs: 0o644 << 16 };
  const entries = Object.entries(files).map(([path, content]): [string, [Uint8Array, ZipOptions]] => [
    path,
    [content, mode],
  ]);
  // The earliest time a zip can hold, in local time, which is how it is written.
  const bytes = zipSync(Object.fromEntries(entries), { level: 9, mtime: new Date(1980, 0, 1) });
  return { name: `${name}-${version}.mcpb`, bytes, policies };
}

const filesIn = (folder: string): string[] =>
  readdirSync(new URL(folder, root), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? filesIn(`${folder}${entry.name}/`) : `${folder}${entry.name}`,
  );

/** The files of the build that was made last, beside which earlier ones may lie. */
export function lastBuild(): string[] {
  const [pieces = ''] = /build-\w+/.exec(String(read('dist/main.js'))) ?? [];
  return filesIn('dist/').filter(
    (file) => !/^dist\/(?:\.npmignore$|board\.html$|build-)/.test(file) || file.startsWith(`dist/${pieces}/`),
  );
}

/** The code of other commands and of replicas: a desktop host starts the server over stdio. */
const forOthers = /^(?:serve|library|import|call|metrics|sign-in|replica-state|open-store|redis|postgres)-\w{8}\.js$/;

/** What `main.js` loads over stdio, and what is no code. */
function neededFiles(): string[] {
  const files = new Map(lastBuild().map((file) => [basename(file), file]));
  const loaded = new Set<string>();
  const follow = (name: string) => {
    const file = files.get(name);
    if (file === undefined || loaded.has(file) || forOthers.test(name)) return;
    loaded.add(file);
    for (const [next] of String(read(file)).matchAll(/[\w.-]+\.js\b/g)) follow(next);
  };
  follow('main.js');
  return [...files.values()].filter((file) => loaded.has(file) || !/\.(?:js|d\.ts)$/.test(file));
}

const json = (value: object) => strToU8(`${JSON.stringify(value, null, 2)}\n`);
