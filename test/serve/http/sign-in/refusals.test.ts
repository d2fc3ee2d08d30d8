import { expect, test } from 'vitest';
import { refusal } from '../../../support/faulty-upstream.ts';
import {
  codeGrant,
  codeIn,
  goodKey,
  locationOf,
  redirectUri,
  requestOf,
  type SignInServer,
  startKeyed,
  startSignIn,
  startWeb,
} from '../../../support/sign-in.ts';

const serve = async (config = {}, ways?: Parameters<typeof startSignIn>[1]) =>
  startSignIn({ baseUrl: (await startKeyed()).baseUrl, ...config }, ways);

const page = (server: SignInServer, request: Record<string, string>) =>
  server.send(`/authorize?${new URLSearchParams(request)}`);

const key = { api_key: goodKey, budget: '' };

/** A host with its code, and what it would send for its tokens. */
async function withCode(server: SignInServer) {
  const clientId = await server.register();
  const { request, verifier } = requestOf(clientId);
  const code = codeIn(await server.submit(request, key));
  expect(code).not.toBe('');
  return codeGrant(clientId, code, verifier);
}

test('every answer of the front is one that nothing can be done with but what it is for', async () => {
  const server = await serve();
  const { request } = requestOf(await server.register());
  const shown = await page(server, request);
  const headers = Object.fromEntries(shown.headers);
  expect(headers).toMatchObject({
    'x-frame-options': 'DENY',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  expect(headers['content-security-policy']).toMatch(
    /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; frame-ancestors 'none'$/,
  );
  expect(await shown.text()).not.toMatch(/<script|<img|src=|https?:\/\/(?!host\.example\.com|127)/);
  const token = await server.token(codeGrant(await server.register(), 'x', 'v'.repeat(43)));
  expect(token).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
  const challenged = await server.send('/mcp', { method: 'POST' });
  expect(challenged.headers.get('www-authenticate')).toBe(
    `Bearer resource_metadata="${server.origin}/.well-known/oauth-protected-resource/mcp"`,
  );
  expect((await server.send('/token')).status).toBe(405);
  // A document of that address would be that of another issuer (RFC 8414, 3.3).
  expect((await server.send('/.well-known/oauth-authorization-server/mcp')).status).toBe(404);
  for (const path of ['', '/mcp']) {
    const resource = await (await server.send(`/.well-known/oauth-protected-resource${path}`)).json();
    expect(resource).toMatchObject({ resource: server.url, authorization_servers: [server.origin] });
  }
});

test('without its two settings there is no sign-in', async () => {
  const server = await serve({ publicUrl: undefined, signInSecret: undefined });
  for (const path of ['/authorize', '/.well-known/oauth-protected-resource', '/.well-known/oauth-authorization-server'])
    expect((await server.send(path)).status).toBe(404);
  const challenged = await server.send('/mcp', { method: 'POST' });
  expect(challenged.headers.get('www-authenticate')).toBe('Bearer realm="ad-library-mcp"');
});

test('nobody is sent to an address that the app has not named before, whatever is wrong', async () => {
  const server = await serve();
  const clientId = await server.register();
  const { request } = requestOf(clientId);
  for (const uri of [
    'https://evil.example.com/callback',
    'https://host.example.com/callback/../evil',
    'https://host.example.com/callback?next=evil',
    'https://host.example.com@evil.example.com/callback',
    'https://host.example.com/Callback',
    'https://HOST.example.com/callback',
    'https://host.example.com/callback#fragment',
    'javascript:alert(1)',
    '',
  ]) {
    for (const answer of [
      await page(server, { ...request, redirect_uri: uri }),
      await server.submit({ ...request, redirect_uri: uri }, key),
    ]) {
      expect([answer.status, answer.headers.get('location')]).toEqual([400, null]);
      expect(await answer.text()).not.toContain('href=');
    }
  }
  // Where the app itself is at fault, a person decides whether to go back.
  for (const [wrong, error] of [
    [{ response_type: 'token' }, 'unsupported_response_type'],
    [{ response_type: '' }, 'invalid_request'],
    [{ code_challenge_method: 'plain' }, 'invalid_request'],
    [{ code_challenge: 'short' }, 'invalid_request'],
    [{ resource: 'https://other.example.com/mcp' }, 'invalid_target'],
  ] as const)
    for (const answer of [
      await page(server, { ...request, ...wrong }),
      await server.submit({ ...request, ...wrong }, key),
    ]) {
      expect([answer.status, answer.headers.get('location')]).toEqual([400, null]);
      expect(await answer.text()).toContain(`href="${redirectUri}?error=${error}&amp;state=a+state&amp;iss=`);
    }
  expect((await page(server, { ...request, resource: '' })).status).toBe(200);
  const twice = await server.send(`/authorize?${new URLSearchParams(request)}&redirect_uri=https://evil.example.com`);
  expect(twice.status).toBe(400);
  const cancelled = locationOf(await server.submit(request, { cancel: 'yes' }));
  expect(Object.fromEntries(cancelled.searchParams)).toEqual({
    error: 'access_denied',
    state: 'a state',
    iss: server.origin,
  });
});

test.each([
  'http://host.example.com/callback',
  'host://callback',
  'https://user@host.example.com/',
  'https://host.example.com/callback?iss=evil',
  'https://host.example.com/#a',
  'https://host.example.com;evil/',
  'http://127.0.0.1.example.com/',
  'https:\\\\evil.example.com',
  `https://host.example.com/${'a'.repeat(500)}`,
])('no app registers %s', async (uri) => {
  const server = await serve();
  const body = JSON.stringify({ redirect_uris: [redirectUri, uri] });
  const answer = await server.send('/register', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  expect([answer.status, await answer.json()]).toMatchObject([400, { error: 'invalid_redirect_uri' }]);
});

test('an app on the own machine may have any port there, and no other address', async () => {
  const server = await serve();
  const clientId = await server.register('http://127.0.0.1/callback');
  const at = async (uri: string) => (await page(server, requestOf(clientId, { redirect_uri: uri }).request)).status;
  expect(await at('http://127.0.0.1:45678/callback')).toBe(200);
  for (const uri of ['http://127.0.0.1:45678/other', 'http://localhost:45678/callback', 'http://127.0.0.2/callback'])
    expect(await at(uri)).toBe(400);
});

test('a code is for one client, one address and one verifier, and for once', async () => {
  const server = await serve();
  const good = await withCode(server);
  for (const wrong of [
    { code_verifier: 'w'.repeat(43) },
    { redirect_uri: `${redirectUri}/other` },
    { client_id: await server.register('https://other.example.com/callback') },
    { code: `${good.code.slice(0, -2)}xx` },
    { code: `${good.code}=` },
  ])
    expect((await server.token({ ...good, ...wrong })).body.error).toBe('invalid_grant');
  expect((await server.token({ ...good, resource: 'https://other.example.com/mcp' })).body.error).toBe(
    'invalid_target',
  );
  expect((await server.token({ ...good, client_id: 'made up' })).status).toBe(401);
  expect((await server.token({ ...good, grant_type: 'password' })).body.error).toBe('unsupported_grant_type');
  for (const name of Object.keys(good)) {
    const without = Object.fromEntries(Object.entries(good).filter(([one]) => one !== name));
    expect((await server.token(without)).body.error).toBe('invalid_request');
  }
  const first = await server.token(good);
  expect(first).toMatchObject({ status: 200, body: { token_type: 'Bearer', expires_in: 3600 } });
  const { access_token: access = '', refresh_token: refresh = '' } = first.body;
  expect(Math.max(access.length, refresh.length)).toBeLessThan(1024);
  expect((await server.call(access, 'whoami')).status).toBe(200);
  // Whoever has it a second time has stolen it, or was stolen from.
  expect((await server.token(good)).body.error).toBe('invalid_grant');
  expect((await server.call(access, 'whoami')).status).toBe(401);
  expect((await server.renew(refresh, good.client_id)).status).toBe(400);
  expect((await server.token(good)).status).toBe(400);
});

test('a refresh token is for one client and for once; one used twice ends the connection, and no other', async () => {
  const server = await serve();
  const [one, other] = [await server.connect(), await server.connect()];
  const renew = (refresh: string, clientId = one.clientId) => server.renew(refresh, clientId);
  expect((await renew(one.refresh, await server.register('https://other.example.com/'))).status).toBe(400);
  const second = await renew(one.refresh);
  expect(second.status).toBe(200);
  expect((await server.call(second.body.access_token ?? '', 'whoami')).status).toBe(200);
  const atOnce = await Promise.all(Array.from({ length: 8 }, () => renew(second.body.refresh_token ?? '')));
  expect(atOnce.filter(({ status }) => status === 200)).toHaveLength(1);
  expect((await server.call(second.body.access_token ?? '', 'whoami')).status).toBe(401);
  expect((await server.call(other.access, 'whoami')).status).toBe(200);
});

test('a token of one kind is none of another', async () => {
  const server = await serve();
  const good = await withCode(server);
  const { clientId, access, refresh } = await server.connect();
  for (const token of [refresh, good.code, clientId, 'x'.repeat(500), '']) {
    const { status } = await server.call(token, 'whoami');
    expect(status).toBe(401);
  }
  for (const token of [access, good.code, clientId]) expect((await server.renew(token, clientId)).status).toBe(400);
  for (const token of [access, refresh, clientId])
    expect((await server.token({ ...good, code: token })).status).toBe(400);
  for (const id of [access, refresh, good.code]) expect((await page(server, requestOf(id).request)).status).toBe(400);
});

test('a connection ends when its app revokes it, and not when another does', async () => {
  const server = await serve();
  const { clientId, access, refresh } = await server.connect();
  const revoke = (token: string, id: string) =>
    server.send('/revoke', { method: 'POST', body: new URLSearchParams({ token, client_id: id }) });
  for (const [token, id, status] of [
    [refresh, 'another', 401],
    [refresh, await server.register('https://other.example.com/'), 400],
    ['', clientId, 400],
    ['made up', clientId, 200],
  ] as const)
    expect((await revoke(token, id)).status).toBe(status);
  expect((await server.call(access, 'whoami')).status).toBe(200);
  expect((await revoke(refresh, clientId)).status).toBe(200);
  expect((await server.call(access, 'whoami')).status).toBe(401);
  expect((await server.renew(refresh, clientId)).status).toBe(400);
});

test('a key that the service rejects ends its connection; what a gateway says does not', async () => {
  const upstream = await startKeyed();
  const server = await startSignIn({ baseUrl: upstream.baseUrl });
  const { access } = await server.connect();
  upstream.does((_, response) => void response.writeHead(401).end('<h1>Gateway</h1>'));
  expect((await server.call(access, 'whoami')).result.error).toMatchObject({ kind: 'unauthorized' });
  upstream.does(refusal(401));
  const rejected = await server.call(access, 'whoami');
  expect([rejected.status, rejected.result.error?.kind]).toEqual([200, 'unauthorized']);
  expect((await server.call(access, 'whoami')).status).toBe(401);
});

test('only the page itself, or what is no browser, sends the form', async () => {
  const server = await serve();
  const { request } = requestOf(await server.register());
  const body = () => new URLSearchParams({ ...request, ...key });
  const from = (headers: Record<string, string>) =>
    server.send('/authorize', { method: 'POST', headers, body: body() });
  for (const headers of [
    { origin: 'https://evil.example.com' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { origin: server.origin, 'sec-fetch-site': 'same-site' },
  ]) {
    const answer = await from(headers);
    expect([answer.status, answer.headers.get('location')]).toEqual([403, null]);
  }
  for (const headers of [{ origin: server.origin, 'sec-fetch-site': 'same-origin' }, {}])
    expect((await from(headers as Record<string, string>)).status).toBe(303);
  expect(
    (await server.send('/authorize', { method: 'POST', body: JSON.stringify({ ...request, ...key }) })).status,
  ).toBe(415);
  const long = await server.submit({ ...request, state: 'x'.repeat(20_000) }, key);
  expect([long.status, long.headers.get('x-frame-options')]).toEqual([413, 'DENY']);
});

test.each([
  '-1',
  '1.5',
  '1e3',
  '0x10',
  'ten',
  '١٢',
  '1 000',
  '99999999999',
  '1000000001',
  '"><script>',
  'NaN',
  '1\u0000',
])('a budget of %j is no budget, and the page says so beside it', async (budget) => {
  const server = await serve();
  const { request } = requestOf(await server.register());
  const answer = await server.submit(request, { api_key: goodKey, budget });
  const html = await answer.text();
  expect(answer.status).toBe(400);
  expect(html).toMatch(/<input id="budget"[^>]*aria-invalid="true" aria-describedby="budget-wrong/);
  expect(html).not.toMatch(/<script|svc_live_good/);
});

test('the key is in no page, address, log, error or token as it is, in whatever form it is sent', async () => {
  const upstream = await startKeyed();
  const server = await startSignIn({ baseUrl: upstream.baseUrl });
  const clientId = await server.register();
  const { request } = requestOf(clientId);
  const seen: string[] = [];
  const look = async (answer: Response) => {
    seen.push(await answer.text(), JSON.stringify([...answer.headers]));
    return answer;
  };
  const wrongKey = 'svc_live_wrong.key';
  await look(await server.submit(request, { api_key: wrongKey, budget: '' }));
  await look(await server.submit(request, { api_key: `${goodKey} `, budget: 'none' }));
  await look(await server.submit(request, { api_key: 'no key at all', budget: goodKey.slice(0, 5) }));
  await look(await server.submit(request, { api_key: goodKey, budget: wrongKey }));
  await look(await server.submit(request, { api_key: '', budget: goodKey }));
  await look(await server.submit({ ...request, response_type: 'token' }, key));
  await look(await page(server, { ...request, api_key: goodKey }));
  const agreed = await look(await server.submit(request, key));
  expect(agreed.status).toBe(303);
  const connected = await server.connect();
  upstream.does((_, response) => void response.destroy());
  await look(await server.submit(request, key));
  upstream.does(refusal(401));
  const { access, refresh } = connected;
  seen.push(JSON.stringify((await server.call(access, 'whoami')).result.raw));
  seen.push(JSON.stringify(await server.renew(refresh, clientId)));
  const tokens = [codeIn(agreed), access, refresh, clientId];
  const sealed = [...tokens, ...tokens.map((token) => Buffer.from(token, 'base64url').toString('latin1'))];
  expect(server.logged.join()).toContain('sign_in');
  const whole = [...seen, ...server.logged, ...sealed].join('\n');
  for (const secret of [
    goodKey,
    wrongKey,
    'no key at all',
    'good.key',
    'wrong.key',
    Buffer.from(goodKey).toString('base64url').slice(2, -2),
  ])
    expect(whole).not.toContain(secret);
});

test('what an app calls itself is text, on one line, and no longer than that', async () => {
  const server = await serve();
  const name = `<img src=x onerror=alert(1)> ”Claude“ \u202e\u200b\n${'verified '.repeat(40)}`;
  const { request } = requestOf(await server.register(redirectUri, { client_name: name }));
  const html = await (await page(server, request)).text();
  expect(html).toContain('&lt;img src=x onerror=alert(1)&gt; ');
  expect(html).not.toMatch(/<img|\u202e|\u200b/);
  expect(/<dt>Calls itself<\/dt><dd>(.*)<\/dd>/.exec(html)?.[1]?.length).toBeLessThan(110);
  expect(html).toContain('<dd>not known</dd>');
});

const documentAt = 'https://chat.example.com/client.json';
const described = (more = {}) =>
  JSON.stringify({ client_id: documentAt, client_name: 'A chat', redirect_uris: [redirectUri], ...more });

test.each([
  ['larger than 5 KB', (response) => response.end(described({ more: 'x'.repeat(5000) }))],
  ['of another address', (response) => response.end(described({ client_id: `${documentAt}?` }))],
  [
    'that redirects',
    (response) => response.writeHead(302, { location: 'https://other.example.com/client.json' }).end(),
  ],
  ['that is not there', (response) => response.writeHead(404).end(described())],
  ['that is no JSON', (response) => response.end('<h1>Client</h1>')],
  ['without addresses', (response) => response.end(described({ redirect_uris: [] }))],
  [
    'that needs another method',
    (response) => response.end(described({ token_endpoint_auth_method: 'private_key_jwt' })),
  ],
  ['that breaks off', (response) => response.write('{') && setTimeout(() => response.destroy(), 20)],
  ['that never ends', (response) => response.write('{')],
] satisfies [string, (response: import('node:http').ServerResponse) => unknown][])(
  'a metadata document %s is none',
  async (_, answer) => {
    let requests = 0;
    const web = await startWeb((__, response) => {
      requests++;
      answer(response);
    });
    const server = await serve({}, web);
    const started = performance.now();
    const shown = await page(server, requestOf(documentAt).request);
    expect(shown.status).toBe(400);
    expect(await shown.text()).toContain('chat.example.com');
    expect(performance.now() - started).toBeLessThan(8000);
    expect(requests).toBe(1);
  },
  20_000,
);

test('a metadata document inside is not fetched, and nobody learns what is there', async () => {
  const addresses = ['127.0.0.1', '[::1]', '169.254.169.254', 'localhost', 'no-such-host.invalid', '10.0.0.1'];
  const listed = addresses.map((host) => ({ host }));
  const server = await serve({ mediaHosts: { public: true, listed } });
  const ask = async (host: string) => {
    const started = performance.now();
    const shown = await page(server, requestOf(`https://${host}/client.json`).request);
    return [shown.status, /could not be read/.test(await shown.text()), performance.now() - started > 1900];
  };
  for (const some of [addresses.slice(0, 3), addresses.slice(3)])
    expect(await Promise.all(some.map(ask))).toEqual(Array(3).fill([400, true, true]));
});

test.each([
  'http://chat.example.com/c',
  'https://chat.example.com:8443/c',
  'https://chat.example.com/',
  'https://a@chat.example.com/c',
  'https://chat.example.com/a/../c',
  'https://CHAT.example.com/c',
  'https://chat.example.com/c#d',
])('an id %s is no address of a metadata document', async (id) => {
  const web = await startWeb((_, response) => response.end(described({ client_id: id })));
  expect((await page(await serve({}, web), requestOf(id).request)).status).toBe(400);
});

test('metadata documents are fetched four at once and forty a minute for one address, each once in ten minutes', async () => {
  let [open, most, requests] = [0, 0, 0];
  const web = await startWeb((request, response) => {
    most = Math.max(most, ++open);
    requests++;
    const id = `https://chat.example.com${request.url}`;
    setTimeout(() => {
      open--;
      response.end(described({ client_id: id }));
    }, 50);
  });
  const server = await serve({}, web);
  const ask = async (number: number) => (await page(server, requestOf(`${documentAt}${number}`).request)).status;
  const same = await Promise.all(Array.from({ length: 10 }, () => ask(0)));
  expect([new Set(same), requests]).toEqual([new Set([200]), 1]);
  const burst = await Promise.all(Array.from({ length: 12 }, (_, index) => ask(index + 1)));
  expect([burst.filter((status) => status === 200).length, most]).toEqual([12, 4]);
  for (let number = 100; number < 160; number++) await ask(number);
  expect(requests).toBeLessThanOrEqual(40);
  const refused = await page(server, requestOf(`${documentAt}999`).request);
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await ask(0)).toBe(200);
});

test('a thousand registrations take nothing, and each goes on being good', async () => {
  const server = await serve();
  const ids = [];
  for (let index = 0; index < 1000; index++) ids.push(await server.register());
  expect(new Set(ids).size).toBe(1000);
  for (const id of [ids[0], ids[999]]) expect((await page(server, requestOf(id ?? '').request)).status).toBe(200);
});
