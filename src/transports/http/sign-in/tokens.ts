import { createHash, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { SignInConnection } from '../../../api/call.ts';
import type { Credentials } from '../../../api/client.ts';
import { parseJson } from '../../../api/json.ts';
import { createEncryption, decodeToken } from '../../../storage/store/encryption.ts';

/**
 * The open sign-in connections of one API key, by connection id. `renewalCount` is the number of token renewals, and
 * `renewedAt` is the time of the last renewal. A connection that is missing in this record has ended. If the store
 * loses the record, all connections of the API key end.
 */
type OpenConnections = Record<string, { renewalCount: number; renewedAt: number }>;

/** The options of `createTokenIssuer`. */
export interface TokensOptions {
  /** The secret that encrypts the tokens. All replicas of the server use the same secret. */
  secret: string;
  /** The URL of the protected resource (the MCP endpoint) for which the tokens are issued (RFC 8707). */
  resource: string;
  /**
   * The store of open sign-in connections, by tenant id (a hash of the API key). By default, this store is in memory.
   * If replicas share a store and it is unreachable, its methods reject.
   */
  connectionStore?: ReturnType<typeof createMemoryConnectionStore> | undefined;
  /**
   * Returns the current time in milliseconds since the Unix epoch. This clock must not jump, because tokens would then
   * expire too early or too late.
   */
  now: () => number;
  getTenantId(apiKey: string): string;
  /**
   * Called before the tokens of a sign-in connection are renewed, so that the server stores the spending of the
   * connection for as long as the tokens are valid.
   */
  beforeRenewal?(connection: SignInConnection): Promise<void>;
}

/**
 * The API key and the credit budget that a user entered on the sign-in page, and the client that receives the tokens.
 */
interface Grant {
  apiKey: string;
  /** The maximum number of credits that the sign-in connection may spend. Undefined if there is no limit. */
  budget: number | undefined;
  clientId: string;
  redirectUri: string;
  /** The PKCE challenge: the SHA-256 hash of the verifier that the client must send with the code (RFC 7636). */
  codeChallenge: string;
}

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const tokenLifetimesMs = { code: minuteMs, access: 60 * minuteMs, refresh: 30 * dayMs };
type TokenKind = keyof typeof tokenLifetimesMs;

/**
 * The maximum number of sign-in connections per API key. If a user opens one more, the connection that was renewed
 * least recently ends.
 */
const maxConnectionsPerKey = 64;
/** The maximum number of API keys whose sign-in connections are stored in memory. */
const maxStoredApiKeys = 10_000;

/** The content of a token, which the server encrypts before it sends the token to the client. */
interface TokenContent {
  /** The API key of the user. Only servers that have the secret can decrypt the token and read the key. */
  apiKey: string;
  /** The maximum number of credits that the sign-in connection may spend. */
  creditBudget?: number | undefined;
  /** The sign-in connection to which the token belongs. */
  connectionId: string;
  /**
   * The number of renewals of the sign-in connection before this token was issued. If this number is lower than the
   * current number of renewals, a code or refresh token was already used.
   */
  renewalCount: number;
  /** A hash of the id of the OAuth client to which the token was issued. */
  clientIdHash: string;
  /** The URL of the MCP endpoint for which the token is valid. */
  resource: string;
  /** The time at which the token expires, in milliseconds since the epoch. */
  expiresAt: number;
  /** The redirect URI of the client. Only an authorization code contains this property. */
  redirectUri?: string;
  /** The PKCE challenge (RFC 7636). Only an authorization code contains this property. */
  codeChallenge?: string;
}

const hashText = (text: string) => createHash('sha256').update(text).digest('base64url');

/** Creates the functions that issue, renew, check and revoke tokens. */
export function createTokenIssuer(options: TokensOptions) {
  const { secret, resource, connectionStore = createMemoryConnectionStore(), now, getTenantId } = options;
  const encryption = createEncryption({ secret, purpose: 'sign-in' });
  const encryptToken = (kind: TokenKind, content: Omit<TokenContent, 'resource' | 'expiresAt'>, issuedAt: number) => {
    const fullContent: TokenContent = { ...content, resource, expiresAt: issuedAt + tokenLifetimesMs[kind] };
    return encryption.encrypt(kind, JSON.stringify(fullContent)).toString('base64url');
  };
  /** Decrypts a token. Returns undefined if the token is of another kind or was not issued by this server. */
  const decryptToken = (kind: TokenKind, token: string): TokenContent | undefined => {
    const decryptedText = encryption.decrypt(kind, decodeToken(token));
    const content = decryptedText && (parseJson(String(decryptedText)) as TokenContent);
    return content?.resource === resource ? content : undefined;
  };
  const extractCredentials = ({ apiKey, creditBudget, connectionId }: TokenContent) => ({
    apiKey,
    tenantId: getTenantId(apiKey),
    connection: { id: connectionId, creditBudget },
  });

  const removeConnection = (tenantId: string, id: string) =>
    connectionStore.update(tenantId, (storedConnections = {}) => {
      const { [id]: removedConnection, ...otherConnections } = storedConnections;
      return { ...(removedConnection && { next: otherConnections }), result: undefined };
    });

  /**
   * Renews a sign-in connection if the token was issued after the last renewal. An older token has already been used
   * and may have been stolen, so it ends the connection.
   * @returns the response of the token endpoint (RFC 6749, section 5.1), or undefined if the connection was not renewed
   */
  const renewConnection = async (tokenContent: TokenContent) => {
    const renewedAt = now();
    const { apiKey, creditBudget, connectionId, renewalCount, clientIdHash } = tokenContent;
    const { tenantId, connection } = extractCredentials(tokenContent);
    await options.beforeRenewal?.(connection);
    const isRenewed = await connectionStore.update(tenantId, (storedConnections = {}) => {
      const { [connectionId]: storedConnection, ...otherConnections } = storedConnections;
      if (storedConnection === undefined) return { result: false };
      if (storedConnection.renewalCount !== renewalCount) return { next: otherConnections, result: false };
      if (tokenContent.expiresAt <= renewedAt) return { result: false };
      return {
        next: { ...otherConnections, [connectionId]: { renewalCount: renewalCount + 1, renewedAt } },
        result: true,
      };
    });
    if (!isRenewed) return undefined;
    const nextContent = { apiKey, creditBudget, connectionId, renewalCount: renewalCount + 1, clientIdHash };
    return {
      access_token: encryptToken('access', nextContent, renewedAt),
      token_type: 'Bearer',
      expires_in: tokenLifetimesMs.access / 1000,
      refresh_token: encryptToken('refresh', nextContent, renewedAt),
    };
  };

  return {
    /** Opens a sign-in connection and returns an authorization code, which the client can exchange for tokens once. */
    openConnection: async ({ apiKey, budget, clientId, redirectUri, codeChallenge }: Grant) => {
      const openedAt = now();
      const connectionId = randomBytes(12).toString('base64url');
      await connectionStore.update(getTenantId(apiKey), (storedConnections = {}) => {
        const unexpiredConnections = Object.entries(storedConnections)
          .filter(([, { renewalCount, renewedAt }]) => {
            const lifetimeMs = renewalCount === 0 ? tokenLifetimesMs.code : tokenLifetimesMs.refresh;
            return renewedAt + lifetimeMs > openedAt;
          })
          .sort(([, left], [, right]) => right.renewedAt - left.renewedAt)
          .slice(0, maxConnectionsPerKey - 1);
        return {
          next: {
            ...Object.fromEntries(unexpiredConnections),
            [connectionId]: { renewalCount: 0, renewedAt: openedAt },
          },
          result: undefined,
        };
      });
      const clientFields = { clientIdHash: hashText(clientId), redirectUri, codeChallenge };
      return encryptToken(
        'code',
        { apiKey, creditBudget: budget, connectionId, renewalCount: 0, ...clientFields },
        openedAt,
      );
    },
    /**
     * Exchanges an authorization code for tokens. Returns undefined if the code is not valid for this client. A code
     * that is used twice ends the sign-in connection.
     */
    redeemCode: async (
      code: string,
      { clientId, redirectUri, verifier }: { clientId: string; redirectUri: string | undefined; verifier: string },
    ) => {
      const tokenContent = decryptToken('code', code);
      if (
        tokenContent === undefined ||
        tokenContent.clientIdHash !== hashText(clientId) ||
        tokenContent.codeChallenge !== hashText(verifier)
      )
        return undefined;
      // OAuth 2.1 omits the redirect URI from token requests. Clients of earlier versions still send it.
      const matchesRedirectUri = redirectUri === undefined || redirectUri === tokenContent.redirectUri;
      return matchesRedirectUri ? renewConnection(tokenContent) : undefined;
    },
    /**
     * Exchanges a refresh token for new tokens. Returns undefined if the token is not valid for this client. A refresh
     * token that is used twice ends the sign-in connection.
     */
    refreshTokens: async (refreshToken: string, clientId: string) => {
      const tokenContent = decryptToken('refresh', refreshToken);
      return tokenContent?.clientIdHash === hashText(clientId) ? renewConnection(tokenContent) : undefined;
    },
    /**
     * Returns the credentials that an access token contains. Returns undefined if the token has expired or its sign-in
     * connection has ended.
     */
    findCredentials: async (accessToken: string): Promise<Credentials | undefined> => {
      const tokenContent = decryptToken('access', accessToken);
      if (tokenContent === undefined || tokenContent.expiresAt <= now()) return undefined;
      const credentials = extractCredentials(tokenContent);
      const storedConnections = await connectionStore.read(credentials.tenantId);
      return storedConnections?.[tokenContent.connectionId] && credentials;
    },
    /**
     * Ends the sign-in connection of a token. Returns false if the token belongs to another client. Returns true if the
     * text is not a token, because RFC 7009 (section 2.2) treats invalid tokens as revoked.
     */
    revokeToken: async (token: string, clientId: string) => {
      const tokenContent = decryptToken('refresh', token) ?? decryptToken('access', token);
      if (tokenContent === undefined) return true;
      if (tokenContent.clientIdHash !== hashText(clientId)) return false;
      await removeConnection(getTenantId(tokenContent.apiKey), tokenContent.connectionId);
      return true;
    },
    /** Ends a sign-in connection, which makes all its tokens invalid. */
    endConnection: removeConnection,
  };
}

/**
 * Creates an in-memory store of sign-in connections. When the process ends, all sign-in connections end, and users must
 * sign in again.
 */
function createMemoryConnectionStore() {
  const connectionsByTenant = new LRUCache<string, OpenConnections>({ max: maxStoredApiKeys });
  return {
    read: async (tenantId: string) => connectionsByTenant.get(tenantId),
    update: async <Result>(
      tenantId: string,
      change: (connections?: OpenConnections) => { next?: OpenConnections; result: Result },
    ) => {
      const { next, result } = change(connectionsByTenant.get(tenantId));
      if (next) connectionsByTenant.set(tenantId, next);
      return result;
    },
  };
}
