import { type Caller, createApi } from './api/client.ts';
import { AdLibraryError } from './api/errors.ts';
import type { Send } from './api/send.ts';
import { type Fetch, sendHttp } from './api/send-http.ts';
import { withCache } from './api/with-cache.ts';
import { withCoalescing } from './api/with-coalescing.ts';
import { withRetries } from './api/with-retries.ts';
import { withSeenAds } from './api/with-seen-ads.ts';
import type { Config } from './config/settings.ts';
import { type CreditLedgers, createCreditLedgers } from './credits/credit-ledger.ts';
import { spendingOf } from './credits/spending.ts';
import { withBalance } from './credits/with-balance.ts';
import { withBudget } from './credits/with-budget.ts';
import { withLedger } from './credits/with-ledger.ts';
import { withUsageWindows } from './credits/with-usage-windows.ts';
import { createCursorMemory } from './tools/cursor-memory.ts';
import { cursorSigner } from './tools/cursor-signature.ts';
import type { CallerContext } from './tools/tool-context.ts';
import { createViewMemo } from './tools/view-memo.ts';
import { version } from './version.ts';

/** What one caller has for the length of one tool call: the API, and what is remembered of earlier calls. */
export type Calls = (caller: Caller) => CallerContext;

/** The service behind the API's `fetch`: the real one, or the local library with demo data inside this process. */
export interface Upstream {
  fetch: Fetch;
  baseUrl: string | undefined;
}

interface CallsOptions {
  config: Config;
  upstream: Upstream;
  now: () => number;
  random: () => number;
}

export function openCalls(options: CallsOptions): Calls {
  const books = createCreditLedgers();
  const apiOf = createApi(sendChain(options, books));
  const viewMemo = createViewMemo();
  const cursorMemory = createCursorMemory();
  return (caller) => ({
    api: apiOf(caller),
    spending: () => spendingOf(books(caller.tenantId), options.config.creditBudget),
    viewMemo,
    cursors: { sign: cursorSigner(caller.apiKey), ...cursorMemory.of(caller.tenantId) },
  });
}

/** Everything between a tool and the network, the outermost last. */
function sendChain({ config, upstream, now, random }: CallsOptions, books: CreditLedgers): Send {
  const { fetch, baseUrl } = upstream;
  const { creditBudget: budget } = config;
  const ttl = config.cacheSeconds * 1000;
  const wire = baseUrl === undefined ? unsent : sendHttp(fetch, { baseUrl, userAgent: `ad-library-mcp/${version}` });
  const retried = withRetries(wire, { random });
  const booked = withLedger(retried, books);
  const budgeted = withBudget(booked, { books, budget });
  const windowed = withUsageWindows(budgeted, { books, now });
  const merged = withCoalescing(windowed);
  const cached = withCache(merged, { ttl, now });
  const remembered = withSeenAds(cached, { ttl, now });
  return withBalance(remembered, { books, budget });
}

/** Without an address of the service nothing can be sent. */
const unsent: Send = async () => {
  throw new AdLibraryError({ kind: 'no_api_key', problem: 'Missing: AD_LIBRARY_BASE_URL.', sent: false });
};
