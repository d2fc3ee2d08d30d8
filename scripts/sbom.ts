import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { packageFolders } from './licences.ts';

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
