import { setFlagsFromString } from 'node:v8';

/**
 * V8 flags that reduce the time until SQLite, a very large WebAssembly module, answers its first statements. The flags
 * apply to the whole process, including all other WebAssembly modules.
 *
 * - `--wasm-tiering-budget` postpones the optimization of WebAssembly. By default, V8 optimizes many functions of
 * SQLite while SQLite starts, which takes up to half a second of processor time in other threads. With this budget, V8
 * optimizes a function only after the function has run for a few hundred milliseconds, added up over all threads. V8
 * therefore still optimizes functions that run often or in long statements.
 * - `--wasm-lazy-validation` validates each function of the module when it is first called, instead of all functions
 * when the module is loaded.
 */
const startupFlags = ['--wasm-tiering-budget=400000000', '--wasm-lazy-validation'];

/**
 * Makes WebAssembly modules that this process loads later start faster. Their functions run unoptimized for longer.
 */
export function postponeWebAssemblyOptimization(): void {
  for (const flag of startupFlags) setFlagsFromString(flag);
}
