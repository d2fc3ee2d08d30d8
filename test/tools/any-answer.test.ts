import fc from 'fast-check';
import { expect } from 'vitest';
import { estimateTokens } from '../../src/views/tokens.ts';
import { deriveUuid } from '../support/derive-uuid.ts';
import { singleCallTools } from '../support/every-tool.ts';
import {
  ad,
  createCreditStatus,
  createUsageLimit,
  page,
  respondWithBytes,
  respondWithError,
  respondWithJson,
} from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';
import type { Result, TestServer } from '../support/server.ts';
import { everyFact, somePage } from '../views/sample-ads.ts';

const test = upstreamTest({ config: { cacheSeconds: 0 } });

const detailArguments = fc.constantFrom(undefined, 'brief', 'full');
const tools = fc.constantFrom(...singleCallTools);

/** Calls a tool with its example arguments, and with `detail` if the tool accepts it. */
const callWithDetail = (
  { call }: TestServer,
  detail: string | undefined,
  { tool, args }: (typeof singleCallTools)[number],
) => call(tool, { ...args, ...(/^(search|get_ad|get_page|list_collection_items)/.test(tool) && { detail }) });

function expectSound(server: TestServer, { isError, raw, text, error }: Result): void {
  expect(text).not.toBe('');
  expect(estimateTokens(text)).toBeLessThan(8000);
  if (isError) {
    expect(error?.kind).toBe('unexpected_response');
    expect(raw.structuredContent).toBeUndefined();
  } else expect(raw.structuredContent).toHaveProperty('receipt');
  expectFinite({ text, raw });
  expect(server.logLines.splice(0).join('')).not.toContain('a tool failed');
}

function expectFinite({ text, raw }: Pick<Result, 'text' | 'raw'>): void {
  expect(text).not.toMatch(/Infinity|NaN/);
  expect(findInfiniteNumbers(raw)).toEqual([]);
}

/** Returns the paths of infinite numbers in a value, which JSON would turn into null. */
function findInfiniteNumbers(value: unknown, path = ''): string[] {
  if (typeof value === 'number') return Number.isFinite(value) ? [] : [path];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => findInfiniteNumbers(inner, `${path}.${name}`));
}

test('a response of random bytes from the API leads to a valid result or a clear error', async ({
  upstream,
  server,
}) => {
  const anyBytes = fc.oneof(
    fc.uint8Array({ maxLength: 500 }),
    fc.string({ unit: 'binary' }),
    fc.json({ maxDepth: 5 }),
    fc.jsonValue().map((items) => JSON.stringify({ items, cursor: items, hasMore: items, id: items, pageId: items })),
  );
  await fc.assert(
    fc.asyncProperty(tools, detailArguments, anyBytes, async (tool, detail, body) => {
      upstream.respondWith(respondWithBytes(body));
      expectSound(server, await callWithDetail(server, detail, tool));
    }),
    { numRuns: 150 },
  );
});

/** Field names from the API document, and fields that an API may add. */
const fieldNames = `
  headline body startedAt duplicates countries publisherPlatform media cards changes page website
  appUrl displayFormat ctaType endDate adSpendMin thumbnails pageLikes languages name adCount isOwner
  usageLimit credits user apiKey receipt notice itemType items … creative daysRunning stillRunning
  landingDomain daysSinceSeen pageName firstCard id periodEndsOn hourlyLeft dailyLeft thisServer
  seenIn warning shown cursor collection __proto__ constructor toString
`.match(/\S+/g) as string[];
const oddNames = [...fieldNames, 'nieuw veld', 'x\u202ey', ''];
const anything = fc.oneof(
  fc.jsonValue(),
  fc.string({ unit: 'binary', maxLength: 3000 }),
  fc.array(
    fc.oneof(
      fc.jsonValue(),
      fc.dictionary(fc.constantFrom('type', 'url', 'nr', 'urls', 'title', 'pageName', 'isVideo'), fc.jsonValue()),
    ),
    { maxLength: 30 },
  ),
);
const extraFields = fc.dictionary(fc.constantFrom(...oddNames), anything, { maxKeys: 12 });

test('an API response that has the required fields is accepted, whatever its other fields contain', async ({
  upstream,
  server,
}) => {
  await fc.assert(
    fc.asyncProperty(
      tools,
      detailArguments,
      fc.array(extraFields, { minLength: 1, maxLength: 5 }),
      async (tool, detail, more) => {
        const [first = {}] = more;
        const isPages = tool.tool === 'search_pages';
        const items = more.map((fields) => ({ ...fields, ...ad, ...(isPages && page) }));
        const requiredFields = { ...ad, ...page, userId: 'u', billingUserId: 'b', authenticated: true, added: true };
        const list = { ...(/^(search|list)/.test(tool.tool) && { items }), cursor: null, hasMore: false };
        upstream.respondWith(respondWithJson({ ...first, ...requiredFields, ...list }));
        const result = await callWithDetail(server, detail, tool);
        expect(result.text).not.toContain('does not match its API document');
        expect(result.isError).toBe(false);
        expectSound(server, result);
      },
    ),
    { numRuns: 100 },
  );
});

test('results and errors leave out numbers that are too large for JSON', async ({ upstream, server }) => {
  const collection = { id: 'c', name: 'Saved', adCount: 1, pageCount: 1 };
  const account = { ...createCreditStatus(), userId: 'u', authenticated: true, added: true, collection };
  const item = { ...somePage, ...everyFact, ...account, more: { deep: [1, 'kept', 2] } };
  for (const huge of ['1e309', '-1e309']) {
    const markNumbers = (_: string, value: unknown) => (typeof value === 'number' ? '<huge>' : value);
    const respondWithHugeNumbers = (value: object) =>
      respondWithBytes(JSON.stringify(value, markNumbers).replaceAll('"<huge>"', huge));
    for (const toolCall of singleCallTools)
      for (const detail of ['brief', 'full']) {
        const items = [toolCall.tool === 'list_collections' ? collection : item];
        const isList = /^(?:search|list)/.test(toolCall.tool);
        upstream.respondWith(
          respondWithHugeNumbers(isList ? { ...item, items, totalHits: 7, cursor: null, hasMore: false } : item),
        );
        const result = await callWithDetail(server, detail, toolCall);
        expect(result.isError).toBe(false);
        expect(result.text).not.toContain('null');
        expectSound(server, result);
      }
    upstream.respondWith(respondWithError(429, { details: { limit: 1, left: [2] } }));
    upstream.credits = respondWithHugeNumbers(createCreditStatus());
    expectFinite(await server.call('search_ads'));
    upstream.credits = undefined;
  }
  upstream.respondWith(
    respondWithJson(createCreditStatus({ ...createUsageLimit(1), hourlyCredits: -1.7e308, hourlyLimit: 1.7e308 })),
  );
  expectSound(server, await server.call('get_credits'));
});

test('a result with a hundred ads stays within the token limit, although the ads have huge texts', async ({
  upstream,
  server,
  start,
}) => {
  const longText = 'All work and no play makes Jack a dull boy. '.repeat(60);
  const texts = 'headline body linkDescription productTitle offerLink displayUrl ctaType'.split(' ');
  const manyTexts = Array.from({ length: 100 }, () => longText.slice(0, 60));
  const hugeAd = {
    ...Object.fromEntries(texts.map((name) => [name, longText])),
    ...{ countries: manyTexts, publisherPlatform: manyTexts, page: { pageName: longText } },
    cards: Array.from({ length: 20 }, () => ({ title: longText.slice(0, 500), body: longText.slice(0, 500) })),
  };
  const items = manyTexts.map((_, index) => ({ ...hugeAd, id: `ad-${index}` }));
  upstream.respondWith(respondWithJson({ items, cursor: null, hasMore: false }));
  for (const detail of ['brief', 'full']) {
    const { text, data, isError } = await server.call('search_ads', { limit: 100, detail });
    expect(isError).toBe(false);
    expect(estimateTokens(text)).toBeLessThan(8000);
    expect(estimateTokens(JSON.stringify(data))).toBeLessThan(16_000);
    expect(data.cursor).toEqual(expect.any(String));
    if (detail === 'full') continue;
    expect(data.items.length).toBeGreaterThan(9);
    expect(data.items[0]?.countries).toHaveLength(13);
  }
  upstream.respondWith(respondWithJson({ ...hugeAd, id: 'ad' }));
  const serverWithSmallResults = await start({ resultTokens: 1000 });
  expect(estimateTokens((await serverWithSmallResults.call('get_ad', { adId: deriveUuid('ad') })).text)).toBeLessThan(
    1000,
  );
});

test('reading an API response with millions of invalid entries takes at most 20 times as long as parsing its JSON', async ({
  upstream,
  server,
}) => {
  const entries = `[${'1,'.repeat(1_500_000)}1]`;
  const ad = `{"id":"x","media":${entries},"countries":${entries}}`;
  const list = `{"items":[${entries.slice(1, -1)},${entries.slice(1)}}`;
  // Compare processor times, measured one after the other, because a busy machine slows both measurements.
  const parseTime = await measureProcessorTime(async () => void [JSON.parse(ad), JSON.parse(list)]);
  const readTime = await measureProcessorTime(async () => {
    upstream.respondWith(respondWithBytes(ad));
    expect((await server.call('get_ad', { adId: deriveUuid('x') })).isError).toBe(false);
    upstream.respondWith(respondWithBytes(list));
    expect((await server.call('search_ads')).error?.kind).toBe('unexpected_response');
  });
  expect(readTime).toBeLessThan(20 * parseTime);
});

async function measureProcessorTime(work: () => Promise<void>): Promise<number> {
  const start = process.cpuUsage();
  await work();
  return process.cpuUsage(start).user;
}
