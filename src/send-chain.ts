import { type Caller, createApi } from './api/client.ts';
import { type InFlightCalls, trackInFlightCalls } from './api/in-flight-calls.ts';
import type { Call, Send } from './api/send.ts';
import { type Fetch, sendHttp } from './api/send-http.ts';
import { withCache, withKeeping } from './api/with-cache.ts';
import { withCoalescing } from './api/with-coalescing.ts';
import { withRefusedKeys } from './api/with-refused-keys.ts';
import { withRetries } from './api/with-retries.ts';
import { withRememberedAds, withSeenAds } from './api/with-seen-ads.ts';
import type { Config } from './config/settings.ts';
import { openAllowance, withAllowance } from './credits/allowance.ts';
import type { CreditLedger } from './credits/credit-ledger.ts';
import { quote } from './credits/prices.ts';
import { spendingOf } from './credits/spending.ts';
import { withBalance } from './credits/with-balance.ts';
import { withBudget } from './credits/with-budget.ts';
import { withUsageWindows } from './credits/with-usage-windows.ts';
import type { Log } from './log/log.ts';
import { memoryCreditLedger } from './state/memory-credit-ledger.ts';
import { type MemoryState, memoryState } from './state/memory-state.ts';
import { cursorSigner } from './tools/cursor.ts';
import type { CallerContext } from './tools/tool-context.ts';
import { createViewMemo } from './tools/view-memo.ts';
import { version } from './version.ts';

/** The API for all callers, until it is closed. */
export interface OpenCalls {
  callsOf: Calls;
  /** Waits up to `ms` for paid calls that were sent, and aborts the rest. */
  close(ms: number): Promise<void>;
}

/** What a caller has during one tool call: the API, and what is remembered of earlier calls. */
export type Calls = (caller: Caller) => CallerContext;

/** The service that answers: the real one, or the local library with demo data inside this process. */
export interface Upstream {
  fetch: Fetch;
  baseUrl: string | undefined;
}

interface CallsOptions {
  config: Config;
  upstream: Upstream;
  log: Log;
  now: () => number;
  random: () => number;
}

interface ChainOptions extends CallsOptions {
  state: MemoryState;
  inFlight: InFlightCalls;
}

export function openCalls(options: CallsOptions): OpenCalls {
  const { config } = options;
  const state = memoryState({ ttl: config.cacheSeconds * 1000, now: options.now });
  const inFlight = trackInFlightCalls({
    timeoutMs: config.timeoutMs,
    maxPerTenant: Math.max(256, 2 * config.callsPerKey),
    maxInAll: Math.max(1024, 2 * config.callsAtOnce),
    onLost: (call) => void logLost(options.log, state.ledger, call),
  });
  const apiOf = createApi(sendChain({ ...options, state, inFlight }), options.upstream.baseUrl);
  const viewMemo = createViewMemo();
  const callsOf: Calls = (caller) => ({
    api: apiOf(caller),
    spending: async () => spendingOf(await state.ledger.read(caller.tenantId), config.creditBudget),
    allowance: (maxCredits) => {
      const own = memoryCreditLedger({ now: options.now });
      const { tenantId } = caller;
      return openAllowance({ maxCredits, tenantId, own, ledger: state.ledger, budget: config.creditBudget });
    },
    viewMemo,
    cursors: { sign: cursorSigner(caller.apiKey), ...state.cursorsOf(caller.tenantId) },
  });
  return { callsOf, close: inFlight.close };
}

/** Everything between a tool and the network, the outermost last. */
function sendChain({ config, upstream, now, random, state, inFlight }: ChainOptions): Send {
  const { fetch, baseUrl } = upstream;
  const { ledger, answers, seen, windows } = state;
  const { creditBudget: budget } = config;
  // Without an address, calls are refused before they get here.
  const overHttp = sendHttp(fetch, { baseUrl: baseUrl ?? '', userAgent: `ad-library-mcp/${version}` });
  const retried = withRetries(overHttp, { random });
  const budgeted = withBudget(retried, { ledger, budget });
  const windowed = withUsageWindows(withAllowance(budgeted), { ledger, windows, now });
  const keepsAnswers = config.cacheSeconds > 0;
  const kept = keepsAnswers ? withKeeping(withRememberedAds(windowed, { seen, now }), { answers, now }) : windowed;
  const forgetful = withRefusedKeys(kept, state.forget);
  const coalesced = withCoalescing(forgetful, inFlight);
  const cached = keepsAnswers ? withSeenAds(withCache(coalesced, { answers, now }), { seen, now }) : coalesced;
  return withBalance(cached, { ledger, budget });
}

async function logLost(log: Log, ledger: CreditLedger, call: Call): Promise<void> {
  if (!call.operation.gated) return;
  const { prices } = await ledger.read(call.tenantId);
  const { price, atLeast } = quote(prices, call);
  const fields = { operation: call.operation.name, credits: price ?? `${atLeast} or more` };
  log.warn('a paid call was lost: the server closed before its answer arrived', fields);
}
