import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findLatestBuildFolder } from '../../scripts/bundle.ts';
import { type DemoData, readDemoData as readBuiltDemoData } from '../../src/library/demo/built-demo-data.ts';
import { readDemoData as generateDemoData } from '../../src/library/demo/demo-data.ts';

const root = new URL('../../', import.meta.url);
const currentBuildFolder = findCurrentBuildFolder();

/**
 * Returns the demo data from the latest build, because generating it takes several seconds in each test process. If
 * there is no build, or if a source file has changed since, generates the data.
 */
export const readDemoData = (): Promise<DemoData> =>
  currentBuildFolder ? readBuiltDemoData(currentBuildFolder) : generateDemoData();

/**
 * Returns the folder of the latest build. Returns undefined if a source file is newer than the build. Also compares the
 * folders of source files, whose time changes when a file is deleted.
 */
function findCurrentBuildFolder(): URL | undefined {
  if (!existsSync(new URL('dist/main.js', root))) return undefined;
  const folder = new URL(findLatestBuildFolder(), root);
  const buildTime = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const sourceFolder = fileURLToPath(new URL('src/', root));
  const sourceFiles = readdirSync(sourceFolder, { recursive: true, encoding: 'utf8' });
  const isCurrent = sourceFiles.every((file) => statSync(join(sourceFolder, file)).mtimeMs < buildTime);
  return isCurrent ? folder : undefined;
}
