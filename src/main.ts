#!/usr/bin/env node
import module from 'node:module';
import { fileURLToPath } from 'node:url';

enableCompileCache();
// This import must come after the cache is enabled. Code that is loaded earlier is compiled again at every start.
await import('./cli/run.ts');

/**
 * Stores compiled code on disk, so that the next start is faster. This needs Node 22.1 or later. The cache is next to the
 * program and not in a temporary folder, where other users could replace the code. If the folder is not writable, nothing
 * is stored.
 */
function enableCompileCache(): void {
  const nodeModule = module as { enableCompileCache?(folder: string): unknown };
  nodeModule.enableCompileCache?.(fileURLToPath(new URL('../node_modules/.cache/ad-library-mcp', import.meta.url)));
}
