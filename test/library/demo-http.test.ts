import { expect, test } from 'vitest';
import { serveHttp } from '../../src/cli/serve.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { freePort } from '../support/free-port.ts';

test('in demo mode, http serves the pictures that its ads name, and nothing else of the library', async () => {
  const config = { ...readConfig({}), demo: true, port: await freePort() };
  const served = await serveHttp(config, () => {});
  try {
    const post = async (name: string, args: unknown) => {
      const response = await fetch(`${served.address}/mcp`, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          Accept: 'application/json, text/event-stream',
          'MCP-Protocol-Version': '2025-11-25',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
      });
      return response.text();
    };
    const [adId] = (await post('search_ads', { limit: 1 })).match(/(?<="items":\[\{"id":")[\da-f-]{36}/) ?? [];
    const shown = await post('get_ad', { adId });
    const [picture = ''] = shown.match(/http:\/\/127\.0\.0\.1:\d+\/media\/ads\/[^"\\\s?]+/) ?? [];
    const answer = await fetch(picture);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/webp']);
    expect((await fetch(`${served.address}/media/ads/${adId}/none`)).status).toBe(404);
    for (const path of ['/media/../v1/credits', '/media/%2e%2e/v1/credits', '/openapi.json']) {
      expect((await fetch(`${served.address}${path}`)).status).toBe(404);
    }
    const foreign = await fetch(picture, { headers: { Origin: 'https://elsewhere.example' } });
    expect(foreign.status).toBe(403);
  } finally {
    await served.close(1000);
  }
});
