import { type Library, openLibrary } from '../../../src/library/open.ts';
import type { KeyOptions } from '../../../src/library/service/accounts.ts';
import { listen } from '../../../src/transports/http/server.ts';

/** The time that the clock of a test library shows at the start, in Unix milliseconds: 2026-03-15, 10:30 UTC. */
export const testStartTime = Date.UTC(2026, 2, 15, 10, 30);

interface RequestOptions {
  key?: string | undefined;
  body?: unknown;
  headers?: Record<string, string>;
}

/** Serves a library on the loopback interface, by default on a free port. */
export async function serveOnLoopback(fetch: Library['fetch'], { host = '127.0.0.1', port = 0 } = {}) {
  const { url, close } = await listen(fetch, { host, port, requestTimeoutMs: 0 });
  return { url, close: () => close(5000) };
}

/** Starts an HTTP server for an in-memory library. Tests can change `clock.now`. */
export async function startLibraryServer() {
  const clock = { now: testStartTime };
  const errors: unknown[] = [];
  const onError = (error: unknown) => errors.push(error);
  const library = await openLibrary({ database: ':memory:', now: () => clock.now, onError });
  const { url: baseUrl, close } = await serveOnLoopback(library.fetch);
  const createKey = (options: KeyOptions = {}) => library.keys.create(options).key;
  /** The default API key of requests, with practically unlimited credits. */
  const unlimitedKey = createKey({ credits: 1e9, hourlyLimit: 1e9, dailyLimit: 1e9 });

  async function request(method: string, path: string, { key, body, headers }: RequestOptions = {}) {
    const response = await fetch(baseUrl + path, {
      method,
      headers: {
        ...(key && { Authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== '';
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  }

  const get = (path: string, key = unlimitedKey) => request('GET', path, { key });
  const search = (body: unknown, { kind = 'ads', key = unlimitedKey } = {}) =>
    request('POST', `/v1/${kind}/search`, { key, body });

  return {
    ...{ library, clock, errors, baseUrl, createKey, unlimitedKey, request, get, search },
    /** Requests all result pages of a search. Returns all items without `appUrl`. */
    async searchAll(filters: Record<string, unknown>, kind = 'ads') {
      const items = [];
      let cursor: string | null = null;
      let totalHits: number | undefined;
      do {
        const { status, body } = await search(cursor === null ? filters : { cursor }, { kind });
        if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`);
        totalHits ??= body.totalHits;
        // biome-ignore lint/suspicious/noExplicitAny: tests read any field of the items
        items.push(...body.items.map(({ appUrl, ...item }: any) => item));
        cursor = body.cursor;
      } while (cursor !== null);
      return { items, totalHits };
    },
    /** Imports records as JSON Lines. A string is imported as a line without changes, and any other value as JSON. */
    importRecords: (...records: unknown[]) => library.import(toLines(records)),
    async close() {
      await close();
      library.close();
    },
  };
}

/** A library that is served over HTTP, with functions that send requests to it. */
export type LibraryServer = Awaited<ReturnType<typeof startLibraryServer>>;

async function* toLines(records: unknown[]) {
  for (const record of records) yield `${typeof record === 'string' ? record : JSON.stringify(record)}\n`;
}

/** Returns a UUID that ends with this number. */
export const createUuid = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
