import type { Library } from '../../../src/library/open.ts';
import { listen } from '../../../src/serve/http/server.ts';

/** Serves a library on a free port of this machine. */
export async function onLoopback(fetch: Library['fetch'], { host = '127.0.0.1', port = 0 } = {}) {
  const { address, close } = await listen(fetch, { host, port, requestMs: 0 });
  return { address, close: () => close(5000) };
}
