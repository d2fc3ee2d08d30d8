/**
 * The door of this folder: other folders open a library here and call it by `fetch`. Everything else is loaded when a
 * library is opened; only the filters are known before.
 */
import type { DemoOptions, openDemoLibrary } from './demo/demo.ts';
import { demoKey } from './demo/demo-key.ts';
import type { LibraryOptions, OpenLibrary } from './service/service.ts';

export { libraryFilters } from './search/filters.ts';
export type { Library } from './service/service.ts';

/** See service.ts. */
export const openLibrary = async (options: LibraryOptions): Promise<OpenLibrary> =>
  (await import('./service/service.ts')).openLibrary(options);

/** Returns a library with demo data, which is opened for the first request: many sessions list the tools and call none. */
export function createDemoLibrary(options: DemoOptions) {
  let opened: ReturnType<typeof openDemoLibrary> | undefined;
  const open = () => {
    opened ??= import('./demo/demo.ts').then(({ openDemoLibrary }) => openDemoLibrary(options));
    return opened;
  };
  return {
    apiKey: demoKey,
    fetch: async (request: Request) => (await open()).library.fetch(request),
    close: async () => (await opened)?.library.close(),
  };
}
