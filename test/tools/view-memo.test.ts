import { describe, expect } from 'vitest';
import { undiciFetch } from '../../src/api/http.ts';
import { openCalls } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { createLog } from '../../src/log/log.ts';
import { toolName } from '../../src/tools/catalog.ts';
import { writeCursor } from '../../src/tools/pager.ts';
import { searchAds } from '../../src/tools/search-ads.ts';
import type { ToolContext } from '../../src/tools/tool.ts';
import { test } from '../support/fixtures.ts';
import type { TestService } from '../support/service.ts';

/** What a tool is given in a call, with the real service behind it. */
async function openContext(service: TestService, cacheSeconds = 900): Promise<ToolContext> {
  const { baseUrl, apiKey } = service;
  const { callsOf } = await openCalls({
    config: { ...readConfig({}), cacheSeconds },
    upstream: { ...undiciFetch(), baseUrl },
    log: createLog('silent', () => {}),
    now: Date.now,
    elapsed: Date.now,
    random: () => 0,
  });
  const { signal } = new AbortController();
  const caller = callsOf({ apiKey, tenantId: 'tenant', signal });
  const time = { now: Date.now(), clock: Date.now, deadline: Infinity, signal, isDraining: () => false };
  const explain = () => ({ kind: 'internal', text: '' }) as const;
  return {
    ...caller,
    ...time,
    tenantId: 'tenant',
    adFilters: [],
    explain,
    resultTokens: 7840,
    toolName,
    isDemo: false,
    offers: () => true,
  };
}

const pageAfter = (limit: number, shown: number, context: ToolContext) =>
  writeCursor(
    { list: 'searchAds', searchParams: {}, position: { serviceCursor: undefined, limit, shown } },
    context.cursors,
  );

describe('pages of answers that are kept', () => {
  test('are rendered once for the same request', async ({ service }) => {
    const context = await openContext(service);
    const first = await searchAds.run({ limit: 20 }, context);
    expect(await searchAds.run({ limit: 20 }, context)).toBe(first);
    expect(await searchAds.run({ limit: 20, detail: 'full' }, context)).not.toBe(first);
    expect(await searchAds.run({ limit: 20, fresh: true }, context)).not.toBe(first);
  });

  test('are not kept without a cache', async ({ service }) => {
    const context = await openContext(service, 0);
    await searchAds.run({ limit: 5 }, context);
    expect(context.viewMemo.size).toBe(0);
  });

  test('are bounded for each answer, even for a caller who signs cursors for any position', async ({ service }) => {
    const context = await openContext(service);
    const limits = [96, 97, 98, 99, 100];
    let largest = 0;
    for (const limit of limits) {
      const { data, text } = await searchAds.run({ limit, detail: 'full' }, context);
      largest = Math.max(largest, JSON.stringify(data).length + text.length + 100, 3 * text.length + 100);
    }
    service.requests.length = 0;
    for (let shown = 0; shown < 20_000; shown += shown < 100 ? 3 : 1) {
      for (const limit of limits.slice(shown < 100 ? 0 : 4)) {
        await searchAds.run({ cursor: pageAfter(limit, shown, context), detail: 'full' }, context);
      }
    }
    expect(service.requests).toEqual([]);
    expect(context.viewMemo.size).toBeLessThan(4 * limits.length * largest);
  });
});
