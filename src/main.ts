#!/usr/bin/env node
import module from 'node:module';
import { fileURLToPath } from 'node:url';

exitIfNodeIsTooOld();
enableCompileCache();
// Import the command only after the compile cache is enabled. Node does not cache code that was loaded earlier, and
// would compile that code again at every start.
await import('./cli/run.ts');

/**
 * Enables Node's compile cache, which makes later starts faster. Requires Node 22.1 or later. The cache is stored next
 * to the program, because other users could replace the code in a shared temporary folder. If the program's folder is
 * not writable, nothing is cached.
 */
function enableCompileCache(): void {
  const nodeModule = module as { enableCompileCache?(folder: string): unknown };
  nodeModule.enableCompileCache?.(fileURLToPath(new URL('../node_modules/.cache/ad-library-mcp', import.meta.url)));
}

/**
 * Ends the process if this version of Node lacks `zlib.crc32`, which Node 20.19 and Node 22.2 have. Without this check,
 * the process would fail later, with an error about a missing export of Node.
 */
function exitIfNodeIsTooOld(): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 2) || (major === 20 && minor >= 19)) return;
  process.stderr.write(
    `ad-library-mcp: needs Node 20.19 or newer, but not 21, 22.0 or 22.1; this is Node ${process.versions.node}\n`,
  );
  process.exit(1);
}
