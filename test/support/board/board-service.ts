import type { Config } from '../../../src/config/settings.ts';
import { Canvas } from '../../../src/drawing/canvas.ts';
import { encodeJpeg } from '../../../src/drawing/codecs.ts';
import { openLibrary } from '../../../src/library/open.ts';
import { listen } from '../../../src/transports/http/server.ts';
import { deriveUuid } from '../derive-uuid.ts';
import { startServer, type TestServer } from '../server.ts';

/** The current time in all board tests: 20 November 2026, 09:00 UTC. */
export const now = Date.UTC(2026, 10, 20, 9);

/** A running local library with pictures. */
export type BoardService = Awaited<ReturnType<typeof startBoardService>>;

/** Serves a local library over HTTP with these ads, and with pictures for them. */
export async function startBoardService(ads: (mediaUrl: string) => readonly object[]) {
  const library = await openLibrary({ database: ':memory:', now: () => now });
  const canvas = new Canvas(40, 40);
  canvas.data.fill(200);
  const jpeg = await encodeJpeg(canvas, 80);
  /** The paths of picture requests, and of all other requests. */
  const [pictureRequests, requests]: [string[], string[]] = [[], []];
  const listener = await listen(
    (request) => {
      const { pathname } = new URL(request.url);
      if (!pathname.startsWith('/pictures/')) {
        requests.push(`${request.method} ${pathname}`);
        return library.fetch(request);
      }
      pictureRequests.push(pathname);
      return new Response(jpeg, { headers: { 'content-type': 'image/jpeg' } });
    },
    { host: '127.0.0.1', port: 0 },
  );
  const baseUrl = listener.url;
  const importAds = async (newAds: readonly object[]): Promise<void> => {
    const lines = async function* () {
      for (const ad of newAds) yield `${JSON.stringify(ad)}\n`;
    };
    await library.import(lines());
  };
  await importAds(ads(`${baseUrl}/pictures`));
  const apiKey = library.keys.create({ credits: 10_000 }).key;
  const servers: TestServer[] = [];
  return {
    ...{ library, baseUrl, apiKey, pictures: pictureRequests, requests, add: importAds },
    start: async (config: Partial<Config> = {}) => {
      const server = await startServer({ config: { baseUrl, apiKey, ...config }, now: () => now });
      servers.push(server);
      return server;
    },
    close: async () => {
      for (const server of servers) await server.close();
      await listener.close(0);
      library.close();
    },
  };
}

/** Reads the page token from the HTML of the board. */
export const readPageToken = (page: string): string =>
  /<meta name="ad-library-page" content="([^"]+)"/.exec(page)?.[1] ?? '';

const advertisers = ['Quiet Heron Sleep', 'Stridemoor', 'Copperquill'];
const formats = ['IMAGE', 'VIDEO', 'CAROUSEL'];
const daysAgo = (days: number) => new Date(now - days * 86_400_000).toISOString();

/** Returns the id of the ad with this index. */
export const createAdId = (index: number): string => deriveUuid(`board ${index}`);

/**
 * Returns a function that creates ads of three advertisers in turn. Each ad is a day older than the one before, and
 * every third ad has three cards.
 */
export const createAds = (count: number) => (mediaUrl: string) =>
  Array.from({ length: count }, (_, index) => ({
    id: createAdId(index),
    // Give each ad its own advertiser page. Similar ads of the same page would share one card on the board.
    pageId: `page-${index}`,
    page: { pageName: advertisers[index % 3] },
    headline: `Offer ${index}`,
    body: `First line of offer ${index}.\nIts second line.`,
    offerLink: `https://shop.example/offer/${index}`,
    startedAt: daysAgo(index + 5),
    lastSeenAt: daysAgo(index % 2 === 0 ? 0 : 4),
    endDate: index % 2 === 0 ? null : daysAgo(4),
    displayFormat: formats[index % 3],
    ctaType: index % 4 === 0 ? 'LEARN_MORE' : 'SHOP_NOW',
    countries: index % 2 === 0 ? ['DE', 'AT'] : ['US'],
    publisherPlatform: ['FACEBOOK'],
    duplicates: index,
    media:
      index % 3 === 2
        ? [1, 2, 3].map((nr) => ({ type: 'CARD_THUMB', nr, url: `${mediaUrl}/${index}-${nr}.jpg` }))
        : [{ type: 'THUMB', nr: 0, url: `${mediaUrl}/${index}.jpg` }],
    ...(index % 3 === 2 && {
      cards: [1, 2, 3].map((card) => ({ title: `Card ${card} of ${index}`, body: `Card text ${card}` })),
    }),
  }));
