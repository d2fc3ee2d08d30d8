import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The licences of the packages that files of a bundle come from, as the bundle has to carry them. */
export function licences(inputs: readonly string[], root: URL): string {
  return packageFolders(inputs)
    .map((folder) => licenceOf(new URL(folder, root)))
    .join(`\n${'-'.repeat(80)}\n\n`);
}

/** The folders of the packages that files come from, in order. */
const packageFolders = (inputs: readonly string[]): string[] =>
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

interface Component {
  'bom-ref': string;
  scope?: string;
  properties?: object[];
}

interface Dependency {
  ref: string;
  dependsOn?: string[];
}

/**
 * The bill of materials of a bundle, as `npm sbom` writes it (CycloneDX), reduced to the packages that are bundled:
 * to npm they are all development dependencies. Without time, serial number and npm's version, so that the same files
 * give the same bytes.
 */
export function billOfMaterials(inputs: readonly string[], root: URL): string {
  const cwd = fileURLToPath(root);
  const { name, version, description, license } = readPackage(root);
  const bundled = new Set(packageFolders(inputs).map((folder) => idOf(readPackage(new URL(folder, root)))));
  const shell = process.platform === 'win32';
  const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only', '--loglevel=error'];
  const output = execFileSync('npm', args, { cwd, encoding: 'utf8', shell, maxBuffer: 2 ** 26 });
  const { serialNumber: _, metadata, components, dependencies, ...document } = JSON.parse(output);
  const found: Component[] = components.filter((component: Component) => bundled.has(component['bom-ref']));
  const missing = [...bundled].filter((id) => !found.some((component) => component['bom-ref'] === id));
  if (missing.length > 0) throw new Error(`package-lock.json lacks what is bundled: ${missing.join(', ')}`);
  const ref = `${name}@${version}`;
  const component = { 'bom-ref': ref, type: 'application', name, version, description, purl: `pkg:npm/${ref}` };
  return `${JSON.stringify({
    ...document,
    metadata: {
      lifecycles: metadata.lifecycles,
      component: { ...component, licenses: [{ license: { id: license } }] },
    },
    // To npm they are optional and of the development; here they are what people get.
    components: found.map(({ scope, properties, ...rest }) => rest),
    dependencies: [
      { ref, dependsOn: found.map((one) => one['bom-ref']) },
      ...dependencies
        .filter((one: Dependency) => bundled.has(one.ref))
        .map((one: Dependency) => ({
          ref: one.ref,
          dependsOn: (one.dependsOn ?? []).filter((other) => bundled.has(other)),
        })),
    ],
  })}\n`;
}

const readPackage = (folder: URL) => JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'));
const idOf = ({ name, version }: { name: string; version: string }) => `${name}@${version}`;
