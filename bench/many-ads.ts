/**
 * A simulated service that returns many pages of ads. Each ad is a copy of a sample ad with a new id. Run it with `node
 * many-ads.ts <ads>`.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { deriveUuid } from '../test/support/derive-uuid.ts';
import { readDemoSamples, readRealSamples } from './samples.ts';

/**
 * The message that this process sends when the service is ready: its port, and whether its ads are real or generated
 * (`dataDescription`).
 */
export interface ManyAdsInfo {
  port: number;
  dataDescription: string;
}

const totalAds = Number(process.argv[2]);
const { dataDescription, ads } = readRealSamples() ?? (await readDemoSamples(Date.now()));

const buildIdentity = (id: string) => ({
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
  const [start, end] = [Number(cursor), Math.min(Number(cursor) + limit, totalAds)];
  const items = Array.from({ length: end - start }, (_, index) => ({
    ...ads[(start + index) % ads.length],
    id: deriveUuid(`${authorization} ${start + index}`),
  }));
  const adsPage = { items, cursor: end < totalAds ? String(end) : null, hasMore: end < totalAds, totalHits: totalAds };
  const headers = { 'content-type': 'application/json', 'x-service-credits-charged': '1' };
  const responseBody = request.url === '/v1/whoami' ? buildIdentity(deriveUuid(`${authorization}`)) : adsPage;
  response.writeHead(200, headers).end(JSON.stringify(responseBody));
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.send?.({ port, dataDescription } satisfies ManyAdsInfo);
});
