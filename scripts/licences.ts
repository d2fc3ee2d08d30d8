import { readdirSync, readFileSync } from 'node:fs';

/** The licences of the packages that files of a bundle come from, as the bundle has to carry them. */
export function licences(inputs: readonly string[], root: URL): string {
  const folders = new Set(inputs.flatMap((input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+\//.exec(input)?.[0] ?? []));
  return [...folders]
    .sort()
    .map((folder) => licenceOf(new URL(folder, root)))
    .join(`\n${'-'.repeat(80)}\n\n`);
}

function licenceOf(folder: URL): string {
  const { name, version, license } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.\w+)?$/i.test(entry));
  const text = file === undefined ? (ownTexts[name] ?? standardTexts[license]) : new URL(file, folder);
  if (license === undefined || text === undefined) throw new Error(`${name} says no licence: it cannot be bundled.`);
  return `${name} ${version} (${license})\n\n${readFileSync(text, 'utf8').trim()}\n`;
}

/** For packages that name a licence and leave its text out: the same text from another package. */
const standardTexts: Record<string, URL> = {
  'Apache-2.0': new URL('../node_modules/typescript/LICENSE', import.meta.url),
};

/** For packages whose repository has the text, with whose copyright it is, and whose archive leaves it out. */
const ownTexts: Record<string, URL> = {
  '@redis/client': new URL('licences/redis-client.txt', import.meta.url),
};
