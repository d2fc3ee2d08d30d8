import { openDemoLibrary } from '../../src/library/demo/demo.ts';
import type { Library } from '../../src/library/open.ts';
import type { KeyOptions } from '../../src/library/service/accounts.ts';
import { listen } from '../../src/serve/http/server.ts';

/** The local library with demo data over real HTTP, and what reached it. */
export interface TestService {
  baseUrl: string;
  apiKey: string;
  library: Library;
  /** `GET /v1/credits`, in the order the requests came in, without those of the API's description. */
  requests: string[];
  /** Requests but those of `GET /v1/credits`, which explain errors. */
  paid(): number;
  createKey(options?: KeyOptions): string;
  close(): Promise<void>;
}

export async function startService({ now = Date.now }: { now?: () => number } = {}): Promise<TestService> {
  const { library, apiKey } = await openDemoLibrary({ now });
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
    baseUrl: listener.address,
    apiKey,
    library,
    requests,
    paid: () => requests.filter((request) => /\/(search|items)$|\/v1\/(ads|pages)\//.test(request)).length,
    createKey: (options) => library.keys.create(options).key,
    close: async () => {
      await listener.close(0);
      library.close();
    },
  };
}
