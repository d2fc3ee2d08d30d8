import { readdirSync, readFileSync, statSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test as plainTest } from 'vitest';
import type { Ad } from '../../src/api/schemas.ts';
import { openDemoLibrary } from '../../src/library/demo/demo.ts';
import { advertisers, makeMarket, seededRandom } from '../../src/library/demo/market.ts';
import { decodeWebp } from '../../src/raster/codecs.ts';
import { libraryTest as test } from './support/fixtures.ts';
import { startOfTests, uuid } from './support/served-library.ts';

const folder = new URL('../../src/library/demo/pictures/', import.meta.url);
const files = new Map(readdirSync(folder).map((file) => [readFileSync(new URL(file, folder), 'base64'), file]));

let demo: Awaited<ReturnType<typeof openDemoLibrary>>;
const ads: Ad[] = [...makeMarket(seededRandom(1), startOfTests)].flatMap((page) => page.ads);

beforeAll(async () => {
  demo = await openDemoLibrary({ now: () => startOfTests });
});
afterAll(() => demo.library.close());

/** The bytes that the library serves, and the file they are. */
async function shown(address: string | null | undefined) {
  const path = `${address}`.replace('{media_url}', 'https://library.example/media');
  const response = await demo.library.fetch(new Request(path));
  expect([path, response.status, response.headers.get('content-type')]).toEqual([path, 200, 'image/webp']);
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { bytes, file: files.get(Buffer.from(bytes).toString('base64')) ?? 'no file' };
}

/** As the head of the file says, or its pixels, which takes longer. */
async function sizeOf(bytes: Uint8Array, decoded: boolean) {
  const head = Buffer.from(bytes);
  const { width, height } = decoded
    ? await decodeWebp(bytes)
    : { width: head.readUInt16LE(26), height: head.readUInt16LE(28) };
  return `${width} x ${height}`;
}

const main = (ad: Ad) => shown(`{media_url}/ads/${ad.id}/0.webp`);
const brandOf = (ad: Ad) => `${ad.displayUrl?.replace('.example', '')}`;

describe('the demo', () => {
  plainTest('has a picture of the recorded size at every address of an ad', { timeout: 60_000 }, async () => {
    const sizes = new Map<string, string>();
    for (const ad of ads) {
      for (const { url, width, height } of ad.media ?? []) {
        const { file, bytes } = await shown(url);
        expect(file.startsWith(`${brandOf(ad)}-`)).toBe(true);
        if (!sizes.has(file)) sizes.set(file, await sizeOf(bytes, sizes.size < 40));
        expect([file, `${width} x ${height}`]).toEqual([file, sizes.get(file)]);
      }
      for (const card of ad.cards ?? []) await shown(String(card.image_url));
    }
    expect(sizes.size).toBeGreaterThan(0.95 * files.size);
  });

  plainTest('has the pictures of its advertisers, and no others', () => {
    const needed = advertisers.flatMap(({ domain, products }) => {
      const brand = domain.replace('.example', '');
      const creatives = products.flatMap((_, at) =>
        ['offer', 'meet', 'tall'].map((kind) => `${brand}-${at + 1}-${kind}`),
      );
      return [...creatives, `${brand}-logo`].map((name) => `${name}.webp`);
    });
    expect([...files.values()].sort()).toEqual(needed.sort());
  });

  plainTest('shows each ad’s own product', async () => {
    for (const ad of ads) {
      const advertiser = advertisers.find(({ domain }) => domain === ad.displayUrl);
      const nr = advertiser?.products.findIndex(({ name }) => name.slice(1) === ad.productTitle?.slice(1)) ?? -1;
      expect((await main(ad)).file).toMatch(new RegExp(`^${brandOf(ad)}-${nr + 1}-`));
    }
  });

  plainTest('shows a sticker where the copy has a discount, and only there, and a video as a tall still', async () => {
    const kinds = new Set<string>();
    for (const ad of ads.filter(({ displayFormat }) => displayFormat === 'IMAGE' || displayFormat === 'VIDEO')) {
      const { file } = await main(ad);
      const kind = file.replace(/^.*-(\w+)\.webp$/, '$1');
      const points = advertisers.find(({ domain }) => domain === ad.displayUrl)?.points ?? [];
      const copy = points.reduce((text, point) => text.replaceAll(point, ''), `${ad.headline} ${ad.body}`);
      if (ad.displayFormat === 'VIDEO') expect(kind).toBe('tall');
      else expect([copy, kind === 'offer']).toEqual([copy, copy.includes('%') || copy.includes('play free')]);
      kinds.add(`${ad.displayFormat} ${kind}`);
    }
    expect([...kinds].sort()).toEqual(['IMAGE meet', 'IMAGE offer', 'IMAGE tall', 'VIDEO tall']);
  });

  plainTest('keeps its pictures small', () => {
    const sizes = [...files.values()].map((file) => statSync(new URL(file, folder)).size);
    expect(Math.max(...sizes)).toBeLessThan(10_000);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(1_450_000);
  });
});

test('an ad that is none of the demo has no picture, whatever it contains, and neither has a card that is not there', async ({
  served,
}) => {
  const text = fc.oneof(
    fc.constantFrom('../../demo', 'mossgate.example', 'mossgate', '\u0000', 'a '.repeat(4000), null),
    fc.string({ unit: 'binary', maxLength: 60 }),
  );
  const loose = fc.oneof(text, fc.double(), fc.constant([]), fc.constant({ deep: true }));
  const ad = fc.record(
    {
      headline: text,
      body: text,
      productTitle: text,
      displayUrl: text,
      displayFormat: fc.constantFrom('VIDEO', 'IMAGE', 'CAROUSEL'),
      cards: fc.array(fc.record({ title: loose, body: loose }), { maxLength: 3 }),
    },
    { requiredKeys: [] },
  );
  let ads = 0;
  await fc.assert(
    fc.asyncProperty(
      ad,
      fc.constantFrom(
        '0.webp',
        '1.webp',
        '4.webp',
        '999.webp',
        '1000.webp',
        '-1.webp',
        '0x1.webp',
        '0.jpg',
        'logo.webp',
      ),
      async (fields, file) => {
        const id = uuid(100 + ads++);
        await served.load({ id, ...fields });
        const response = await fetch(`${served.base}/media/ads/${id}/${file}`);
        const isShown =
          fields.displayUrl === 'mossgate.example' &&
          /^\d\.webp$/.test(file) &&
          Number(file[0]) <= (fields.cards?.length ?? 0);
        expect(response.status).toBe(
          (fields.displayUrl === 'mossgate.example' && file === 'logo.webp') || isShown ? 200 : 404,
        );
        await response.arrayBuffer();
      },
    ),
    { numRuns: 60 },
  );
});
