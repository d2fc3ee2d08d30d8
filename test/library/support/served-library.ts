import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { openLibrary } from '../../../src/library/open.ts';
import type { KeyOptions } from '../../../src/library/service/accounts.ts';

/** 2026-03-15, half past ten in the morning, UTC. */
export const startOfTests = Date.UTC(2026, 2, 15, 10, 30);

export type LibraryResponse = {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  body: any;
};

export type AskOptions = { key?: string | undefined; body?: unknown; headers?: Record<string, string> };

/** A library in memory behind a real HTTP server, with a clock that the test moves. */
export async function serveLibrary() {
  const clock = { now: startOfTests };
  const errors: unknown[] = [];
  const library = await openLibrary({
    database: ':memory:',
    now: () => clock.now,
    onError: (error) => errors.push(error),
  });
  // No idle timeout: after a pause of a loaded machine the server would close a connection on which a request has just
  // been sent.
  const server = createAdaptorServer({
    fetch: library.fetch,
    overrideGlobalObjects: false,
    serverOptions: { keepAliveTimeout: 0 },
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const key = (options: KeyOptions = {}) => library.keys.create(options).key;

  async function ask(method: string, path: string, { key, body, headers }: AskOptions = {}): Promise<LibraryResponse> {
    const response = await fetch(base + path, {
      method,
      headers: {
        ...(key && { Authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = response.headers.get('content-type')?.startsWith('application/json');
    return { status: response.status, headers: response.headers, body: json && text ? JSON.parse(text) : text };
  }

  return {
    library,
    clock,
    errors,
    base,
    key,
    ask,
    load: (...records: unknown[]) => library.import(linesOf(records)),
    async close() {
      await new Promise((resolve) => server.close(resolve));
      library.close();
    },
  };
}

/** The same, with a key that has practically unlimited credits. */
export async function serveRich() {
  const served = await serveLibrary();
  return { served, key: served.key({ credits: 1e9, hourlyLimit: 1e9, dailyLimit: 1e9 }) };
}

export type ServedLibrary = Awaited<ReturnType<typeof serveLibrary>>;

export async function* linesOf(records: unknown[]) {
  for (const record of records) yield `${typeof record === 'string' ? record : JSON.stringify(record)}\n`;
}

/** The UUID with a number. */
export const uuid = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;

/** All pages of a search. */
export async function searchAll({ ask }: ServedLibrary, path: string, key: string, body: Record<string, unknown>) {
  const items = [];
  let cursor: string | null = null;
  let first: LibraryResponse | undefined;
  do {
    const answer: LibraryResponse = await ask('POST', path, { key, body: cursor === null ? body : { cursor } });
    if (answer.status !== 200) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`);
    first ??= answer;
    items.push(...answer.body.items);
    cursor = answer.body.cursor;
  } while (cursor !== null);
  return { items, totalHits: first.body.totalHits };
}
