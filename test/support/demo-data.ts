import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type DemoData, readDemoData as readBuiltDemoData } from '../../src/library/demo/built-demo-data.ts';

const root = new URL('../../', import.meta.url);

let demoDataPromise: Promise<DemoData> | undefined;

/**
 * Returns the demo data from the latest build, because generating it takes several seconds in each test process. If
 * there is no build, or if a source file has changed since, generates the data.
 */
export function readDemoData(): Promise<DemoData> {
  demoDataPromise ??= readCurrentDemoData();
  return demoDataPromise;
}

async function readCurrentDemoData(): Promise<DemoData> {
  const buildFolder = findCurrentBuild();
  if (buildFolder !== undefined) return readBuiltDemoData(buildFolder);
  const { makeDemoData } = await import('../../src/library/demo/make-demo-data.ts');
  return makeDemoData();
}

/**
 * Returns the folder of the latest build. Returns undefined if a source file is newer than the build. Also compares the
 * folders of source files, whose time changes when a file is deleted.
 */
function findCurrentBuild(): URL | undefined {
  const mainFile = new URL('dist/main.js', root);
  const [folderName] = existsSync(mainFile) ? (/build-\w+/.exec(readFileSync(mainFile, 'utf8')) ?? []) : [];
  if (folderName === undefined) return undefined;
  const folder = new URL(`dist/${folderName}/`, root);
  const buildTime = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const sourceFolder = fileURLToPath(new URL('src/', root));
  const sourceFiles = readdirSync(sourceFolder, { recursive: true, encoding: 'utf8' });
  const isCurrent = sourceFiles.every((file) => statSync(join(sourceFolder, file)).mtimeMs < buildTime);
  return isCurrent ? folder : undefined;
}
