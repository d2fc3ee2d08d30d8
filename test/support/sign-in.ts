import { createHash, randomBytes } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import { connect } from 'node:net';
import { Agent } from 'undici';
import { onTestFinished } from 'vitest';
import type { Config } from '../../src/config/settings.ts';
import { type Behaviour, documentedResponse, errorResponse } from './faulty-upstream.ts';
import { test as base } from './fixtures.ts';
import { startHttp, toolCall, validHeaders } from './http.ts';
import { freePort, listenOnLoopback } from './loopback.ts';
import { readResult } from './server.ts';

export const signInSecret = 'a secret of sign-in, at least 32 characters';
export const goodKey = 'svc_live_good.key';

const acceptGoodKey: Behaviour = (request, response, body) => {
  const isGood = request.headers.authorization === `Bearer ${goodKey}`;
  (isGood ? documentedResponse : errorResponse(401))(request, response, body);
};

export type SignInServer = ReturnType<typeof createSignInClient>;

export const redirectUri = 'https://host.example.com/callback';

type Ways = Parameters<typeof startHttp>[1];

async function openSignInServer(config: Partial<Config>, ways?: Ways) {
  const port = await freePort();
  return createSignInClient(
    await startHttp({ port, publicUrl: `http://127.0.0.1:${port}`, signInSecret, ...config }, ways),
  );
}

/** A server until the end of the test. */
export async function startSignInServer(config: Partial<Config>, ways?: Ways) {
  const server = await openSignInServer(config, ways);
  onTestFinished(() => server.close(0));
  return server;
}

/** Tests of one server in front of a service that accepts one key at the beginning of each test. */
export const signInTest = base
  .extend('server', { scope: 'file' }, async ({ upstream }, { onCleanup }) => {
    const server = await openSignInServer({ baseUrl: upstream.baseUrl });
    onCleanup(() => server.close(0));
    return server;
  })
  // Not before each test: that would be those of files, too, which take from here how one signs in.
  .extend('keyed', { auto: true }, ({ upstream }) => upstream.respondWith(acceptGoodKey));

/** @param publicUrl by which people reach it, if not by its own address */
export function createSignInClient<Server extends { origin: string; url: string }>(
  server: Server,
  publicUrl = server.origin,
) {
  const send = (path: string, init: RequestInit = {}) =>
    fetch(new URL(path, server.origin), { redirect: 'manual', ...init });
  const register = async (uri = redirectUri, more = {}) => {
    const body = JSON.stringify({ client_name: 'A host', redirect_uris: [uri], ...more });
    const answer = await send('/register', { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    return ((await answer.json()) as { client_id: string }).client_id;
  };
  const submitKey = (request: Record<string, string>, fields: Record<string, string>) =>
    send('/authorize', {
      method: 'POST',
      headers: { origin: publicUrl },
      body: new URLSearchParams({ ...request, ...fields }),
    });
  const requestToken = async (fields: Record<string, string>) => {
    const answer = await send('/token', { method: 'POST', body: new URLSearchParams(fields) });
    return { status: answer.status, body: (await answer.json()) as Record<string, string> };
  };
  const call = async (accessToken: string, name: string, args: object = {}) => {
    const answer = await send('/mcp', {
      method: 'POST',
      headers: validHeaders(accessToken),
      body: JSON.stringify(toolCall(name, args)),
    });
    const { result } = (await answer.json()) as { result: object };
    return { status: answer.status, result: readResult({ content: [], ...result }) };
  };
  /** Signs in up to the code; returns what the app would send for its tokens. */
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
    /** Signs in as a host and a person do; returns what the token endpoint answers. */
    signIn: async (budget = '') => {
      const grant = await requestCode(budget);
      const { access_token: access = '', refresh_token: refresh = '' } = (await requestToken(grant)).body;
      return { clientId: grant.client_id, access, refresh };
    },
  };
}

export const createCodeGrant = (clientId: string, code: string, verifier: string, uri = redirectUri) => ({
  grant_type: 'authorization_code',
  ...{ code, client_id: clientId, redirect_uri: uri, code_verifier: verifier },
});

/** What a host asks for, and how it proves that it did. */
export function createAuthorizationRequest(clientId: string, more: Record<string, string> = {}) {
  const verifier = randomBytes(32).toString('base64url');
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const request = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    code_challenge: challenge,
    code_challenge_method: 'S256',
    state: 'a state',
    ...more,
  };
  return { request, verifier };
}

export const readLocation = (answer: Response): URL => new URL(answer.headers.get('location') ?? 'about:blank');

export const readCode = (answer: Response): string => readLocation(answer).searchParams.get('code') ?? '';

/** The web as it is for metadata documents: every host is answered by one listener. */
export async function startFakeWeb(listener: RequestListener): Promise<{ openAgent: () => Promise<Agent> }> {
  const { port, close } = await listenOnLoopback(createServer(listener));
  onTestFinished(close);
  const connectToServer: NonNullable<Agent.Options['connect']> = (_, callback) => {
    const socket = connect(port, '127.0.0.1', () => callback(null, socket));
    socket.on('error', (error) => callback(error, null));
  };
  return { openAgent: async () => new Agent({ connect: connectToServer }) };
}
