import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { demoSamples, realSamples } from './samples.ts';

/** A service that has one answer: a page of 50 ads, about 120 KB. Says where it listens and what it answers. */
export interface PageOfAds {
  port: number;
  source: string;
  ads: number;
  bytes: number;
}

const { source, ads } = realSamples() ?? (await demoSamples(Date.now()));
/** Of the samples, those nearest to the size that makes 50 of them as long as that. */
const size = (ad: object) => Math.abs(JSON.stringify(ad).length - 120_000 / 50);
const items = ads.toSorted((one, other) => size(one) - size(other)).slice(0, 50);
const answer = Buffer.from(JSON.stringify({ items, cursor: null, hasMore: false }));

const server = createServer((incoming, outgoing) => {
  incoming.resume().on('end', () => {
    outgoing.writeHead(200, {
      'content-type': 'application/json',
      'content-length': answer.length,
      'x-service-credits-charged': '1',
      'x-service-credits-remaining': '1000',
    });
    outgoing.end(answer);
  });
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.send?.({ port, source, ads: items.length, bytes: answer.length } satisfies PageOfAds);
});
