import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { selectVariantText } from '../../src/dataset/ad-rows.ts';
import { VariantIndex } from '../../src/dataset/variants.ts';
import { sanitize } from '../../src/views/safe-text.ts';
import { createAd, serveAds } from '../support/ad-service.ts';
import { respondAsDocumented } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const boots = 'Meet the boots that outlast every trail. Hand-made in small batches, shipped free within two days.';
const tents = 'A tent for two, light as a feather, put up in a minute, dry in any storm of any summer.';

function findVariants(copies: (string | null)[]) {
  const index = new VariantIndex();
  return copies.map((copy, position) => index.addAd(`${position}`, copy));
}

describe('Text variants of ads', () => {
  test('nearly identical ad texts count as one text variant', () => {
    const loud = `🔥 ${boots.toUpperCase()} 🔥`;
    for (const copy of [boots, loud, `${boots} Try them now.`, boots.replace('Hand-made in', 'Made in')])
      expect(findVariants([`${boots} 19.99`, `${copy} 24.50`]), copy).toEqual(['0', '0']);
    const french = 'Découvrez les bottes qui survivent à tous les sentiers, fabriquées à la main.';
    expect(findVariants([boots, tents, french, boots])).toEqual(['0', '1', '2', '0']);
    expect(findVariants(['무료배송', '무료배송', '送料無料'])).toEqual(['0', '0', '2']);
  });

  test.each([
    '特价',
    'OK',
    '🎉',
    '50 %',
    'Go!',
    '!!',
    '→',
    'é',
    'https://shop.example',
    `${'\u200b'.repeat(3000)}Sale`,
  ])('the short ad text "%s" counts as a text variant of its own', (text) =>
    expect(findVariants([text, tents, text, boots])).toEqual(['0', '1', '0', '3']),
  );

  test('short ad texts that differ only in letter case, punctuation or numbers count as one text variant', () => {
    expect(findVariants(['OK', 'ok!', '50 %', '20 %', '🎉', '🔥'])).toEqual(['0', '0', '2', '2', '4', '5']);
  });

  test('an ad text without visible characters has no text variant', () => {
    const blank = fc.constantFrom(' ', '\n', '\u200b', '\u00ad', '\u2060', '\ufe0f', '\u2800');
    const text = fc.array(fc.oneof({ weight: 3, arbitrary: blank }, fc.string({ unit: 'grapheme', maxLength: 1 })), {
      maxLength: 6,
    });
    fc.assert(
      fc.property(text, (parts) => {
        const adText = parts.join('');
        expect(findVariants([adText])[0] === null).toBe(sanitize(adText).trim() === '');
      }),
    );
  });

  test('the text variant of an ad is based on its headline and body, or on its carousel cards if both are missing', () => {
    const cards = [{ title: 'Red', body: 'boots' }];
    expect(selectVariantText({ headline: null, body: 'Walk', cards })).toBe('Walk');
    expect(selectVariantText({ headline: null, body: null, cards })).toBe('Red\nboots');
    expect(selectVariantText({ headline: '\u200b', body: null, cards })).toBe('Red\nboots');
  });

  test('grouping ads with similar texts takes linear time', () => {
    const vocabulary = Array.from({ length: 997 }, (_, index) => (index * 7919).toString(26));
    const copyOf = (index: number) =>
      Array.from({ length: 30 }, (_, place) => vocabulary[(index * (place + 3) * 31 + place * place) % 997]).join(' ');
    const timeOf = (count: number) => {
      const started = process.cpuUsage();
      findVariants(Array.from({ length: count }, (_, index) => copyOf(index)));
      // CPU time does not include the time of other processes.
      return process.cpuUsage(started).user;
    };
    timeOf(300);
    expect(timeOf(5000) / timeOf(500)).toBeLessThan(40);
  });
});

const serverTest = freshUpstreamTest();
const folder = createTemporaryFolder({ inMemory: true });
const copies = [boots, `${boots} Now.`, boots.replace('every', 'any'), tents, `${tents} 19.99`, `${boots} ${tents}`];
const step = fc.oneof(
  fc.record({ change: fc.nat(11), to: fc.constantFrom(...copies) }),
  fc.record({ gather: fc.subarray([...Array(12).keys()], { minLength: 1 }) }),
  fc.record({ search: fc.nat(3) }),
);

serverTest(
  'a process that loads stored ads groups them into the same text variants as a process that received every change',
  async ({ start, upstream }) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 8 }), async (steps) => {
        const files = mkdtempSync(join(folder, 'kept-'));
        let clock = Date.parse('2026-11-20T10:00:00Z');
        const options = { now: () => (clock += 10) };
        const server = await start({ files, cacheSeconds: 0 }, options);
        const service = serveAds(upstream, 0);
        service.interceptRequest = (path) => (path.endsWith('/whoami') ? respondAsDocumented : undefined);
        const all = copies.flatMap((body, at) =>
          [0, 1].map((page) => createAd(2 * at + page, { body, headline: null, pageId: `p${page}` })),
        );
        const gather = async (indexes: number[]) => {
          service.ads = indexes.flatMap((at) => all[at] ?? []);
          return (await server.call('gather_ads', { filters: { some: indexes }, maxCredits: 50, fresh: true })).data;
        };
        for (const one of steps) {
          if ('change' in one) Object.assign(all[one.change] ?? {}, { body: one.to });
          else if ('gather' in one) await gather(one.gather);
          else {
            service.ads = all.slice(3 * one.search, 3 * one.search + 3);
            await server.call('search_ads', { filters: { part: one.search }, fresh: true });
          }
        }
        const { gathering, summary } = await gather([0, 1, 2, 6, 7]);
        const gathered = `FROM ads JOIN gathered ON adId = id WHERE gatheringId = '${gathering}'`;
        const [[count] = []] = await server.queryRows(`SELECT count(DISTINCT variant) ${gathered}`);
        expect(summary).toContain(`Groups of near-identical copy: ${count};`);
        const groups = 'SELECT id, variant FROM ads ORDER BY id';
        const variantGroups = await server.queryRows(groups);
        await server.stopApp();
        const fresh = await start({ files }, options);
        expect(await fresh.queryRows(groups)).toEqual(variantGroups);
        await fresh.stopApp();
      }),
      { numRuns: 3, endOnFailure: true },
    );
  },
);

serverTest(
  'ads without a page id belong to the same variant only if they show the same page name',
  async ({ upstream, server }) => {
    const service = serveAds(upstream, 0);
    const advertisers = [
      { pageId: null, page: { pageName: 'Acme' } },
      { pageId: null, page: { pageName: 'Bolt' } },
      { pageId: null, page: { pageName: 'ACME' } },
      { pageId: 'p1', page: { pageName: 'Bolt' } },
    ];
    service.ads = advertisers.map((advertiser, index) =>
      createAd(index, { ...advertiser, headline: null, body: boots }),
    );
    await server.call('search_ads');
    const sql = 'SELECT lower(group_concat(pageName)) FROM ads GROUP BY variant ORDER BY 1';
    expect(await server.queryRows(sql)).toEqual([['acme,acme'], ['bolt,bolt']]);
  },
);
