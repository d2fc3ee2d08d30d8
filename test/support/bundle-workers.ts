import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { buildOptions, commonJsVariablesCode } from '../../scripts/bundle.ts';
import { wasmFiles } from '../../src/drawing/codecs.ts';
import { fontFiles } from '../../src/drawing/text.ts';
import { workersFolder } from './start-bundled-worker.ts';

const { resolve } = createRequire(import.meta.url);

/** Bundles the workers once for all tests, because starting a worker from TypeScript takes half a second. */
export async function setup(): Promise<void> {
  const src = fileURLToPath(new URL('../../src/', import.meta.url));
  const { metafile } = await build({
    entryPoints: { 'sql-worker': `${src}dataset/sql/worker.ts`, 'picture-worker': `${src}pictures/worker.ts` },
    ...buildOptions,
    outdir: workersFolder,
    metafile: true,
    logLevel: 'error',
  });
  for (const file of Object.keys(metafile.outputs))
    writeFileSync(file, `${commonJsVariablesCode}\n${readFileSync(file, 'utf8')}`);
  for (const file of [...Object.values(wasmFiles), ...fontFiles])
    copyFileSync(resolve(file), join(workersFolder, basename(file)));
}
