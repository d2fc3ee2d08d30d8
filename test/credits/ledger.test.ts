import { describe, expect } from 'vitest';
import { ad, creditStatus, documented, json, paid, type Upstream } from '../support/faulty-upstream.ts';
import { freshUpstreamTest, type Start } from '../support/fixtures.ts';
import { uuidOf } from '../support/uuid-of.ts';

const test = freshUpstreamTest();
test.beforeEach(({ upstream }) => {
  upstream.does(documented);
  upstream.credits = json(creditStatus());
});

const listing = (count: number, charged: number, hasMore = false) =>
  json(
    {
      items: Array.from({ length: count }, (_, index) => ({ ...ad, id: `ad-${index}` })),
      cursor: hasMore ? 'next' : null,
      hasMore,
    },
    { headers: paid(charged) },
  );

describe('what this server spent', () => {
  test('is shown by get_credits beside the figures of the service', async ({ upstream, server }) => {
    upstream.does(listing(10, 3));
    await server.call('search_ads', { limit: 10 });
    await server.call('search_ads', { limit: 10 });
    upstream.does(json(creditStatus()));
    const { data, text } = await server.call('get_credits');
    expect(data).toMatchObject({
      credits: 90,
      hourlyLeft: 399,
      periodEndsOn: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      thisServer: {
        charged: 3,
        paidCalls: 1,
        savedCalls: 1,
        savedCredits: 3,
        prices: { search_ads: [{ items: 10, charged: 3 }] },
      },
    });
    expect(text).toContain('hourly: 1 of 400 used, 399 left');
    expect(text).toContain('3 charged in 1 paid call; 1 answered without a new charge, 3 saved');
    expect(text).toContain('prices seen: search_ads 3 for 10 items');
  });

  test('is zero before the first paid call, and no price is known', async ({ upstream, server }) => {
    upstream.does(json(creditStatus()));
    const { data, text } = await server.call('get_credits');
    expect(data.thisServer).toEqual({
      charged: 0,
      paidCalls: 0,
      savedCalls: 0,
      savedCredits: 0,
      prices: {},
    });
    expect(text).toContain('prices are unknown until the first paid call');
  });

  test('includes what a call cost that the service charged and failed', async ({ upstream, server }) => {
    upstream.does(json({ items: 'none' }, { headers: paid(2) }));
    const { text } = await server.call('search_ads');
    expect(text).toContain('The service says it charged 2 credits for this call.');
    upstream.does(documented);
    expect((await server.call('get_credits')).data.thisServer).toMatchObject({ charged: 2 });
  });
});

describe('prices', () => {
  test('are listed by number of items', async ({ upstream, server }) => {
    for (const [limit, charged] of [
      [10, 1],
      [50, 5],
      [20, 2],
    ] as const) {
      upstream.does(listing(limit, charged));
      await server.call('search_ads', { limit });
    }
    upstream.does(json(creditStatus()));
    const { text } = await server.call('get_credits');
    expect(text).toContain('prices seen: search_ads 1 for 10 items, 2 for 20 items, 5 for 50 items');
  });

  type Seen = [limit: number | undefined, ReturnType<typeof listing>];
  const refusedAt = async (
    { upstream, start }: { upstream: Upstream; start: Start },
    creditBudget: number,
    asked: { limit?: number; cursor?: string },
    ...seen: Seen[]
  ) => {
    const own = await start({ creditBudget, cacheSeconds: 0 });
    for (const [seenLimit, answer] of seen) {
      upstream.does(answer);
      await own.call('search_ads', seenLimit === undefined ? {} : { limit: seenLimit });
    }
    upstream.does(listing(1, 0));
    const { text } = await own.call('search_ads', { filters: { other: 1 }, ...asked });
    return /expected to cost (\d+(?: or more)?)/.exec(text)?.[1];
  };

  test('of a larger page are known once two sizes show how they grow', async ({ upstream, start }) => {
    const perTen: Seen[] = [
      [10, listing(10, 1)],
      [20, listing(20, 2)],
    ];
    expect(await refusedAt({ upstream, start }, 12, { limit: 100 }, ...perTen)).toBe('10');
    expect(await refusedAt({ upstream, start }, 13, { limit: 100 }, ...perTen)).toBeUndefined();
  });

  test('of a larger page are not assumed to be higher after a single answer', async ({ upstream, start }) => {
    expect(await refusedAt({ upstream, start }, 10, { limit: 50 }, [1, listing(1, 5)])).toBeUndefined();
    expect(await refusedAt({ upstream, start }, 9, { limit: 50 }, [1, listing(1, 5)])).toBe('5 or more');
  });

  test('that are flat are known for every size between', async ({ upstream, start }) => {
    const flat: Seen[] = [
      [5, listing(5, 3)],
      [90, listing(90, 3)],
    ];
    expect(await refusedAt({ upstream, start }, 8, { limit: 40 }, ...flat)).toBe('3');
    expect(await refusedAt({ upstream, start }, 9, { limit: 40 }, ...flat)).toBeUndefined();
  });

  test('of a page that came back half empty are at least what it cost', async ({ upstream, start }) => {
    expect(await refusedAt({ upstream, start }, 1, { limit: 100 }, [100, listing(3, 1)])).toBe('1 or more');
    expect(await refusedAt({ upstream, start }, 2, { limit: 100 }, [100, listing(3, 1)])).toBeUndefined();
  });

  test('of an empty page count too', async ({ upstream, start }) => {
    expect(await refusedAt({ upstream, start }, 9, { limit: 20 }, [20, listing(0, 5)])).toBe('5 or more');
  });

  test('of a page without a limit follow the page size the service was seen to use', async ({ upstream, start }) => {
    expect(await refusedAt({ upstream, start }, 3, {}, [undefined, listing(20, 2, true)])).toBe('2');
    expect(await refusedAt({ upstream, start }, 4, {}, [undefined, listing(20, 2, true)])).toBeUndefined();
  });

  test('are the highest seen of a size, not the last', async ({ upstream, start }) => {
    expect(await refusedAt({ upstream, start }, 12, { limit: 10 }, [10, listing(10, 5)], [10, listing(10, 3)])).toBe(
      '5',
    );
  });

  test('of a page behind a cursor are assumed to be the largest seen', async ({ upstream, start }) => {
    const seen: Seen[] = [
      [undefined, listing(20, 2, true)],
      [100, listing(100, 10)],
    ];
    expect(await refusedAt({ upstream, start }, 13, {}, ...seen)).toBe('2');
    expect(await refusedAt({ upstream, start }, 13, { cursor: 'next' }, ...seen)).toBe('10');
  });
});
