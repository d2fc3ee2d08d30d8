import type { ServerResponse } from 'node:http';
import { expect, onTestFinished } from 'vitest';
import { waitUntil } from '../../../support/deadline.ts';
import { respondWithError } from '../../../support/faulty-upstream.ts';
import { openConnection } from '../../../support/http.ts';
import {
  createAuthorizationRequest,
  goodKey,
  readCode,
  readLocation,
  redirectUri,
  type SignInServer,
  startFakeWeb,
  startSignInServer,
  signInTest as test,
} from '../../../support/sign-in.ts';

const requestPage = (server: SignInServer, request: Record<string, string>) =>
  server.send(`/authorize?${new URLSearchParams(request)}`);

const validFields = { api_key: goodKey, budget: '' };
const otherApp = 'https://other.example.com/callback';

test('all responses of the sign-in pages have the required security headers', async ({ server }) => {
  const { request } = createAuthorizationRequest(await server.register());
  const signInPage = await requestPage(server, request);
  expect(Object.fromEntries(signInPage.headers)).toMatchObject({
    'x-frame-options': 'DENY',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'content-security-policy': expect.stringMatching(
      /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; frame-ancestors 'none'$/,
    ),
  });
  expect(await signInPage.text()).not.toMatch(/<script|<img|src=|https?:\/\/(?!host\.example\.com|127)/);
  const challenged = await server.send('/mcp', { method: 'POST' });
  expect(challenged.headers.get('www-authenticate')).toBe(
    `Bearer resource_metadata="${server.origin}/.well-known/oauth-protected-resource/mcp"`,
  );
  expect((await server.send('/token')).status).toBe(405);
  // A document at this path would belong to another issuer (RFC 8414, section 3.3).
  expect((await server.send('/.well-known/oauth-authorization-server/mcp')).status).toBe(404);
  for (const path of ['', '/mcp']) {
    const resource = await (await server.send(`/.well-known/oauth-protected-resource${path}`)).json();
    expect(resource).toMatchObject({ resource: server.url, authorization_servers: [server.origin] });
  }
});

test('a server without sign-in settings returns 404 for all sign-in paths', async ({ upstream: { baseUrl } }) => {
  const server = await startSignInServer({ baseUrl, publicUrl: undefined, signInSecret: undefined });
  for (const path of ['/authorize', '/.well-known/oauth-protected-resource', '/.well-known/oauth-authorization-server'])
    expect((await server.send(path)).status).toBe(404);
  const challenged = await server.send('/mcp', { method: 'POST' });
  expect(challenged.headers.get('www-authenticate')).toBe('Bearer realm="ad-library-mcp"');
});

test('a sign-in request with invalid parameters never redirects the browser', async ({ server }) => {
  const { request } = createAuthorizationRequest(await server.register());
  const pagesOf = async (invalidFields: Record<string, string>) => {
    const answers = [
      await requestPage(server, { ...request, ...invalidFields }),
      await server.submit({ ...request, ...invalidFields }, validFields),
    ];
    for (const { status, headers } of answers) expect([status, headers.get('location')]).toEqual([400, null]);
    return Promise.all(answers.map((answer) => answer.text()));
  };
  const paths = ['/../evil', '?next=evil', '#fragment'].map((more) => redirectUri + more);
  const otherUris = ['@evil.example.com/callback', '/Callback'].map((path) => `https://host.example.com${path}`);
  const hosts = ['https://evil.example.com/callback', 'https://HOST.example.com/callback'];
  for (const uri of [...paths, ...otherUris, ...hosts, 'javascript:alert(1)', ''])
    for (const pageHtml of await pagesOf({ redirect_uri: uri })) expect(pageHtml).not.toContain('href=');
  // For an error of the app, the page offers a link, so that the user can decide to return to the app.
  for (const [invalidFields, error] of [
    [{ response_type: 'token' }, 'unsupported_response_type'],
    [{ response_type: '' }, 'invalid_request'],
    [{ code_challenge_method: 'plain' }, 'invalid_request'],
    [{ code_challenge: 'short' }, 'invalid_request'],
    [{ resource: 'https://other.example.com/mcp' }, 'invalid_target'],
  ] as const)
    for (const pageHtml of await pagesOf(invalidFields))
      expect(pageHtml).toContain(`href="${redirectUri}?error=${error}&amp;state=a+state&amp;iss=`);
  expect((await requestPage(server, { ...request, resource: '' })).status).toBe(200);
  const twice = await server.send(`/authorize?${new URLSearchParams(request)}&redirect_uri=https://evil.example.com`);
  expect(twice.status).toBe(400);
  const { searchParams } = readLocation(await server.submit(request, { cancel: 'yes' }));
  expect(Object.fromEntries(searchParams)).toEqual({ error: 'access_denied', state: 'a state', iss: server.origin });
});

test.for([
  'http://host.example.com/callback',
  'host://callback',
  'https://user@host.example.com/',
  'https://host.example.com/callback?iss=evil',
  'https://host.example.com/#a',
  'https://host.example.com;evil/',
  'http://127.0.0.1.example.com/',
  'https:\\\\evil.example.com',
  `https://host.example.com/${'a'.repeat(500)}`,
])('an app cannot register %s as its redirect URI', async (uri, { server }) => {
  expect(await registerUris(server, [uri])).toMatchObject([400, { error: 'invalid_redirect_uri' }]);
  const [status, { client_id: clientId, redirect_uris: uris }] = await registerUris(server, [uri, redirectUri]);
  expect([status, uris]).toEqual([201, [redirectUri]]);
  expect((await requestPage(server, createAuthorizationRequest(clientId, { redirect_uri: uri }).request)).status).toBe(
    400,
  );
  expect((await requestPage(server, createAuthorizationRequest(clientId).request)).status).toBe(200);
});

async function registerUris(server: SignInServer, uris: unknown) {
  const body = JSON.stringify({ redirect_uris: uris });
  const headers = { 'content-type': 'application/json' };
  const answer = await server.send('/register', { method: 'POST', headers, body });
  return [answer.status, (await answer.json()) as { client_id: string; redirect_uris: string[] }] as const;
}

test('an app can register its web redirect URIs although it also lists a desktop URI', async ({ server }) => {
  const web = ['https://www.cursor.com/agents/mcp/oauth/callback', 'http://localhost:8787/callback'];
  const [status, { redirect_uris: uris }] = await registerUris(server, [
    'cursor://anysphere.cursor-mcp/oauth/callback',
    ...web,
  ]);
  expect([status, uris]).toEqual([201, web]);
});

test('an app can register a redirect URI although its list also contains values that are not text', async ({
  server,
}) => {
  const [status, { redirect_uris: uris }] = await registerUris(server, [null, 5, {}, redirectUri]);
  expect([status, uris]).toEqual([201, [redirectUri]]);
});

test('the registration of an app is rejected if its redirect URIs are too many or too long', async ({ server }) => {
  const uris = (count: number, length: number) =>
    Array.from({ length: count }, (_, nr) => `https://host.example.com/${nr}/`.padEnd(length, 'a'));
  expect((await registerUris(server, [...uris(10, 40), 'cursor://app']))[0]).toBe(201);
  for (const invalidUris of [uris(11, 40), uris(5, 450), [], 'https://host.example.com/'])
    expect((await registerUris(server, invalidUris))[0]).toBe(400);
});

test('a loopback redirect URI may differ from the registered URI only in its port', async ({ server }) => {
  const clientId = await server.register('http://127.0.0.1/callback');
  const at = async (uri: string) =>
    (await requestPage(server, createAuthorizationRequest(clientId, { redirect_uri: uri }).request)).status;
  expect(await at('http://127.0.0.1:45678/callback')).toBe(200);
  for (const uri of ['http://127.0.0.1:45678/other', 'http://localhost:45678/callback', 'http://127.0.0.2/callback'])
    expect(await at(uri)).toBe(400);
});

test('an authorization code is valid only once and only with its own client, redirect URI and verifier', async ({
  server,
}) => {
  const validGrant = await server.withCode();
  const errorOf = async (fields: Record<string, string>) => (await server.token(fields)).body.error;
  for (const [invalidFields, error] of [
    [{ code_verifier: 'w'.repeat(43) }, 'invalid_grant'],
    [{ redirect_uri: `${redirectUri}/other` }, 'invalid_grant'],
    [{ client_id: await server.register(otherApp) }, 'invalid_grant'],
    [{ code: `${validGrant.code.slice(0, -2)}xx` }, 'invalid_grant'],
    [{ code: `${validGrant.code}=` }, 'invalid_grant'],
    [{ resource: 'https://other.example.com/mcp' }, 'invalid_target'],
    [{ client_id: 'made up' }, 'invalid_client'],
    [{ grant_type: 'password' }, 'unsupported_grant_type'],
    [{ redirect_uri: '' }, 'invalid_grant'],
    ...['grant_type', 'client_id', 'code', 'code_verifier'].map((name) => [{ [name]: '' }, 'invalid_request'] as const),
  ] as const)
    expect([invalidFields, await errorOf({ ...validGrant, ...invalidFields })]).toEqual([invalidFields, error]);
  const first = await server.token(validGrant);
  expect(first).toMatchObject({ status: 200, body: { token_type: 'Bearer', expires_in: 3600 } });
  const { access_token: access = '', refresh_token: refresh = '' } = first.body;
  expect(Math.max(access.length, refresh.length)).toBeLessThan(1024);
  expect((await server.call(access, 'whoami')).status).toBe(200);
  // A code that is used twice may have been stolen, so its connection ends.
  expect(await errorOf(validGrant)).toBe('invalid_grant');
  expect((await server.call(access, 'whoami')).status).toBe(401);
  expect((await server.refreshTokens(refresh, validGrant.client_id)).status).toBe(400);
});

test('an authorization code can be redeemed without the redirect URI, as in OAuth 2.1', async ({ server }) => {
  const { redirect_uri: _, ...grant } = await server.withCode();
  expect(await server.token(grant)).toMatchObject({ status: 200, body: { token_type: 'Bearer' } });
});

test('using a refresh token twice ends the connection of the app', async ({ server }) => {
  const [connection, otherConnection] = [await server.signIn(), await server.signIn()];
  const renew = (refresh: string, clientId = connection.clientId) => server.refreshTokens(refresh, clientId);
  expect((await renew(connection.refresh, await server.register(otherApp))).status).toBe(400);
  const { access_token: access = '', refresh_token: refresh = '' } = (await renew(connection.refresh)).body;
  expect((await server.call(access, 'whoami')).status).toBe(200);
  const atOnce = await Promise.all(Array.from({ length: 8 }, () => renew(refresh)));
  expect(atOnce.filter(({ status }) => status === 200)).toHaveLength(1);
  expect((await server.call(access, 'whoami')).status).toBe(401);
  expect((await server.call(otherConnection.access, 'whoami')).status).toBe(200);
});

test('a sign-in token is rejected where the server requires another type of token', async ({ server }) => {
  const validGrant = await server.withCode();
  const { clientId, access, refresh } = await server.signIn();
  for (const token of [refresh, validGrant.code, clientId, 'x'.repeat(500), ''])
    expect((await server.call(token, 'whoami')).status).toBe(401);
  for (const token of [access, validGrant.code, clientId])
    expect((await server.refreshTokens(token, clientId)).status).toBe(400);
  for (const code of [access, refresh, clientId])
    expect((await server.token({ ...validGrant, code })).status).toBe(400);
  for (const id of [access, refresh, validGrant.code])
    expect((await requestPage(server, createAuthorizationRequest(id).request)).status).toBe(400);
});

test('an app can revoke only its own connection', async ({ server }) => {
  const { clientId, access, refresh } = await server.signIn();
  const statusOf = async (token: string, id: string) =>
    (await server.send('/revoke', { method: 'POST', body: new URLSearchParams({ token, client_id: id }) })).status;
  expect(await statusOf(refresh, 'another')).toBe(401);
  expect(await statusOf(refresh, await server.register(otherApp))).toBe(400);
  expect(await statusOf('', clientId)).toBe(400);
  expect(await statusOf('made up', clientId)).toBe(200);
  expect((await server.call(access, 'whoami')).status).toBe(200);
  expect(await statusOf(refresh, clientId)).toBe(200);
  expect((await server.call(access, 'whoami')).status).toBe(401);
  expect((await server.refreshTokens(refresh, clientId)).status).toBe(400);
});

test('the connection of an app ends when the API rejects its key, but not when a gateway returns an error', async ({
  server,
  upstream,
}) => {
  const { access } = await server.signIn();
  upstream.respondWith((_, response) => void response.writeHead(401).end('<h1>Gateway</h1>'));
  expect((await server.call(access, 'whoami')).result.error).toMatchObject({ kind: 'unauthorized' });
  upstream.respondWith(respondWithError(401));
  expect(await server.call(access, 'whoami')).toMatchObject({
    status: 200,
    result: { error: { kind: 'unauthorized' } },
  });
  expect((await server.call(access, 'whoami')).status).toBe(401);
});

test('the sign-in form is rejected if another web page submits it', async ({ server }) => {
  const { request } = createAuthorizationRequest(await server.register());
  const post = async (
    headers: Record<string, string>,
    body: string | URLSearchParams = new URLSearchParams({ ...request, ...validFields }),
  ) => {
    const answer = await server.send('/authorize', { method: 'POST', headers, body });
    return [answer.status, answer.headers.has('location')];
  };
  for (const headers of [
    { origin: 'https://evil.example.com' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { origin: server.origin, 'sec-fetch-site': 'same-site' },
  ])
    expect(await post(headers as Record<string, string>)).toEqual([403, false]);
  expect(await post({ origin: server.origin, 'sec-fetch-site': 'same-origin' })).toEqual([303, true]);
  expect(await post({})).toEqual([303, true]);
  expect(await post({}, JSON.stringify({ ...request, ...validFields }))).toEqual([415, false]);
  const inAddress = `/authorize?api_key=${goodKey}`;
  const body = new URLSearchParams({ ...request, ...validFields });
  expect((await server.send(inAddress, { method: 'POST', body })).status).toBe(400);
  const long = await server.submit({ ...request, state: 'x'.repeat(20_000) }, validFields);
  expect([long.status, long.headers.get('x-frame-options')]).toEqual([413, 'DENY']);
});

test('an error about an invalid credit budget appears next to its field on the sign-in page', async ({ server }) => {
  const { request } = createAuthorizationRequest(await server.register());
  const invalidBudgets = '-1|1.5|1e3|0x10|ten|١٢|1 000|99999999999|1000000001|"><script>|NaN|1\u0000'.split('|');
  for (const budget of invalidBudgets) {
    const answer = await server.submit(request, { api_key: goodKey, budget });
    expect([budget, answer.status]).toEqual([budget, 400]);
    const html = await answer.text();
    expect(html).toMatch(/<input id="budget"[^>]*aria-invalid="true" aria-describedby="budget-wrong/);
    expect(html).not.toMatch(/<script|svc_live_good/);
  }
});

test('no page, URL, log line or token of the sign-in contains the API key in plain text', async ({ upstream }) => {
  const server = await startSignInServer({ baseUrl: upstream.baseUrl });
  const clientId = await server.register();
  const { request } = createAuthorizationRequest(clientId);
  const seenTexts: string[] = [];
  const look = async (answer: Response) =>
    void seenTexts.push(await answer.text(), JSON.stringify([...answer.headers]));
  const wrongKey = 'svc_live_wrong.key';
  for (const fields of [
    { api_key: wrongKey, budget: '' },
    { api_key: `${goodKey} `, budget: 'none' },
    { api_key: 'no key at all', budget: goodKey.slice(0, 5) },
    { api_key: goodKey, budget: wrongKey },
    { api_key: '', budget: goodKey },
  ])
    await look(await server.submit(request, fields));
  await look(await server.submit({ ...request, response_type: 'token' }, validFields));
  await look(await requestPage(server, { ...request, api_key: goodKey }));
  const agreed = await server.submit(request, validFields);
  await look(agreed);
  const { access, refresh } = await server.signIn();
  upstream.respondWith((_, response) => void response.destroy());
  await look(await server.submit(request, validFields));
  upstream.respondWith(respondWithError(401));
  seenTexts.push(JSON.stringify((await server.call(access, 'whoami')).result.raw));
  seenTexts.push(JSON.stringify(await server.refreshTokens(refresh, clientId)));
  const tokens = [readCode(agreed), access, refresh, clientId];
  expect(tokens).not.toContain('');
  expect(server.logged.join()).toContain('sign_in');
  const sealed = tokens.map((token) => Buffer.from(token.replaceAll('.', '_'), 'base64url').toString('latin1'));
  const allTexts = [...seenTexts, ...server.logged, ...tokens, ...sealed].join('\n');
  const encoded = Buffer.from(goodKey).toString('base64url').slice(2, -2);
  for (const secret of [goodKey, wrongKey, 'no key at all', 'good.key', 'wrong.key', encoded])
    expect(allTexts).not.toContain(secret);
});

test('every path of the server rejects a request that has an API key in its URL', async ({ upstream: { baseUrl } }) => {
  const server = await startSignInServer({ baseUrl, metrics: true });
  for (const path of ['/authorize', '/token', '/register', '/revoke', '/mcp'])
    for (const query of [`a=${goodKey}`, 'api_key=x'])
      expect([path, (await server.send(`${path}?${query}`, { method: 'POST' })).status]).toEqual([path, 400]);
  const { send, close } = openConnection(server.origin);
  const statusAt = async (host: string) => (await send({ method: 'GET', path: '/metrics', headers: { host } })).status;
  expect([await statusAt(new URL(server.origin).host), await statusAt('localhost')]).toEqual([404, 200]);
  close();
});

test('the name of the app is escaped and shortened on the sign-in page', async ({ server }) => {
  const name = `<img src=x onerror=alert(1)> ”Claude“ \u202e\u200b\n${'verified '.repeat(40)}`;
  const { request } = createAuthorizationRequest(await server.register(redirectUri, { client_name: name }));
  const html = await (await requestPage(server, request)).text();
  expect(html).toContain('&lt;img src=x onerror=alert(1)> ');
  expect(html).not.toMatch(/<img|\u202e|\u200b/);
  expect(/<dt>App<\/dt><dd>(.*?)<\/dd>/.exec(html)?.[1]?.length).toBeLessThan(140);
  expect(html).not.toContain('<dt>From</dt>');
});

const chat = 'https://chat.example.com';
const createDocument = (path: string, more = {}) =>
  JSON.stringify({ client_id: `${chat}${path}`, client_name: 'A chat', redirect_uris: [redirectUri], ...more });

test('the server rejects an app whose client metadata document is invalid', async ({ upstream: { baseUrl } }) => {
  const answers: Record<string, (response: ServerResponse, path: string) => unknown> = {
    '/larger-than-5-kb': (response, path) => response.end(createDocument(path, { more: 'x'.repeat(5000) })),
    '/of-another-address': (response, path) => response.end(createDocument(`${path}?`)),
    '/that-redirects': (response) => response.writeHead(302, { location: '/good' }).end(),
    '/that-is-not-there': (response, path) => response.writeHead(404).end(createDocument(path)),
    '/that-is-no-json': (response) => response.end('<h1>Client</h1>'),
    '/without-addresses': (response, path) => response.end(createDocument(path, { redirect_uris: [] })),
    '/that-needs-a-key': (response, path) =>
      response.end(createDocument(path, { token_endpoint_auth_method: 'private_key_jwt' })),
    '/that-breaks-off': (response) => response.write('{', () => response.destroy()),
    '/that-never-ends': (response) => response.write('{'),
  };
  const requests: string[] = [];
  const web = await startFakeWeb(({ url: path = '' }, response) => {
    requests.push(path);
    const answer = answers[path] ?? (() => response.end(createDocument(path)));
    answer(response, path);
  });
  const server = await startSignInServer({ baseUrl }, web);
  const paths = Object.keys(answers);
  const requestMetadata = (path: string) => requestPage(server, createAuthorizationRequest(`${chat}${path}`).request);
  for (const errorPage of await Promise.all(paths.map(requestMetadata))) {
    expect(errorPage.status, errorPage.url).toBe(400);
    expect(await errorPage.text()).toContain('chat.example.com');
  }
  expect(requests.toSorted()).toEqual(paths.toSorted());
  expect((await requestMetadata('/good')).status).toBe(200);
});

test('the server never fetches a client metadata document from a host in an internal network', async ({
  upstream: { baseUrl },
}) => {
  const hosts = ['127.0.0.1', '[::1]', '169.254.169.254', 'no-such-host.invalid'];
  const server = await startSignInServer({
    baseUrl,
    mediaHosts: { allowsPublicHosts: true, listedHosts: hosts.map((host) => ({ host })) },
  });
  const requestMetadata = async (host: string) => {
    const started = performance.now();
    const errorPage = await requestPage(server, createAuthorizationRequest(`https://${host}/client.json`).request);
    return [errorPage.status, /could not be read/.test(await errorPage.text()), performance.now() - started > 1900];
  };
  expect(await Promise.all(hosts.map(requestMetadata))).toEqual(hosts.map(() => [400, true, true]));
});

test('the server rejects a client id that is not a valid URL and does not fetch it', async ({
  upstream: { baseUrl },
}) => {
  const requests: unknown[] = [];
  const web = await startFakeWeb(({ url }, response) => {
    requests.push(url);
    response.end(createDocument('/c'));
  });
  const server = await startSignInServer({ baseUrl }, web);
  const paths = [':8443/c', '/', '/a/../c', '/c#d'].map((path) => chat + path);
  const hosts = ['http://chat.example.com/c', 'https://a@chat.example.com/c', 'https://CHAT.example.com/c'];
  for (const id of [...paths, ...hosts])
    expect([id, (await requestPage(server, createAuthorizationRequest(id).request)).status]).toEqual([id, 400]);
  expect(requests).toEqual([]);
});

test('the server limits the number of client metadata documents that it fetches for one IP address', async ({
  upstream: { baseUrl },
}) => {
  const open: { url: string; end(): void }[] = [];
  const startedFetches: string[] = [];
  const web = await startFakeWeb(({ url = '' }, response) => {
    startedFetches.push(url);
    open.push({ url, end: () => response.end(createDocument(url)) });
  });
  const clock = { now: 1_000_000 };
  const trustedProxy = { address: '127.0.0.0', prefixLength: 8, family: 'ipv4' } as const;
  const server = await startSignInServer({ baseUrl, trustedProxy }, { ...web, monotonicNow: () => clock.now });
  const requestMetadata = (name: string, address = 'a') => {
    const search = new URLSearchParams(createAuthorizationRequest(`${chat}/${name}`).request);
    const forwarded = { a: '203.0.113.1', b: '203.0.113.2', c: '203.0.113.3' }[address] ?? '';
    return server.send(`/authorize?${search}`, { headers: { 'x-forwarded-for': forwarded } });
  };
  const answerAll = () => {
    for (const { end } of open.splice(0)) end();
  };
  // Request forty slow documents from each of two IP addresses.
  const slow = ['a', 'b'].flatMap((address) =>
    Array.from({ length: 40 }, (_, index) => requestMetadata(`${address}-${index}`, address)),
  );
  await waitUntil(() => open.length === 4);
  expect(new Set(startedFetches.map((url) => url.slice(0, 2)))).toEqual(new Set(['/a', '/b']));
  const otherRequest = requestMetadata('other', 'c');
  const answering = setInterval(answerAll, 20);
  onTestFinished(() => clearInterval(answering));
  expect((await otherRequest).status).toBe(200);
  // The third IP address got a slot before the first two had finished.
  expect(startedFetches.indexOf('/other')).toBeLessThan(30);
  const statuses = (await Promise.all(slow)).map(({ status }) => status);
  expect([statuses.filter((status) => status === 200), statuses.filter((status) => status === 429)]).toEqual([
    Array(40).fill(200),
    Array(40).fill(429),
  ]);
  expect((await requestMetadata('a-40')).headers.get('retry-after')).toMatch(/^[1-9]/);
  expect((await requestMetadata('a-0')).status).toBe(200);
  expect(startedFetches).toHaveLength(41);
  // A document that is older than ten minutes is fetched again.
  for (const [minutes, fetched] of [
    [9, 41],
    [2, 42],
  ] as const) {
    clock.now += minutes * 60_000;
    expect((await requestMetadata('other', 'c')).status).toBe(200);
    expect(startedFetches).toHaveLength(fetched);
  }
});

test('client ids never contain an underscore, so that none of them looks like an API key in the URL', async ({
  server,
}) => {
  const clientIds = await Promise.all(Array.from({ length: 50 }, () => server.register()));
  expect(clientIds.join()).not.toContain('_');
});

test('a hundred apps that register at the server all stay valid', async ({ server }) => {
  const ids = await Promise.all(Array.from({ length: 100 }, () => server.register()));
  expect(new Set(ids).size).toBe(100);
  for (const id of [ids[0], ids[99]])
    expect((await requestPage(server, createAuthorizationRequest(id ?? '').request)).status).toBe(200);
});
