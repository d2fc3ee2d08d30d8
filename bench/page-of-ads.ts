/** A simulated service that always returns the same page with 50 ads and about 120 KB. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readDemoSamples, readRealSamples } from './samples.ts';

/**
 * The message that this process sends when the service is ready: its port, a text that says where its ads come from,
 * the number of ads, and the size of the page in bytes.
 */
export interface PageOfAdsInfo {
  port: number;
  dataDescription: string;
  adCount: number;
  byteCount: number;
}

const { dataDescription, ads } = readRealSamples() ?? (await readDemoSamples(Date.now()));
/**
 * Returns the difference between the JSON size of an ad and 2.4 KB, the average size in a page with 50 ads and 120 KB.
 * The page contains the 50 sample ads with the smallest difference.
 */
const computeSizeDifference = (ad: object) => Math.abs(JSON.stringify(ad).length - 120_000 / 50);
const items = ads.toSorted((left, right) => computeSizeDifference(left) - computeSizeDifference(right)).slice(0, 50);
const responseBody = Buffer.from(JSON.stringify({ items, cursor: null, hasMore: false }));

const server = createServer((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': responseBody.length,
      'x-service-credits-charged': '1',
      'x-service-credits-remaining': '1000',
    });
    response.end(responseBody);
  });
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.send?.({
    port,
    dataDescription,
    adCount: items.length,
    byteCount: responseBody.length,
  } satisfies PageOfAdsInfo);
});
