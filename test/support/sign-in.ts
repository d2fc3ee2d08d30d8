import { createHash, randomBytes } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import { connect } from 'node:net';
import { Agent } from 'undici';
import { onTestFinished } from 'vitest';
import type { Config } from '../../src/config/settings.ts';
import { type Behaviour, respondAsDocumented, respondWithError } from './faulty-upstream.ts';
import { test as base } from './fixtures.ts';
import { createToolCall, createValidHeaders, startHttp } from './http.ts';
import { findFreePort, listenOnLoopback } from './loopback.ts';
import { readResult } from './server.ts';

/** The value of `AD_LIBRARY_SIGN_IN_SECRET`. */
export const signInSecret = 'a secret of sign-in, at least 32 characters';
/** The only API key that the fake API accepts. */
export const goodKey = 'svc_live_good.key';

const acceptGoodKey: Behaviour = (request, response, body) => {
  const isGood = request.headers.authorization === `Bearer ${goodKey}`;
  (isGood ? respondAsDocumented : respondWithError(401))(request, response, body);
};

/** A server with sign-in, and functions that send the requests of a host and its user. */
export type SignInServer = ReturnType<typeof createSignInClient>;

/** The callback URL of the app that wants to sign in. */
export const redirectUri = 'https://host.example.com/callback';

type ServerDependencies = Parameters<typeof startHttp>[1];

async function openSignInServer(config: Partial<Config>, dependencies?: ServerDependencies) {
  const port = await findFreePort();
  return createSignInClient(
    await startHttp({ port, publicUrl: `http://127.0.0.1:${port}`, signInSecret, ...config }, dependencies),
  );
}

/** Starts a server with sign-in that closes at the end of the test. */
export async function startSignInServer(config: Partial<Config>, dependencies?: ServerDependencies) {
  const server = await openSignInServer(config, dependencies);
  onTestFinished(() => server.close(0));
  return server;
}

/** Defines tests of a shared server with sign-in. At the start of each test, the API accepts only `goodKey`. */
export const signInTest = base
  .extend('server', { scope: 'file' }, async ({ upstream }, { onCleanup }) => {
    const server = await openSignInServer({ baseUrl: upstream.baseUrl });
    onCleanup(() => server.close(0));
    return server;
  })
  // Use a fixture, because `beforeEach` would also run in files that only import helpers from this file.
  .extend('keyed', { auto: true }, ({ upstream }) => upstream.respondWith(acceptGoodKey));

/**
 * Returns functions that send the sign-in requests of a host and its user.
 * @param publicUrl the public URL of the server, if it differs from its own origin
 */
export function createSignInClient<Server extends { origin: string; url: string }>(
  server: Server,
  publicUrl = server.origin,
) {
  const send = (path: string, init: RequestInit = {}) =>
    fetch(new URL(path, server.origin), { redirect: 'manual', ...init });
  const register = async (uri = redirectUri, otherMetadata = {}) => {
    const body = JSON.stringify({ client_name: 'A host', redirect_uris: [uri], ...otherMetadata });
    const response = await send('/register', { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    return ((await response.json()) as { client_id: string }).client_id;
  };
  const submitKey = (request: Record<string, string>, fields: Record<string, string>) =>
    send('/authorize', {
      method: 'POST',
      headers: { origin: publicUrl },
      body: new URLSearchParams({ ...request, ...fields }),
    });
  const requestToken = async (fields: Record<string, string>) => {
    const response = await send('/token', { method: 'POST', body: new URLSearchParams(fields) });
    return { status: response.status, body: (await response.json()) as Record<string, string> };
  };
  const call = async (accessToken: string, name: string, args: object = {}) => {
    const response = await send('/mcp', {
      method: 'POST',
      headers: createValidHeaders(accessToken),
      body: JSON.stringify(createToolCall(name, args)),
    });
    const { result } = (await response.json()) as { result: object };
    return { status: response.status, result: readResult({ content: [], ...result }) };
  };
  /** Signs in up to the point where the app has an authorization code. Returns the token request for this code. */
  const requestCode = async (budget = '') => {
    const clientId = await register();
    const { request, verifier } = createAuthorizationRequest(clientId);
    return createCodeGrant(clientId, readCode(await submitKey(request, { api_key: goodKey, budget })), verifier);
  };
  return {
    ...server,
    ...{ send, register, submit: submitKey, token: requestToken, call, withCode: requestCode },
    refreshTokens: (refresh: string, clientId: string) =>
      requestToken({ grant_type: 'refresh_token', refresh_token: refresh, client_id: clientId }),
    /** Completes the sign-in. Returns the client id and the tokens. */
    signIn: async (budget = '') => {
      const grant = await requestCode(budget);
      const { access_token: access = '', refresh_token: refresh = '' } = (await requestToken(grant)).body;
      return { clientId: grant.client_id, access, refresh };
    },
  };
}

/** Returns the token request that exchanges an authorization code for tokens. */
export const createCodeGrant = (clientId: string, code: string, verifier: string, uri = redirectUri) => ({
  grant_type: 'authorization_code',
  ...{ code, client_id: clientId, redirect_uri: uri, code_verifier: verifier },
});

/** Returns an authorization request with its PKCE verifier (RFC 7636). */
export function createAuthorizationRequest(clientId: string, otherParameters: Record<string, string> = {}) {
  const verifier = randomBytes(32).toString('base64url');
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const request = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    code_challenge: challenge,
    code_challenge_method: 'S256',
    state: 'a state',
    ...otherParameters,
  };
  return { request, verifier };
}

/** Returns the redirect target of a response. */
export const readLocation = (response: Response): URL => new URL(response.headers.get('location') ?? 'about:blank');

/** Returns the authorization code in the redirect target of a response. */
export const readCode = (response: Response): string => readLocation(response).searchParams.get('code') ?? '';

/** Starts a web server that stands in for every host name. The server under test fetches client metadata from it. */
export async function startFakeWeb(listener: RequestListener): Promise<{ openAgent: () => Promise<Agent> }> {
  const { port, close } = await listenOnLoopback(createServer(listener));
  onTestFinished(close);
  const connectToServer: NonNullable<Agent.Options['connect']> = (_, callback) => {
    const socket = connect(port, '127.0.0.1', () => callback(null, socket));
    socket.on('error', (error) => callback(error, null));
  };
  return { openAgent: async () => new Agent({ connect: connectToServer }) };
}
