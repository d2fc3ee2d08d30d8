import { Hono } from 'hono';
import * as z from 'zod';
import type { Owner } from '../database/lock.ts';
import type { ImportReport } from '../import/import.ts';
import type { KeyInfo, KeyOptions } from '../service/accounts.ts';
import { isSame } from '../service/request.ts';
import type { Library } from '../service/service.ts';

/**
 * How commands in other processes reach a database that is being served: a few routes outside `/v1`, open to whoever
 * can read the token in the owner's note, which is the user who runs the server.
 */
export type LibraryAccess = {
  createKey(options: KeyOptions): Promise<KeyInfo & { key: string }>;
  listKeys(): Promise<KeyInfo[]>;
  revokeKey(keyIdOrPrefix: string): Promise<KeyInfo>;
  import(source: AsyncIterable<string | Uint8Array>): Promise<ImportReport>;
};

const KeyRequest = z.strictObject({
  name: z.string().optional(),
  scopes: z.array(z.string()).optional(),
  credits: z.number().optional(),
  hourlyLimit: z.number().optional(),
  dailyLimit: z.number().optional(),
  subscription: z.boolean().optional(),
  unmetered: z.boolean().optional(),
  accountOf: z.string().optional(),
});

const RevokeRequest = z.strictObject({ key: z.string() });

/** Serves the library and, under `/-/`, the admin routes. */
export function withAdmin(library: Library, token: string): (request: Request) => Promise<Response> {
  const admin = new Hono().basePath('/-');
  admin.use(async ({ req }, next) => {
    if (!isSame(req.header('authorization') ?? '', `Bearer ${token}`)) return new Response(null, { status: 404 });
    return next();
  });
  admin.get('/owner', ({ json }) => json({}));
  admin.get('/keys', ({ json }) => json(library.keys.list()));
  admin.post('/keys', async ({ req, json }) =>
    json(library.keys.create(KeyRequest.parse(await req.json()) as KeyOptions)),
  );
  admin.post('/keys/revoke', async ({ req, json }) =>
    json(library.keys.revoke(RevokeRequest.parse(await req.json()).key)),
  );
  admin.post('/import', async ({ req, json }) => json(await library.import(req.raw.body ?? nothing())));
  admin.onError((error, { json }) => json({ message: error.message }, 400));
  return async (request) =>
    new URL(request.url).pathname.startsWith('/-/') ? admin.fetch(request) : library.fetch(request);
}

async function* nothing(): AsyncGenerator<string> {}

/** The library of another process, found by its note. @throws Error with the owner's own message */
export function accessOver({ pid, url, token }: Owner): LibraryAccess {
  async function ask(method: string, path: string, body?: NonNullable<RequestInit['body']>): Promise<unknown> {
    const response = await fetch(`${url}/-${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}` },
      ...(body !== undefined && { body, duplex: 'half' }),
    }).catch((error: Error) => {
      throw new Error(
        `Process ${pid}, which serves the database at ${url}, broke off: ${String(error.cause ?? error)}.`,
      );
    });
    const answer = await response.json();
    if (!response.ok) throw new Error((answer as { message?: string }).message ?? `HTTP ${response.status}`);
    return answer;
  }
  return {
    createKey: async (options) => (await ask('POST', '/keys', JSON.stringify(options))) as KeyInfo & { key: string },
    listKeys: async () => (await ask('GET', '/keys')) as KeyInfo[],
    revokeKey: async (key) => (await ask('POST', '/keys/revoke', JSON.stringify({ key }))) as KeyInfo,
    import: async (source) => (await ask('POST', '/import', ReadableStream.from(bytesOf(source)))) as ImportReport,
  };
}

/** A request body takes bytes only. */
async function* bytesOf(source: AsyncIterable<string | Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
}

/** The library of this process. */
export const accessTo = (library: Library): LibraryAccess => ({
  createKey: async (options) => library.keys.create(options),
  listKeys: async () => library.keys.list(),
  revokeKey: async (key) => library.keys.revoke(key),
  import: (source) => library.import(source),
});
