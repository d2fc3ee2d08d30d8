import fc from 'fast-check';
import { expect } from 'vitest';
import { test } from '../support/fixtures.ts';
import { startServer } from '../support/server.ts';
import type { TestService } from '../support/service.ts';

const filters = { countries: ['FR'] };

/** What the service itself has, in its order. */
async function everyAd(service: TestService): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const answer = await fetch(`${service.baseUrl}/v1/ads/search`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...filters, limit: 100, ...(cursor !== null && { cursor }) }),
    });
    const page = (await answer.json()) as { items: { id: string }[]; cursor: string | null };
    ids.push(...page.items.map(({ id }) => id));
    cursor = page.cursor;
  } while (cursor !== null);
  return ids;
}

const walks = fc.record({
  limit: fc.option(fc.integer({ min: 1, max: 100 }), { nil: undefined }),
  resultTokens: fc.constantFrom(1000, 2500, 8000, 30_000),
  detail: fc.constantFrom('brief', 'full'),
  repeats: fc.boolean(),
});

test('cursors lead through a list once and each page is paid once, whatever the page size and the room', async ({
  service,
}) => {
  const every = await everyAd(service);
  expect(every.length).toBeGreaterThan(30);
  await fc.assert(
    fc.asyncProperty(walks, async ({ limit, resultTokens, detail, repeats }) => {
      const config = { baseUrl: service.baseUrl, apiKey: service.createKey({ credits: 10_000 }), resultTokens };
      const server = await startServer({ config });
      const seen: string[] = [];
      let charged = 0;
      let cursor: string | null | undefined;
      do {
        const again = cursor === undefined ? { filters, limit } : repeats ? { filters } : {};
        const page = (await server.call('search_ads', { ...again, detail, cursor })).data;
        seen.push(...page.items.map(({ id }) => id));
        charged += page.receipt.charged;
        expect(page.hasMore).toBe(page.cursor !== null);
        cursor = page.cursor;
      } while (cursor !== null);
      await server.close();
      expect(seen).toEqual(every);
      expect(charged).toBe(priceOf(every.length, limit ?? 50));
    }),
    { numRuns: 12 },
  );
});

/** Of the whole list in pages of a size: one credit for each ten items begun. */
function priceOf(items: number, size: number): number {
  let price = 0;
  for (let left = items; left > 0; left -= size) price += Math.ceil(Math.min(size, left) / 10);
  return price;
}
