import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client';
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, onTestFinished } from 'vitest';
import { waitUntil } from '../../../support/deadline.ts';
import { findFreePort } from '../../../support/loopback.ts';
import {
  goodKey,
  readLocation,
  redirectUri,
  type SignInServer,
  startFakeWeb,
  startSignInServer,
  signInTest as test,
} from '../../../support/sign-in.ts';

/** Creates the OAuth provider that an SDK needs from its host. Stores everything in memory. `page` returns the sign-in URL. */
function createHost(clientMetadataUrl?: string) {
  const storedValues: Record<string, unknown> = {};
  let page: URL | undefined;
  const provider: OAuthClientProvider = {
    redirectUrl: redirectUri,
    ...(clientMetadataUrl && { clientMetadataUrl }),
    clientMetadata: { client_name: 'A host', redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' },
    state: () => 'the state of the host',
    clientInformation: () => storedValues.client as never,
    saveClientInformation: (client) => void Object.assign(storedValues, { client }),
    tokens: () => storedValues.tokens as never,
    saveTokens: (tokens) => void Object.assign(storedValues, { tokens }),
    redirectToAuthorization: (url) => {
      page = url;
    },
    saveCodeVerifier: (verifier) => void Object.assign(storedValues, { verifier }),
    codeVerifier: () => String(storedValues.verifier),
    saveDiscoveryState: (discovery) => void Object.assign(storedValues, { discovery }),
    discoveryState: () => storedValues.discovery as never,
    invalidateCredentials: (which) => {
      for (const name of which === 'all' ? ['client', 'tokens', 'verifier'] : [which]) delete storedValues[name];
    },
  };
  return {
    provider,
    kept: storedValues as { tokens?: { access_token: string; refresh_token: string } },
    page: () => page,
  };
}

type Host = ReturnType<typeof createHost>;

/** Submits the API key on the sign-in page, as a user would. Returns the URL to which the browser is redirected. */
async function submitKey(server: SignInServer, page: URL | undefined, budget = '100'): Promise<URL> {
  const pageHtml = await (await fetch(page ?? '')).text();
  const hidden = [...pageHtml.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"\/>/g)];
  const request = Object.fromEntries(hidden.map(([, name = '', value = '']) => [name, value]));
  return readLocation(await server.submit(request, { api_key: goodKey, budget }));
}

/** The official clients of both SDKs. */
const clients = {
  v1: ({ url }: SignInServer, { provider }: Host) => {
    const transport = new LegacyHttp(new URL(url), { authProvider: provider });
    const client = new LegacyClient({ name: 'host', version: '1' });
    const finish = ({ searchParams }: URL) => transport.finishAuth(searchParams.get('code') ?? '');
    return { open: () => client.connect(transport as never), finish, client };
  },
  v2: ({ url }: SignInServer, { provider }: Host) => {
    const transport = new ModernHttp(new URL(url), { authProvider: provider as never });
    const versionNegotiation = { mode: { pin: '2026-07-28' } } as const;
    const client = new ModernClient({ name: 'host', version: '1' }, { versionNegotiation });
    return {
      open: () => client.connect(transport),
      finish: (back: URL) => transport.finishAuth(back.searchParams),
      client,
    };
  },
};
const clientKinds = Object.keys(clients) as (keyof typeof clients)[];
const identityResult = { structuredContent: { authenticated: true } };

async function connectSignedIn(kind: keyof typeof clients, server: SignInServer, host: Host) {
  const { open, client } = clients[kind](server, host);
  onTestFinished(() => client.close());
  await open();
  return () => client.callTool({ name: 'whoami', arguments: {} });
}

test.for(clientKinds)(
  'a user can sign in with the official MCP client (SDK %s), which then renews its tokens',
  async (kind, { server }) => {
    const host = createHost();
    const first = clients[kind](server, host);
    await expect(first.open()).rejects.toThrow();
    const back = await submitKey(server, host.page());
    expect(back.origin + back.pathname).toBe(redirectUri);
    expect(Object.fromEntries(back.searchParams)).toMatchObject({ state: 'the state of the host', iss: server.origin });
    await first.finish(back);
    const call = await connectSignedIn(kind, server, host);
    expect(await call()).toMatchObject(identityResult);
    // The client must renew an invalid access token without asking the user again.
    const { tokens } = host.kept;
    if (tokens) host.kept.tokens = { ...tokens, access_token: 'A'.repeat(200) };
    expect(await call()).toMatchObject(identityResult);
    expect(host.kept.tokens?.refresh_token).not.toBe(tokens?.refresh_token);
  },
);

test.for(clientKinds)(
  'the official MCP client (SDK %s) can sign in with a client metadata document',
  async (kind, { upstream: { baseUrl } }) => {
    const id = 'https://chat.example.com/oauth/client.json';
    const document = {
      client_id: id,
      client_name: 'A chat',
      redirect_uris: [redirectUri, 'chat://callback'],
      token_endpoint_auth_method: 'private_key_jwt',
      token_endpoint_auth_methods_supported: ['none', 'private_key_jwt'],
      jwks_uri: 'https://chat.example.com/jwks.json',
    };
    const requests: string[] = [];
    const web = await startFakeWeb((request, response) => {
      requests.push(`${request.headers.host}${request.url}`);
      response.end(JSON.stringify(document));
    });
    const server = await startSignInServer({ baseUrl, mediaHosts: { allowsPublicHosts: false, listedHosts: [] } }, web);
    const host = createHost(id);
    const first = clients[kind](server, host);
    await expect(first.open()).rejects.toThrow();
    expect(host.page()?.searchParams.get('client_id')).toBe(id);
    const pageHtml = await (await fetch(host.page() ?? '')).text();
    for (const text of ['A chat', '<dd>chat.example.com</dd>', '<dd>host.example.com</dd>'])
      expect(pageHtml).toContain(text);
    await first.finish(await submitKey(server, host.page(), ''));
    expect(await (await connectSignedIn(kind, server, host))()).toMatchObject(identityResult);
    expect(requests).toEqual(['chat.example.com/oauth/client.json']);
  },
);

const [isTrue, isFalse] = [() => true, () => false];
const conformance = (file: string) => fileURLToPath(new URL(`../../../${file}`, import.meta.url));

test('the sign-in of the server passes the official MCP conformance suite', async ({ server }) => {
  const port = await findFreePort();
  const clientId = await server.register(`http://127.0.0.1:${port}/callback`);
  const args = ['--url', server.origin, '--client-id', clientId, '--resource', server.url, '--port', String(port)];
  const suiteArgs = [
    ...['--import', conformance('conformance/glob-sync.mjs')],
    ...[conformance('../node_modules/@modelcontextprotocol/conformance/dist/index.js'), 'authorization', ...args],
  ];
  const run = execFile(process.execPath, suiteArgs, { cwd: tmpdir() });
  let output = '';
  // The suite prints the URL of the sign-in page and waits for the redirect.
  run.stdout?.on('data', (text: string) => {
    output += text;
    const page = /^http\S+\/authorize\?\S+$/m.exec(text)?.[0];
    if (page) void submitKey(server, new URL(page)).then((back) => waitUntil(() => fetch(back).then(isTrue, isFalse)));
  });
  run.stderr?.on('data', (text: string) => {
    output += text;
  });
  const code = await new Promise((resolve) => run.once('exit', resolve));
  expect(code, output).toBe(0);
  expect(output).toMatch(/2 passed, 0 failed|authorization-code-grant/);
  expect(output).not.toMatch(/SKIPPED|WARNING/);
});
