import { describe, expect } from 'vitest';
import { testClient } from '../../support/client-suite.ts';
import { connectHttp } from '../../support/clients.ts';
import { respondAsDocumented } from '../../support/faulty-upstream.ts';
import { httpTest } from '../../support/fixtures.ts';
import { createToolCall, createValidHeaders, openConnection } from '../../support/http.ts';
import { startHttpCommand } from '../../support/process.ts';
import { createLatestRequest, initialize } from '../stdio/session.ts';

describe('A client over HTTP', () => {
  testClient(async () => {
    const served = await startHttpCommand(['--demo']);
    const client = await connectHttp('v2 auto', served.url, 'svc_live_not_known');
    return {
      ...client,
      close: async () => {
        await client.close();
        await served.close();
      },
    };
  });
});

const test = httpTest.extend('connection', async ({ serve }) => {
  const { server } = await serve(respondAsDocumented);
  return { ...openConnection(server.origin), logged: server.logged };
});

test('over HTTP, the server responds with plain JSON and without a session in every older protocol revision', async ({
  connection: { send },
}) => {
  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
    const opened = await send({ body: JSON.stringify(initialize(revision)) });
    expect(opened.json).toMatchObject({ result: { protocolVersion: revision } });
    expect(opened.headers).not.toHaveProperty('mcp-session-id');
    const headers = { ...createValidHeaders(), 'mcp-protocol-version': revision };
    const called = await send({ headers, body: JSON.stringify(createToolCall('whoami')) });
    expect(called.headers['content-type']).toBe('application/json');
    expect(called.json).toMatchObject({ result: { structuredContent: { authenticated: true } } });
  }
});

describe('Protocol revision 2026-07-28 over HTTP', () => {
  test('in protocol revision 2026-07-28, tool lists are identical for every request and say how long clients may cache them', async ({
    connection: { send },
  }) => {
    const publicHint = { ttlMs: 3_600_000, cacheScope: 'public' };
    // The list of tools depends on the host.
    const hints = { 'tools/list': { ttlMs: 300_000, cacheScope: 'private' }, 'prompts/list': publicHint };
    for (const [method, hint] of Object.entries({ ...hints, 'server/discover': publicHint })) {
      const { json, text } = await send(createLatestRequest(method));
      expect(json).toMatchObject({ result: hint });
      expect((await send(createLatestRequest(method))).text).toBe(text);
    }
  });

  test('a tool call is rejected if its requestState was not created by the server', async ({
    connection: { send, logged },
  }) => {
    const call = createLatestRequest('tools/call', { name: 'whoami', arguments: {}, requestState: 5 });
    expect((await send(call)).json).toMatchObject({ error: { code: -32_602 } });
    expect(logged.join('')).not.toContain('"call"');
  });
});
