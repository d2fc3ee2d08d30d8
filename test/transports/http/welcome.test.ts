import { expect } from 'vitest';
import { respondAsDocumented } from '../../support/faulty-upstream.ts';
import { httpTest as test } from '../../support/fixtures.ts';
import { createToolCall, createValidHeaders, openConnection } from '../../support/http.ts';

const browserHeaders = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
const signInSecret = 'a secret of sign-in, at least 32 characters';
const publicUrl = 'https://ads.example.com';

test("a browser that opens the server's URL gets a welcome page with the endpoint URL", async ({ serve }) => {
  const { server, get } = await serve(respondAsDocumented);
  for (const path of ['/', '/mcp']) {
    const page = await get(path, browserHeaders);
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-/);
    expect(page.text).toContain(`<pre class="address">${server.url}</pre>`);
    expect(page.text).toContain('Authorization: Bearer svc_live_…');
    expect(page.text).not.toMatch(/<script|<a |claude\.ai|Demo data/);
    expect((await get(path, { ...browserHeaders, host: 'evil.example' })).status).toBe(403);
  }
  expect(await get('/mcp', { accept: 'text/event-stream' })).toMatchObject({ status: 405, headers: { allow: 'POST' } });
  expect((await get('/', { accept: '*/*' })).status).toBe(404);
});

test('the welcome page shows the public URL of the server and the hosts that can sign in', async ({ serve }) => {
  const open = await serve(respondAsDocumented, {
    publicUrl,
    signInSecret,
    trustedProxy: { ...loopback },
  });
  const signIn = (await open.get('/', { ...browserHeaders, host: 'ads.example.com' })).text;
  expect(signIn).toContain(`<pre class="address">${publicUrl}/mcp</pre>`);
  expect(signIn).toMatch(/claude\.ai.*ChatGPT.*Claude Code/s);
  const demo = (await (await serve(respondAsDocumented, { demo: true, baseUrl: undefined })).get('/', browserHeaders))
    .text;
  expect(demo).toContain('No key is needed');
  expect(demo).not.toContain('Bearer');
});

const loopback = { address: '127.0.0.1', prefixLength: 32, family: 'ipv4' } as const;

test('the URL parameter "output" takes precedence over the output setting of the server', async ({ serve }) => {
  const { server } = await serve(respondAsDocumented, { output: 'text' });
  const sendCall = (query: string, body: object = createToolCall('whoami')) =>
    openConnection(server.origin).send({
      path: `/mcp${query}`,
      headers: createValidHeaders(),
      body: JSON.stringify(body),
    });
  const formOf = async (query: string) => {
    const { structuredContent, content } = (await sendCall(query)).json.result;
    return [structuredContent !== undefined, content[0].text.includes('Credits:')];
  };
  expect(await formOf('')).toEqual([false, true]);
  expect(await formOf('?output=both')).toEqual([true, true]);
  expect(await formOf('?output=auto')).toEqual([true, true]);
  expect(await formOf('?output=structured')).toEqual([true, false]);
  expect(await formOf('?output=text')).toEqual([false, true]);
  const hasSchemas = async (query: string) =>
    (await sendCall(query, { jsonrpc: '2.0', id: 1, method: 'tools/list' })).text.includes('"outputSchema"');
  expect([await hasSchemas(''), await hasSchemas('?output=both')]).toEqual([false, true]);
  for (const query of ['?output=', '?output=xml', '?output=text&output=both']) {
    const { status, json } = await sendCall(query);
    expect([query, status]).toEqual([query, 400]);
    expect(json.error.message).toBe('output takes one of auto, both, text, structured, as in /mcp?output=text.');
  }
});
