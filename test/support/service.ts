import { openDemoLibrary } from '../../src/library/demo/demo.ts';
import type { KeyOptions } from '../../src/library/service/accounts.ts';
import { listen } from '../../src/transports/http/server.ts';

/** Serves the local library with demo data over HTTP and records its requests. */
export async function startService({ now = Date.now } = {}) {
  const { library, apiKey } = await openDemoLibrary({ now });
  /** The requests in order of arrival, except requests for `/filters.json`. */
  const requests: string[] = [];
  const listener = await listen(
    (request) => {
      const { pathname } = new URL(request.url);
      if (pathname !== '/filters.json') requests.push(`${request.method} ${pathname}`);
      return library.fetch(request);
    },
    { host: '127.0.0.1', port: 0 },
  );
  return {
    ...{ baseUrl: listener.url, apiKey, library, requests },
    /** Returns the number of requests to paid operations. */
    countPaidRequests: () => requests.filter((request) => /\/(search|items)$|\/v1\/(ads|pages)\//.test(request)).length,
    createKey: (options?: KeyOptions) => library.keys.create(options).key,
    close: async () => {
      await listener.close(0);
      library.close();
    },
  };
}
