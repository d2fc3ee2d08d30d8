import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * Collects the license texts of all packages in a bundle. Most licenses require that every copy of the code includes
 * the license text.
 */
export function collectLicenses(bundledFiles: readonly string[], root: URL): string {
  return listPackageFolders(bundledFiles)
    .map((folder) => readLicense(new URL(folder, root)))
    .join(`\n${'-'.repeat(80)}\n\n`);
}

/** Returns the sorted folders of the npm packages that contain the files, e.g. `node_modules/zod/`. */
const listPackageFolders = (files: readonly string[]): string[] =>
  [...new Set(files.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+\//.exec(file)?.[0] ?? []))].sort();

function readLicense(folder: URL): string {
  const { name, version, license } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.\w+)?$/i.test(entry));
  const licenseUrl = file === undefined ? (licenseFiles[name] ?? standardLicenseFiles[license]) : new URL(file, folder);
  if (license === undefined || licenseUrl === undefined)
    throw new Error(`${name} states no licence, so it cannot be bundled.`);
  // Some packages contain code that was compiled from another project and has a different license. Include this
  // license, too.
  const licenseUrls = [licenseUrl, new URL('codec/LICENSE.codec.md', folder)].filter((url) => existsSync(url));
  return `${name} ${version} (${license})\n\n${licenseUrls.map((url) => readFileSync(url, 'utf8').trim()).join('\n\n')}\n`;
}

/**
 * Files with the texts of standard licenses, for packages that name a license but do not include its text. Each file
 * comes from another package with the same license.
 */
const standardLicenseFiles: Record<string, URL> = {
  'Apache-2.0': new URL('../node_modules/typescript/LICENSE', import.meta.url),
};

/** License texts that a package publishes only in its repository or README. The keys are package names. */
const licenseFiles: Record<string, URL> = {
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
 * Creates the bill of materials of a bundle (a list of its packages) in CycloneDX format, from the output of `npm
 * sbom`. Lists only packages in the bundle. Omits the time, the serial number and the npm version, so that the same
 * files produce identical bytes.
 */
export function createBillOfMaterials(bundledFiles: readonly string[], root: URL): string {
  const cwd = fileURLToPath(root);
  const { name, version, description, license } = readPackage(root);
  const bundledPackageIds = new Set(
    listPackageFolders(bundledFiles).map((folder) => formatPackageId(readPackage(new URL(folder, root)))),
  );
  const shell = process.platform === 'win32';
  const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only', '--loglevel=error'];
  const output = execFileSync('npm', args, { cwd, encoding: 'utf8', shell, maxBuffer: 2 ** 26 });
  const { serialNumber: _, metadata, components, dependencies, ...document } = JSON.parse(output);
  const bundledComponents: Component[] = components.filter((component: Component) =>
    bundledPackageIds.has(component['bom-ref']),
  );
  const missingIds = [...bundledPackageIds].filter(
    (id) => !bundledComponents.some((component) => component['bom-ref'] === id),
  );
  if (missingIds.length > 0)
    throw new Error(`package-lock.json lacks these bundled packages: ${missingIds.join(', ')}`);
  const rootRef = `${name}@${version}`;
  const component = { 'bom-ref': rootRef, type: 'application', name, version, description, purl: `pkg:npm/${rootRef}` };
  return `${JSON.stringify({
    ...document,
    metadata: {
      lifecycles: metadata.lifecycles,
      component: { ...component, licenses: [{ license: { id: license } }] },
    },
    // npm marks these packages as optional or as development dependencies (`scope` and `properties`). Remove these
    // marks, because the packages are regular components of the bundle.
    components: bundledComponents.map(({ scope, properties, ...component }) => component),
    dependencies: [
      { ref: rootRef, dependsOn: bundledComponents.map((component) => component['bom-ref']) },
      ...dependencies
        .filter((dependency: Dependency) => bundledPackageIds.has(dependency.ref))
        .map((dependency: Dependency) => ({
          ref: dependency.ref,
          dependsOn: (dependency.dependsOn ?? []).filter((packageId) => bundledPackageIds.has(packageId)),
        })),
    ],
  })}\n`;
}

const readPackage = (folder: URL) => JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'));
const formatPackageId = ({ name, version }: { name: string; version: string }) => `${name}@${version}`;
