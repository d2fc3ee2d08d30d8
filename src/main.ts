#!/usr/bin/env node
import module from 'node:module';
import { fileURLToPath } from 'node:url';

keepCompiledCode();
// Imported after that, because code loaded before it is compiled again at every start.
await import('./cli/run.ts');

/**
 * Keeps compiled code for the next start if Node can (22.1 and later): beside the program, because other users could
 * write to a temporary folder. If the folder cannot be written, nothing is stored.
 */
function keepCompiledCode(): void {
  const { enableCompileCache } = module as { enableCompileCache?(folder: string): unknown };
  enableCompileCache?.(fileURLToPath(new URL('../node_modules/.cache/ad-library-mcp', import.meta.url)));
}
