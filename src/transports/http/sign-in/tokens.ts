import { createHash, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Connection } from '../../../api/call.ts';
import type { Credentials } from '../../../api/client.ts';
import { parseJson } from '../../../api/json.ts';
import { createSeal, sealedIn } from '../../../storage/store/seal.ts';

/**
 * The open connections of one key: how often the tokens of each were renewed, and when last. A connection that is not
 * among them has ended, so that a state which was lost lets nobody in.
 */
type Connections = Record<string, { renewed: number; at: number }>;

export interface TokensOptions {
  secret: string;
  /** The address of the resource that tokens are for (RFC 8707). */
  resource: string;
  /** By tenant id; by default in this process. Rejects if they cannot be reached. */
  connections?: ReturnType<typeof connectionsHere> | undefined;
  /** In milliseconds since the epoch, by a clock that does not jump. */
  now: () => number;
  tenantIdOf(apiKey: string): string;
  /** Called before a connection is renewed: its spending counts for longer. */
  onRenewed?(connection: Connection): Promise<void>;
}

/** What a person agreed to on the page, and the challenge by which the client proves that it is the one that asked. */
interface Grant {
  apiKey: string;
  budget: number | undefined;
  clientId: string;
  redirectUri: string;
  /** SHA-256 of the client's verifier (RFC 7636). */
  challenge: string;
}

const minute = 60_000;
const day = 24 * 60 * minute;
const lifetimes = { code: minute, access: 60 * minute, refresh: 30 * day };
type Kind = keyof typeof lifetimes;

/** Connections of a key: one more ends the one that was renewed longest ago. Then the keys that this process holds. */
const maxConnections = 64;
const maxKeys = 10_000;

/** What a token holds. Short names, because it is part of every request. */
interface Content {
  /** API key. */
  k: string;
  /** Budget. */
  b?: number | undefined;
  /** Connection, and how often it had been renewed. */
  f: string;
  n: number;
  /** Client, as a hash. */
  c: string;
  /** Resource. */
  a: string;
  /** When it ends. */
  e: number;
  /** Of a code: redirect address and challenge. */
  r?: string;
  h?: string;
}

const hashOf = (text: string) => createHash('sha256').update(text).digest('base64url');

export function createTokens(options: TokensOptions) {
  const { secret, resource, connections = connectionsHere(), now, tenantIdOf } = options;
  const seal = createSeal({ secret, use: 'sign-in' });
  const write = (kind: Kind, content: Omit<Content, 'a' | 'e'>, at: number) => {
    const sealed: Content = { ...content, a: resource, e: at + lifetimes[kind] };
    return seal.close(kind, JSON.stringify(sealed)).toString('base64url');
  };
  /** A token of another kind, another secret or another resource is none. */
  const read = (kind: Kind, token: string): Content | undefined => {
    const text = seal.open(kind, sealedIn(token));
    const content = text && (parseJson(String(text)) as Content);
    return content?.a === resource ? content : undefined;
  };
  const credentialsIn = ({ k, b, f }: Content) => ({
    apiKey: k,
    tenantId: tenantIdOf(k),
    connection: { id: f, budget: b },
  });

  const remove = (tenantId: string, id: string) =>
    connections.update(tenantId, (all = {}) => {
      const { [id]: found, ...next } = all;
      return { ...(found && { next }), result: undefined };
    });

  /**
   * Renews a connection with a token that was renewed as often as the connection. A token that comes a second time ends
   * the connection, however late it comes. Returns the answer of the token endpoint (RFC 6749, 5.1).
   */
  const renew = async (content: Content) => {
    const at = now();
    const { tenantId, connection } = credentialsIn(content);
    await options.onRenewed?.(connection);
    const isRenewed = await connections.update(tenantId, (all = {}) => {
      const { [content.f]: found, ...others } = all;
      if (found === undefined) return { result: false };
      if (found.renewed !== content.n) return { next: others, result: false };
      if (content.e <= at) return { result: false };
      return { next: { ...others, [content.f]: { renewed: content.n + 1, at } }, result: true };
    });
    if (!isRenewed) return undefined;
    const { k, b, f, c } = content;
    const next = { k, b, f, n: content.n + 1, c };
    return {
      access_token: write('access', next, at),
      token_type: 'Bearer',
      expires_in: lifetimes.access / 1000,
      refresh_token: write('refresh', next, at),
    };
  };

  return {
    /** Opens a connection; returns the code with which its client gets its tokens, once. */
    open: async ({ apiKey, budget, clientId, redirectUri, challenge }: Grant) => {
      const at = now();
      const id = randomBytes(12).toString('base64url');
      await connections.update(tenantIdOf(apiKey), (all = {}) => {
        const lasting = Object.entries(all)
          .filter(([, one]) => one.at + (one.renewed === 0 ? lifetimes.code : lifetimes.refresh) > at)
          .sort(([, left], [, right]) => right.at - left.at)
          .slice(0, maxConnections - 1);
        return { next: { ...Object.fromEntries(lasting), [id]: { renewed: 0, at } }, result: undefined };
      });
      const bound = { c: hashOf(clientId), r: redirectUri, h: challenge };
      return write('code', { k: apiKey, b: budget, f: id, n: 0, ...bound }, at);
    },
    /** Undefined if the code is not valid for this client. A code that comes a second time ends its connection. */
    redeem: async (
      code: string,
      { clientId, redirectUri, verifier }: Record<'clientId' | 'redirectUri' | 'verifier', string>,
    ) => {
      const content = read('code', code);
      if (content === undefined || content.c !== hashOf(clientId) || content.h !== hashOf(verifier)) return undefined;
      return redirectUri === content.r ? renew(content) : undefined;
    },
    /** The same for a refresh token, which is renewed with it. */
    refresh: async (token: string, clientId: string) => {
      const content = read('refresh', token);
      return content?.c === hashOf(clientId) ? renew(content) : undefined;
    },
    credentials: async (token: string): Promise<Credentials | undefined> => {
      const content = read('access', token);
      if (content === undefined || content.e <= now()) return undefined;
      const credentials = credentialsIn(content);
      const all = await connections.read(credentials.tenantId);
      return all?.[content.f] && credentials;
    },
    /** Ends the connection of a token; false if it is another client's. A text that is no token counts as ended. */
    revoke: async (token: string, clientId: string) => {
      const content = read('refresh', token) ?? read('access', token);
      if (content === undefined) return true;
      if (content.c !== hashOf(clientId)) return false;
      await remove(tenantIdOf(content.k), content.f);
      return true;
    },
    end: remove,
  };
}

/** Connections of this process, which end with it. */
function connectionsHere() {
  const byTenant = new LRUCache<string, Connections>({ max: maxKeys });
  return {
    read: async (tenantId: string) => byTenant.get(tenantId),
    update: async <Result>(
      tenantId: string,
      change: (connections?: Connections) => { next?: Connections; result: Result },
    ) => {
      const { next, result } = change(byTenant.get(tenantId));
      if (next) byTenant.set(tenantId, next);
      return result;
    },
  };
}
