import { readFileSync } from 'node:fs';
import { createLazyGetter } from '../../lazy-getter.ts';
import { locatePackagedFile } from '../../packaged-files.ts';
import { postponeWebAssemblyOptimization } from '../../webassembly-start.ts';

/** The path of the WebAssembly file of SQLite in its npm package. The build copies the file next to the bundle. */
export const sqliteFile = '@sqlite.org/sqlite-wasm/sqlite3.wasm';

/**
 * Returns the compiled code of SQLite. The code is compiled once and stays in memory, and all workers of the process
 * share it. A new worker therefore starts faster, and runs the functions of SQLite that V8 has already optimized for
 * earlier workers. Workers share only the code, and no data.
 */
export const getCompiledSqlite = createLazyGetter(() => {
  postponeWebAssemblyOptimization();
  return new WebAssembly.Module(readFileSync(locatePackagedFile(sqliteFile)));
});
