import { expect } from 'vitest';
import { everyFact, somePage } from '../present/sample-ads.ts';
import { everyTool } from '../support/every-tool.ts';
import { bytes, creditStatus, json } from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';

const test = upstreamTest({ config: { cacheSeconds: 0 } });

/** JSON has no bound for a number; where JavaScript reads one, it is infinite. */
const inJson = (value: unknown, huge: string) =>
  JSON.stringify(value, (_, part) => (typeof part === 'number' ? '<huge>' : part)).replaceAll('"<huge>"', huge);

const collection = { id: 'c', name: 'Saved', adCount: 1, pageCount: 1 };
const whole = {
  ...somePage,
  ...everyFact,
  ...creditStatus(),
  userId: 'u',
  authenticated: true,
  added: true,
  collection,
  more: { deep: [1, 'kept', 2] },
};
const lists = { ...whole, totalHits: 7, cursor: null, hasMore: false };

/** Infinite numbers anywhere in it; null is what JSON would make of them. */
function wrongNumbers(value: unknown, path = ''): string[] {
  if (typeof value === 'number') return Number.isFinite(value) ? [] : [path];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => wrongNumbers(inner, `${path}.${name}`));
}

const calls = everyTool.flatMap(({ tool, args }) =>
  /^(?:search|get_ad|get_page|list_collection_items)/.test(tool)
    ? ['brief', 'full'].map((detail) => ({ tool, args: { ...args, detail } }))
    : [{ tool, args: { ...args } }],
);

test.for(calls)(
  '$tool with $args leaves out numbers that are too large to be read',
  async ({ tool, args }, { upstream, server }) => {
    for (const huge of ['1e309', '-1e309']) {
      const items = [tool === 'list_collections' ? collection : whole];
      upstream.does(bytes(inJson(/^(?:search|list)/.test(tool) ? { ...lists, items } : whole, huge)));
      const { isError, text, raw } = await server.call(tool, args);
      expect(isError).toBe(false);
      expect(text).not.toMatch(/Infinity|NaN|null/);
      expect(wrongNumbers(raw)).toEqual([]);
    }
  },
);

test('a difference that is too large is left out too', async ({ upstream, server }) => {
  const usageLimit = { isLimitReached: false, limitType: 'none', hourlyCredits: -1.7e308, hourlyLimit: 1.7e308 };
  upstream.does(json(creditStatus(usageLimit)));
  const { text, raw } = await server.call('get_credits');
  expect(text).not.toContain('Infinity');
  expect(wrongNumbers(raw)).toEqual([]);
});

test('an error holds no such numbers either', async ({ upstream, server }) => {
  const error = { code: 'limit', message: 'Enough.', requestId: 'req-e', details: { limit: 1, left: [2] } };
  upstream.does((_, response) => response.writeHead(429).end(inJson({ error }, '1e309')));
  upstream.credits = bytes(inJson(creditStatus(), '1e309'));
  const { text, raw } = await server.call('search_ads');
  expect(raw._meta?.['ad-library/error']).toMatchObject({ kind: 'usage_limit', usageLimit: { limitType: 'none' } });
  expect(text).not.toMatch(/Infinity|NaN/);
  expect(wrongNumbers(raw)).toEqual([]);
});
