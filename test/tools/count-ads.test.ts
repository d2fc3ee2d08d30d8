import { describe, expect } from 'vitest';
import { AdService } from '../support/ad-service.ts';
import { creditStatus, json, refusal, usage } from '../support/faulty-upstream.ts';
import { freshServiceTest, freshUpstreamTest } from '../support/fixtures.ts';

/** As a person describes the keys of a service. */
const searchFilters = {
  ads: [
    { key: 'displayFormat', type: 'strings', description: 'format', values: ['VIDEO', 'IMAGE'], single: true },
    { key: 'countries', type: 'strings', description: 'countries', values: ['DE', 'AT'] },
    { key: 'active', type: 'boolean', description: 'whether it runs' },
    { key: 'sort', type: 'string', description: 'many', values: Array.from({ length: 31 }, (_, index) => `s${index}`) },
  ],
  pages: [],
} as never;

describe('with the local library', () => {
  const test = freshServiceTest({ config: { searchFilters } });
  const german = { filters: { countries: ['DE'] } };

  test('counts the total first, then each part in the order asked, a credit each', async ({ server }) => {
    const split = [{ displayFormat: ['VIDEO'] }, { displayFormat: ['IMAGE'] }, { countries: ['AT'] }];
    const { data, text } = await server.call('count_ads', { ...german, split });
    expect(data).toMatchObject({ total: 267, receipt: { charged: 4, calls: 4, cached: false, remaining: 9996 } });
    expect(data.counts).toMatchObject([
      { filters: split[0], total: 59 },
      { filters: split[1], total: 109 },
      { filters: split[2] },
    ]);
    expect(data).not.toHaveProperty('rest');
    expect(text).toContain('267 ads in all.\n{"displayFormat":["VIDEO"]}: 59\n{"displayFormat":["IMAGE"]}: 109\n');
    expect((await server.call('count_ads', { ...german, split })).data.receipt).toMatchObject({ charged: 0, calls: 0 });
  });

  test('repeats what the service says about a number', async ({ server }) => {
    const split = [{ ctaType: ['BUY'] }, { not: { ctaType: ['SHOP_NOW'] } }];
    for (const round of ['asked', 'kept']) {
      const { data, text } = await server.call('count_ads', { ...german, split });
      expect(text, round).toMatch(
        /^\{"ctaType":\["BUY"\]\}: 0\n {2}The service notes: "No ad in this library has ctaType 'BUY'\. Values there are/m,
      );
      expect(text.split('Values there are')).toHaveLength(2);
      expect(data.counts, round).toMatchObject([{ total: 0, notes: [expect.stringContaining('BUY')] }, {}]);
    }
  });

  test('refuses a key that it cannot count by, before anything is sent', async ({ server, service }) => {
    const sent = service.requests.length;
    const refusalOf = async (args: object) => (await server.call('count_ads', { ...args })).text;
    expect(await refusalOf({ by: 'sort' })).toContain('by: takes one of displayFormat, countries, active');
    expect(await refusalOf({ ...german, by: 'countries' })).toContain('filters already holds countries');
    expect(await refusalOf({ by: 'active', split: [{}] })).toContain('split and by cannot be combined');
    expect(await refusalOf({ split: Array.from({ length: 31 }, () => ({})) })).toContain('split');
    expect(service.requests).toHaveLength(sent);
  });

  test('is answered by what was gathered completely, and says when', async ({ server }) => {
    await server.call('gather_ads', { ...german, split: [{}, { displayFormat: ['VIDEO'] }], maxCredits: 50 });
    const { data, text } = await server.call('count_ads', { ...german, split: [{ displayFormat: ['VIDEO'] }] });
    expect(data).toMatchObject({
      total: 267,
      gatheredAt: expect.any(String),
      receipt: { charged: 0, calls: 0, cached: true },
    });
    expect(data.counts).toMatchObject([{ total: 59, gatheredAt: expect.any(String) }]);
    expect(text).toMatch(/267 ads in all \(gathered \d{4}-/);
    expect((await server.call('count_ads', { ...german, fresh: true })).data).toMatchObject({
      total: 267,
      receipt: { charged: 1 },
    });
  });

  test('keeps within maxCredits, and says what was not counted', async ({ server }) => {
    const split = Array.from({ length: 8 }, (_, index) => ({ daysRunningFrom: index + 1 }));
    const { data, text } = await server.call('count_ads', { ...german, split, maxCredits: 4 });
    expect(data).toMatchObject({ total: 267, stopped: 'maxCredits', receipt: { charged: 4 } });
    expect((data.counts as { total: number | null }[]).filter(({ total }) => total !== null)).toHaveLength(3);
    expect(text).toContain('Stopped (maxCredits)');
    expect(text).toContain('To count the rest, call again with a larger maxCredits.');
    expect(data.next).toBe('To count the rest, call again with a larger maxCredits.');
    const none = await server.call('count_ads', { filters: { countries: ['FR'] }, maxCredits: 0 });
    expect(none.error).toMatchObject({ kind: 'credit_budget' });
    expect(none.text).toContain('maxCredits');
    expect(none.text).not.toContain('AD_LIBRARY_CREDIT_BUDGET');
  });
});

describe('with a service that', () => {
  const test = freshUpstreamTest();
  const split = [{ a: 1 }, { a: 2 }];

  test('tells no totals, asks once', async ({ upstream, server }) => {
    const service = new AdService(30);
    upstream.does(service.behaviour);
    service.change = ({ totalHits: _, ...answer }) => answer;
    const { data, text } = await server.call('count_ads', { split });
    expect(data).toMatchObject({ total: null, counts: [{ total: null }, { total: null }], receipt: { calls: 1 } });
    expect(service.searches).toHaveLength(1);
    expect(text).toContain('does not say how many');
    // Fewer than came with the answer is no total.
    service.change = (answer) => ({ ...answer, totalHits: 0 });
    expect((await server.call('count_ads', { fresh: true })).data.total).toBeNull();
  });

  test('tells no total of a part, says why it stopped', async ({ upstream, server }) => {
    const service = new AdService(30);
    upstream.does(service.behaviour);
    service.change = ({ totalHits, ...answer }, { number }) => (number === 1 ? { ...answer, totalHits } : answer);
    const { data, text } = await server.call('count_ads', { split });
    expect(data).toMatchObject({ total: 30, counts: [{ total: null }, { total: null }], stopped: 'error' });
    expect(text).toContain(
      'Stopped (error) before all parts were counted.\nThe service does not say how many ads match.',
    );
  });

  test('ignores a key, is suspected of it', async ({ upstream, server }) => {
    upstream.does(new AdService(30).behaviour);
    const { data, text } = await server.call('count_ads', { split });
    expect(data.counts).toMatchObject([{ total: 30, note: 'equal to the total; not verified' }, { total: 30 }]);
    expect(text).toContain('{"a":1}: 30 (equal to the total; not verified)');
  });

  test('fails in the middle, keeps what was counted', async ({ upstream, server }) => {
    const service = new AdService(30);
    upstream.does(service.behaviour);
    upstream.credits = json(creditStatus(usage(400)));
    service.instead = ({ number }) => (number > 1 ? refusal(429) : undefined);
    const { data, text } = await server.call('count_ads', {
      split: [...split, { a: 3 }, { a: 4 }, { a: 5 }, { a: 6 }],
    });
    expect(data).toMatchObject({ total: 30, stopped: 'usage_limit', error: 'usage_limit', receipt: { charged: 1 } });
    expect(text).toContain('Usage: hourly window 400 of 400');
    expect(service.searches.length).toBeLessThanOrEqual(5);
    upstream.credits = undefined;
  });

  test('is asked four parts at a time at most', async ({ upstream, server }) => {
    const service = new AdService(30);
    let underWay = 0;
    let max = 0;
    upstream.does((request, response, body) => {
      max = Math.max(max, ++underWay);
      setTimeout(() => {
        underWay--;
        service.behaviour(request, response, body);
      }, 20);
    });
    await server.call('count_ads', { split: Array.from({ length: 12 }, (_, a) => ({ a })) });
    expect(service.searches).toHaveLength(13);
    expect(max).toBe(4);
  });
});
