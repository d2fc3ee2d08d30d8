/**
 * The public interface of this folder. Other folders open a library here, and then call its `fetch` or `callApi`
 * method. Most other modules of this folder are loaded only when a library is opened.
 */

import { setFlagsFromString } from 'node:v8';
import { createLazyGetter } from '../lazy-getter.ts';
import type { DemoOptions } from './demo/demo.ts';
import { demoKey } from './demo/demo-key.ts';
import type { LibraryOptions } from './service/context.ts';
import type { ApiRequest } from './service/request.ts';
import type { OpenLibrary } from './service/service.ts';

export { libraryFilters } from './search/filters.ts';
export type { Library } from './service/service.ts';

/** Opens a local library. Loads the modules of the library on the first call. */
export const openLibrary = async (options: LibraryOptions): Promise<OpenLibrary> =>
  (await import('./service/service.ts')).openLibrary(options);

/**
 * A V8 flag that lets the young generation (the memory for new objects) grow to its maximum in one step. By default, V8
 * doubles it several times, with a garbage collection before each step. In demo mode, these collections take a tenth of
 * the CPU time of the first call.
 */
const heapGrowthFlag = '--semi-space-growth-factor=16';

/**
 * Creates a library with demo data. The data is loaded at the first request, because many sessions only list the tools
 * and never need the data.
 */
export function createDemoLibrary(options: DemoOptions) {
  setFlagsFromString(heapGrowthFlag);
  // Opening can fail, e.g. because the folder for temporary files is full. The next request then tries again.
  const getDemoLibrary = createLazyGetter(async () => (await import('./demo/demo.ts')).openDemoLibrary(options));
  return {
    apiKey: demoKey,
    fetch: async (request: Request) => (await getDemoLibrary()).library.fetch(request),
    callApi: async (request: ApiRequest) => (await getDemoLibrary()).library.callApi(request),
    close: async () => (await getDemoLibrary.getIfCreated())?.library.close(),
  };
}
