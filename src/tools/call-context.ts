import type { Answers } from '../answers/answers.ts';
import { fingerprint, operations } from '../api/call.ts';
import { type Api, type ApiAnswer, type Caller, keyOf } from '../api/client.ts';
import type { Meter } from '../credits/meter.ts';
import { costOf } from '../credits/prices.ts';
import { AdRowReader } from '../dataset/ad-rows.ts';
import { totalOf } from '../dataset/gather.ts';
import { DatasetSqlEngine } from '../dataset/snapshot.ts';
import type { OpenPictures } from '../pictures/pictures.ts';
import type { OpenState } from '../state/open-state.ts';
import { cursorSigner } from './cursor.ts';
import { createViewMemo } from './pager.ts';
import type { CallerContext, CountedAds } from './tool.ts';

export interface CallContextOptions {
  apiOf(caller: Caller): Api;
  answers: Answers;
  meter: Meter;
  state: OpenState;
  pictures(): Promise<OpenPictures>;
  baseUrl: string | undefined;
  version: string;
  now: () => number;
  elapsed: () => number;
}

/** What tools call the API with, for all callers, until it is closed. */
export interface CallContexts {
  of(caller: Caller): CallerContext;
  close(): Promise<void>;
}

export function openCallContexts(options: CallContextOptions): CallContexts {
  const { apiOf, answers, meter, state, baseUrl, version } = options;
  const adRows = new AdRowReader();
  const sql = new DatasetSqlEngine(adRows);
  const viewMemo = createViewMemo();
  return {
    of(caller) {
      const { tenantId, apiKey, signal } = caller;
      // Not among the calls of the tool: it is free, whether the service says so or not.
      const whoami = () => apiOf({ tenantId, apiKey, signal }).whoami();
      return {
        api: apiOf(caller),
        dataset: async () => answers.dataset({ tenantId, apiKey: keyOf(caller, baseUrl) }, whoami),
        adRows,
        sql: () => sql.of(tenantId),
        version,
        exports: () => state.exports.of(tenantId),
        spending: () => meter.spending(tenantId),
        priceOf: async (list, items) => costOf(await meter.prices(tenantId), operations[list], items),
        keptTotal: (filters) => cachedTotal(filters, tenantId, options),
        isCached: async (call) => (await state.answers.get(tenantId, { fingerprint: fingerprint(call) })) !== undefined,
        allowance: (maxCredits) => meter.allowance(tenantId, maxCredits),
        takeTurn: (name) => state.turns.take(`${tenantId} ${name}`, signal),
        pictures: async () => (await options.pictures()).of(tenantId),
        viewMemo,
        cursors: { sign: cursorSigner(apiKey), ...state.cursorsOf(tenantId) },
      };
    },
    close: () => sql.close(),
  };
}

/** The newest total of a search that is cached, whatever the size of its page. */
async function cachedTotal(
  filters: object,
  tenantId: string,
  { meter, state, now, elapsed }: CallContextOptions,
): Promise<CountedAds | undefined> {
  const prices = await meter.prices(tenantId);
  // Those that were paid for; and one item, which is asked for where only the number is wanted.
  const limits = new Set([undefined, 1, ...(prices.get('searchAds')?.bySize.keys() ?? [])]);
  const names = [...limits].map((limit) => {
    const body = { ...filters, ...(limit !== undefined && { limit }) };
    return { fingerprint: fingerprint({ operation: operations.searchAds, path: {}, query: {}, body }) };
  });
  const cached = await Promise.all(names.map((name) => state.answers.get(tenantId, name)));
  const totals = cached.flatMap((one) => {
    const ads = one && totalOf(one.answer as ApiAnswer<'searchAds'>);
    return one && ads !== undefined ? { ads, at: now() - (elapsed() - one.at), order: one.answer.order ?? 0 } : [];
  });
  return totals.sort((left, right) => right.order - left.order)[0];
}
