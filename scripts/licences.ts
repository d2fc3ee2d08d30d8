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
  if (license === undefined || file === undefined) throw new Error(`${name} says no licence: it cannot be bundled.`);
  return `${name} ${version} (${license})\n\n${readFileSync(new URL(file, folder), 'utf8').trim()}\n`;
}
