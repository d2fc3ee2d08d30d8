import { createRequire } from 'node:module';
import { basename } from 'node:path';

/**
 * Returns the location of a file in an npm package. A server that runs from its TypeScript sources uses the file in
 * `node_modules`. A bundled server uses the copy next to the bundle.
 */
export function locatePackagedFile(packagePath: string): string | URL {
  const runsFromSources = import.meta.url.endsWith('.ts');
  return runsFromSources
    ? createRequire(import.meta.url).resolve(packagePath)
    : new URL(basename(packagePath), import.meta.url);
}
