import { describe, expect } from 'vitest';
import { serveAds } from '../support/ad-service.ts';
import { createCreditStatus, createUsageLimit, respondWithError, respondWithJson } from '../support/faulty-upstream.ts';
import { freshServiceTest, freshUpstreamTest } from '../support/fixtures.ts';

/** Search filters described by the user, for an API that does not describe them itself. */
const searchFilters = {
  ads: [
    { key: 'displayFormat', type: 'strings', description: 'format', values: ['VIDEO', 'IMAGE'], single: true },
    { key: 'countries', type: 'strings', description: 'countries', values: ['DE', 'AT'] },
    { key: 'active', type: 'boolean', description: 'whether it runs' },
    { key: 'sort', type: 'string', description: 'many', values: Array.from({ length: 41 }, (_, index) => `s${index}`) },
  ],
  pages: [],
} as never;

describe('count_ads with the local library', () => {
  const test = freshServiceTest({ config: { searchFilters } });
  const german = { filters: { countries: ['DE'] } };

  test('count_ads sends no request if its arguments are contradictory or name a key by which it cannot count', async ({
    server,
    service,
  }) => {
    const requestCount = service.requests.length;
    for (const [args, problem] of [
      [{ by: 'sort' }, 'by: takes one of displayFormat, countries, active'],
      [
        { ...german, by: 'countries' },
        'to count by countries, leave it out of filters, or list its values in split, one part for each.',
      ],
      [{ by: 'active', split: [{}] }, 'split and by cannot be combined'],
      [
        { ...german, split: [{ active: true }, { countries: ['AT'] }] },
        'Part 2 of split sets "countries", and filters sets "countries" to another value.',
      ],
      [{ ...german, split: [{ countries: ['AT'] }], maxCredits: 0 }, 'Part 1 of split sets "countries"'],
      [{ split: Array.from({ length: 31 }, () => ({})) }, 'split'],
    ] as const)
      expect((await server.call('count_ads', args)).text).toContain(problem);
    expect(service.requests).toHaveLength(requestCount);
  });

  test('count_ads stays within maxCredits and names the searches of its argument split that it did not count', async ({
    server,
  }) => {
    const split = Array.from({ length: 8 }, (_, index) => ({ daysRunningFrom: index + 1 }));
    const { data, text } = await server.call('count_ads', { ...german, split, maxCredits: 4 });
    expect(data).toMatchObject({ total: 267, stopped: 'maxCredits', receipt: { charged: 4 } });
    expect((data.counts as { total: number | null }[]).filter(({ total }) => total !== null)).toHaveLength(3);
    expect(text).toContain('Stopped (maxCredits)');
    const next = 'To count the rest, call again with a larger maxCredits.';
    expect([text, data.next]).toEqual([expect.stringContaining(next), next]);
    const estimateResult = await server.call('count_ads', { ...german, split, maxCredits: 0 });
    const estimate = { calls: 5, credits: 5, atLeast: 5, atMost: 5 };
    expect(estimateResult.data).toMatchObject({ total: null, estimate, stopped: 'estimate', receipt: { calls: 0 } });
    expect(estimateResult.text).toContain('Estimate: 5 searches of one ad each, 5 credits. Nothing was sent.');
    await server.call('count_ads', german);
    const knownEstimate = await server.call('count_ads', { ...german, maxCredits: 0 });
    expect(knownEstimate.data).toMatchObject({ estimate: { calls: 0, credits: 0 } });
    expect(knownEstimate.text).toContain('Estimate: free, because earlier answers are enough.');
  });
});

describe('count_ads with a faulty or restricted API', () => {
  const test = freshUpstreamTest();
  const split = [{ a: 1 }, { a: 2 }];

  test('the estimate of count_ads assumes no whole credit for a search if the API charges fractions of credits', async ({
    upstream,
    server,
  }) => {
    serveAds(upstream, 30, (limit) => limit / 10);
    await server.call('search_ads', { limit: 3 });
    const { data, text } = await server.call('count_ads', { filters: { q: 'shoe' }, split, maxCredits: 0 });
    expect(data.estimate).toEqual({ calls: 3, credits: null, atLeast: 0.3, atMost: 0.9 });
    expect(text).toContain('Estimate: 3 searches of one ad each, between 0.3 and 0.9 credits.');
    expect((await server.call('count_ads', { filters: { q: 'shoe' }, split })).data.receipt.charged).toBe(0.3);
  });

  test('count_ads with fresh sends only one search for parts with equal filters', async ({ upstream, server }) => {
    const service = serveAds(upstream, 30);
    await server.call('search_ads', { limit: 1 });
    const repeatedSplit = [...split, { a: 3 }, { a: 4 }, {}, { a: 1 }];
    const call = { split: repeatedSplit, fresh: true };
    const { data: estimateData } = await server.call('count_ads', { ...call, maxCredits: 0 });
    expect(estimateData.estimate).toMatchObject({ calls: 5, credits: 5 });
    service.searches.length = 0;
    const { data } = await server.call('count_ads', call);
    expect(service.searches).toHaveLength(5);
    expect(data.receipt.charged).toBe(5);
    expect(data.counts).toEqual(repeatedSplit.map((filters) => expect.objectContaining({ filters, total: 30 })));
  });

  test('count_ads by a filter key pays for no value if no ads match its filters', async ({ upstream, start }) => {
    const server = await start({ searchFilters });
    const service = serveAds(upstream, 5, () => 1);
    await server.call('search_ads', { limit: 1 });
    service.ads = [];
    const filters = { query: 'no such brand' };
    const readEstimate = async (args: object) =>
      (await server.call('count_ads', { filters, by: 'displayFormat', maxCredits: 0, ...args })).data;
    const unknownTotal = { calls: 3, credits: 3, atLeast: 3, atMost: 3 };
    expect(await readEstimate({})).toMatchObject({ estimate: unknownTotal, receipt: { calls: 0 } });
    for (const by of ['displayFormat', 'countries'])
      expect((await server.call('count_ads', { filters, by })).data).toMatchObject({ total: 0, counts: [] });
    expect(service.searches).toHaveLength(2);
    expect(await readEstimate({})).toMatchObject({ estimate: { calls: 0, credits: 0 }, receipt: { calls: 0 } });
    expect((await readEstimate({ fresh: true })).estimate).toEqual(unknownTotal);
    expect((await readEstimate({ by: 'active' })).estimate).toMatchObject({ calls: 2, credits: 2 });
  });

  test('count_ads pays for no part of split if no ads match its filters', async ({ upstream, start }) => {
    const server = await start({ searchFilters });
    const service = serveAds(upstream, 0, () => 1);
    const call = {
      filters: { query: 'no such brand' },
      split: [{ displayFormat: ['VIDEO'] }, { countries: ['DE'] }, {}],
    };
    const { data, text } = await server.call('count_ads', call);
    expect(data).toMatchObject({ total: 0, counts: call.split.map((filters) => ({ filters, total: 0 })) });
    expect(text).toContain('{"displayFormat":["VIDEO"]}: 0');
    const { data: estimateData } = await server.call('count_ads', { ...call, maxCredits: 0 });
    expect(estimateData).toMatchObject({ estimate: { calls: 0, credits: 0 } });
    expect(service.searches).toHaveLength(1);
    // Without `active`, or without a key that the service does not describe, a service may leave out ads.
    for (const split of [[{ active: false }], [{ status: 'ended' }]])
      await server.call('count_ads', { filters: call.filters, split });
    expect(service.searches).toHaveLength(3);
  });

  test('the estimate of count_ads includes no searches for parts if the service is known to report no totals', async ({
    upstream,
    start,
  }) => {
    const server = await start({ searchFilters });
    const service = serveAds(upstream, 5, () => 1);
    service.modifyResponse = ({ totalHits: _, ...responseBody }) => responseBody;
    const filters = { query: 'acme' };
    for (const args of [{ by: 'displayFormat' }, { by: 'active' }, { split }]) {
      await server.call('count_ads', { filters, ...args });
      const { data } = await server.call('count_ads', { filters, ...args, maxCredits: 0 });
      expect(data).toMatchObject({ estimate: { calls: 0, credits: 0 }, receipt: { calls: 0 } });
      const { data: countData } = await server.call('count_ads', { filters, ...args });
      expect(countData).toMatchObject({ total: null, receipt: { calls: 0 } });
    }
    expect(service.searches).toHaveLength(1);
  });

  test('count_ads counts the parts although no ads match its filters, if a part can find other ads than the total', async ({
    upstream,
    start,
  }) => {
    const status = { key: 'status', type: 'string', values: ['running', 'ended'], default: 'running' };
    const server = await start({
      searchFilters: { ads: [status, { key: 'active', type: 'boolean' }], pages: [] } as never,
    });
    const service = serveAds(upstream, 25);
    service.selectAds = ({ status, active }) => (status === 'ended' || active === false ? service.ads : []);
    const filters = { query: 'acme' };
    const bySplit = await server.call('count_ads', { filters, split: [{ status: 'running' }, { status: 'ended' }] });
    expect(bySplit.data).toMatchObject({ total: 0, counts: [{ total: 0 }, { total: 25 }] });
    const byState = await server.call('count_ads', { filters, by: 'active' });
    expect(byState.data).toMatchObject({ total: 0, counts: [{ total: 0 }, { total: 25 }, { value: 'unknown' }] });
  });

  test('count_ads stops after one request if the API does not report totals', async ({ upstream, server }) => {
    const service = serveAds(upstream, 30);
    service.modifyResponse = ({ totalHits: _, ...answer }) => answer;
    const { data, text } = await server.call('count_ads', { split });
    expect(data).toMatchObject({ total: null, counts: [{ total: null }, { total: null }], receipt: { calls: 1 } });
    expect(service.searches).toHaveLength(1);
    expect(text).toContain('does not say how many');
    // A total below the number of returned ads is ignored.
    service.modifyResponse = (answer) => ({ ...answer, totalHits: 0 });
    expect((await server.call('count_ads', { fresh: true })).data.total).toBeNull();
  });

  test('count_ads shows a note from the API only once, although several of its searches return the note', async ({
    upstream,
    server,
  }) => {
    const service = serveAds(upstream, 30);
    service.modifyResponse = (answer, { sequenceNumber }) => ({
      ...answer,
      notes: ['of all', ...(sequenceNumber > 1 ? ['No "BUY"'] : [])],
    });
    for (const round of ['asked', 'kept']) {
      const { data, text } = await server.call('count_ads', { split: [{ ctaType: ['BUY'] }] });
      expect(text, round).toMatch(/^The service notes: "of all"\n.*: 30.*\n {2}The service notes: "No 'BUY'"$/m);
      expect(text.split('of all')).toHaveLength(2);
      expect(data.counts, round).toMatchObject([{ total: 30, notes: ['of all', 'No "BUY"'] }]);
    }
  });

  test('count_ads explains why it stopped if the API reports no total for one of the searches', async ({
    upstream,
    server,
  }) => {
    const service = serveAds(upstream, 30);
    service.modifyResponse = ({ totalHits, ...answer }, { sequenceNumber }) =>
      sequenceNumber === 1 ? { ...answer, totalHits } : answer;
    const { data, text } = await server.call('count_ads', { split });
    expect(data).toMatchObject({ total: 30, counts: [{ total: null }, { total: null }], stopped: 'error' });
    const why = 'Stopped (error) before all parts were counted.\nThe service does not say how many ads match.';
    expect(text).toContain(why);
  });

  test('if the API fails in the middle of a call, count_ads returns the counts that it already has', async ({
    upstream,
    server,
  }) => {
    const service = serveAds(upstream, 30);
    upstream.credits = respondWithJson(createCreditStatus(createUsageLimit(400)));
    service.overrideResponse = ({ sequenceNumber }) => (sequenceNumber > 1 ? respondWithError(429) : undefined);
    const { data, text } = await server.call('count_ads', { split: Array.from({ length: 6 }, (_, a) => ({ a })) });
    expect(data).toMatchObject({ total: 30, stopped: 'usage_limit', error: 'usage_limit', receipt: { charged: 1 } });
    expect(text).toContain('Usage: hourly window 400 of 400');
    expect(service.searches.length).toBeLessThanOrEqual(5);
  });

  test('count_ads sends at most four requests to the API at the same time', async ({ upstream, server }) => {
    const service = serveAds(upstream, 30);
    let waiting: (() => void)[] = [];
    let maxConcurrent = 0;
    upstream.respondWith((request, response, body) => {
      waiting.push(() => service.respond(request, response, body));
      // Wait before responding, so that a wrong fifth request would also arrive.
      if (waiting.length >= 4 || service.searches.length === 0) setTimeout(answerAll, 20);
    });
    const answerAll = () => {
      maxConcurrent = Math.max(maxConcurrent, waiting.length);
      for (const answer of waiting) answer();
      waiting = [];
    };
    await server.call('count_ads', { split: Array.from({ length: 12 }, (_, a) => ({ a })) });
    expect([service.searches.length, maxConcurrent]).toEqual([13, 4]);
  });
});
