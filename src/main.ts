#!/usr/bin/env node
import module from 'node:module';
import { fileURLToPath } from 'node:url';

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
