import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** The licences of the packages that files of a bundle come from, as the bundle has to carry them. */
export function licences(inputs: readonly string[], root: URL): string {
  return packageFolders(inputs)
    .map((folder) => licenceOf(new URL(folder, root)))
    .join(`\n${'-'.repeat(80)}\n\n`);
}

/** The folders of the packages that files come from, in order. */
export const packageFolders = (inputs: readonly string[]): string[] =>
  [...new Set(inputs.flatMap((input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+\//.exec(input)?.[0] ?? []))].sort();

function licenceOf(folder: URL): string {
  const { name, version, license } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.\w+)?$/i.test(entry));
  const text = file === undefined ? (ownTexts[name] ?? standardTexts[license]) : new URL(file, folder);
  if (license === undefined || text === undefined) throw new Error(`${name} says no licence: it cannot be bundled.`);
  // Compiled from code that others wrote.
  const parts = [text, new URL('codec/LICENSE.codec.md', folder)].filter((part) => existsSync(part));
  return `${name} ${version} (${license})\n\n${parts.map((part) => readFileSync(part, 'utf8').trim()).join('\n\n')}\n`;
}

/** For packages that name a licence and leave its text out: the same text from another package. */
const standardTexts: Record<string, URL> = {
  'Apache-2.0': new URL('../node_modules/typescript/LICENSE', import.meta.url),
};

/** For packages whose repository or README has the text, and whose archive has no file of it. */
const ownTexts: Record<string, URL> = {
  '@redis/client': new URL('licences/redis-client.txt', import.meta.url),
  'pg-types': new URL('licences/pg-types.txt', import.meta.url),
  pgpass: new URL('licences/pgpass.txt', import.meta.url),
};
