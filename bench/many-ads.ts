import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { deriveUuid } from '../test/support/derive-uuid.ts';
import { readDemoSamples, readRealSamples } from './samples.ts';

/**
 * A service that returns pages of many ads. Every ad is a copy of a sample with a new id. Run it with `node many-ads.ts
 * <ads>`.
 */
export interface ManyAds {
  port: number;
  source: string;
}

const count = Number(process.argv[2]);
const { source, ads } = readRealSamples() ?? (await readDemoSamples(Date.now()));

const identityOf = (id: string) => ({
  authenticated: true,
  authSource: 'api_key',
  user: {
    userId: id,
    billingUserId: id,
    planId: 'pro',
    isTeamMember: false,
    subscriptionStatus: 'active',
    name: 'Ada',
  },
  apiKey: { id, name: 'Key', keyPrefix: 'svc_live_ab' },
});

const server = createServer(async (request, response) => {
  const { authorization } = request.headers;
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += chunk;
  const { limit = 20, cursor = '0' } = JSON.parse(body || '{}') as { limit?: number; cursor?: string };
  const [start, end] = [Number(cursor), Math.min(Number(cursor) + limit, count)];
  const items = Array.from({ length: end - start }, (_, index) => ({
    ...ads[(start + index) % ads.length],
    id: deriveUuid(`${authorization} ${start + index}`),
  }));
  const found = { items, cursor: end < count ? String(end) : null, hasMore: end < count, totalHits: count };
  const headers = { 'content-type': 'application/json', 'x-service-credits-charged': '1' };
  const answer = request.url === '/v1/whoami' ? identityOf(deriveUuid(`${authorization}`)) : found;
  response.writeHead(200, headers).end(JSON.stringify(answer));
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.send?.({ port, source } satisfies ManyAds);
});
