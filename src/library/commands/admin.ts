import type { ImportReport } from '../import/import.ts';
import type { Library } from '../open.ts';
import type { KeyInfo, KeyOptions, Keys } from '../service/accounts.ts';
import { isSame } from '../service/request.ts';

/** What commands do with a library: with one of this process, or over a few routes with that of another. */
export type LibraryAccess = {
  keys: { [Method in keyof Keys]: (...given: Parameters<Keys[Method]>) => Awaitable<ReturnType<Keys[Method]>> };
  import: Library['import'];
};
type Awaitable<Value> = Value | Promise<Value>;

/**
 * Serves the library and, under `/-/`, these routes: to whoever can read the token in the owner's note, which is the
 * user who runs the server.
 */
export function withAdmin(library: Library, token: string): Library['fetch'] {
  async function answer(request: Request, path: string): Promise<unknown> {
    switch (`${request.method} ${path}`) {
      case 'GET owner':
        return {};
      case 'GET keys':
        return library.keys.list();
      case 'POST keys':
        return library.keys.create((await request.json()) as KeyOptions);
      case 'POST keys/revoke':
        return library.keys.revoke(String(((await request.json()) as { key?: unknown }).key));
      case 'POST import':
        return library.import(request.body ?? nothing());
      default:
        throw new Error(`This version of the library does not know ${path}.`);
    }
  }
  return async (request) => {
    const [, path] = /^\/-\/(.*)/.exec(new URL(request.url).pathname) ?? [];
    if (path === undefined) return library.fetch(request);
    if (!isSame(request.headers.get('authorization') ?? '', `Bearer ${token}`))
      return new Response(null, { status: 404 });
    try {
      return Response.json(await answer(request, path));
    } catch (error) {
      return Response.json({ message: (error as Error).message }, { status: 400 });
    }
  };
}

async function* nothing(): AsyncGenerator<string> {}

/** The library of another process, found by its note. @throws Error with the message of that process */
export function accessOver({ pid, url, token }: { pid: number; url: string | null; token: string }): LibraryAccess {
  async function ask<Answer>(method: string, path: string, body?: NonNullable<RequestInit['body']>): Promise<Answer> {
    const response = await fetch(`${url}/-/${path}`, {
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
    return answer as Answer;
  }
  return {
    keys: {
      create: (options) => ask<KeyInfo & { key: string }>('POST', 'keys', JSON.stringify(options ?? {})),
      list: () => ask<KeyInfo[]>('GET', 'keys'),
      revoke: (key) => ask<KeyInfo>('POST', 'keys/revoke', JSON.stringify({ key })),
    },
    import: (source) => ask<ImportReport>('POST', 'import', ReadableStream.from(bytesOf(source))),
  };
}

/** A request body takes bytes only. */
async function* bytesOf(source: AsyncIterable<string | Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) yield Buffer.from(chunk as Uint8Array);
}
