import { expect } from 'vitest';
import { connectStdio } from '../support/clients.ts';
import { everyTool } from '../support/every-tool.ts';
import { bytes, json, refusal } from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';
import { start as startCommand } from '../support/process.ts';
import { uuidOf } from '../support/uuid-of.ts';

const key = 'svc_live_CANARY0123456789abcdef';

const test = upstreamTest({ config: { apiKey: key } });

/** A service that repeats the key wherever it can. */
const echoes = {
  'in a message': refusal(422, { message: `Bad key ${key}`, code: key, requestId: key, details: { [key]: [key] } }),
  'in an answer': json({ id: 'x', headline: key, [key]: key }, { headers: { 'x-service-request-id': key } }),
  'in an answer of another shape': json({ [key]: key, items: key }),
  'in a page that is no JSON': bytes(`<h1>${key}</h1>`),
  'in a refusal that is no JSON': (_: unknown, response: import('node:http').ServerResponse) => {
    response.writeHead(401, { 'www-authenticate': key, 'x-service-request-id': key }).end(`no ${key}`);
  },
};

test.for(Object.keys(echoes) as (keyof typeof echoes)[])(
  'a service that repeats the key %s does not make us show it',
  async (where, { upstream, start }) => {
    const server = await start();
    upstream.does(echoes[where]);
    for (const { tool, args } of everyTool) {
      const result = await server.call(tool, { ...args, ...('adId' in args && { detail: 'full' }) });
      expect(JSON.stringify(result.raw)).not.toContain('CANARY');
    }
    expect(server.logged.join('')).not.toContain('CANARY');
    expect(server.logged.length).toBeGreaterThan(0);
  },
);

test('a short key that is an ordinary word is not masked in ads', async ({ upstream, start }) => {
  const server = await start({ apiKey: 'shoes' });
  upstream.does(json({ id: 'x', headline: 'New shoes' }));
  expect((await server.call('get_ad', { adId: uuidOf('x') })).text).toContain('New shoes');
});

test('the process never writes the key, not even at log level debug', async ({ upstream }) => {
  const settings = { AD_LIBRARY_API_KEY: key, AD_LIBRARY_BASE_URL: upstream.baseUrl, AD_LIBRARY_LOG_LEVEL: 'debug' };
  upstream.does(echoes['in a message']);
  const client = await connectStdio('v1', [], settings);
  const results = await Promise.all(everyTool.map(({ tool, args }) => client.call(tool, args)));
  expect(JSON.stringify(results)).not.toContain('CANARY');
  await client.close();

  const running = startCommand([], settings);
  const messages = [
    {
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } },
    },
    { id: 2, method: 'tools/call', params: { name: `search_${key}`, arguments: {} } },
    { id: 3, method: 'tools/call', params: { name: 'whoami', arguments: { [key]: key } } },
    { id: 4, method: 'tools/call', params: { name: 'whoami', arguments: {} } },
  ];
  for (const message of messages) running.child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  await running.says(/tool="whoami"[^\n]*unauthorized|tool="whoami"[^\n]*status=422/);
  running.child.stdin?.end();
  const { stderr } = await running.ended;
  expect(stderr).toContain('info: call');
  expect(stderr).not.toContain('CANARY');
});

test('a key that no header can carry is refused at start, without being shown', async ({ upstream }) => {
  const running = startCommand([], {
    AD_LIBRARY_API_KEY: 'svc_live_CANARY with spaces\u00e9',
    AD_LIBRARY_BASE_URL: upstream.baseUrl,
  });
  const { code, stderr, stdout } = await running.ended;
  expect(code).toBe(2);
  expect(stderr).toContain('AD_LIBRARY_API_KEY must be the key');
  expect(stderr + stdout).not.toContain('CANARY');
});
