import { randomUUID } from 'node:crypto';
import { AdLibraryError } from '../api/errors.ts';
import type { CreditStatusAnswer, UsageLimitAnswer } from '../api/response-schemas.ts';
import { type Call, gatedOnly, type Send } from '../api/send.ts';
import type { AskCredits } from './ask-credits.ts';
import type { CreditLedger } from './credit-ledger.ts';
import { quote } from './prices.ts';

/** How long a window counts as full before the service is asked again, in milliseconds. */
const askAgainAfter = 60_000;

/** The usage windows of a tenant, the credits left in them, and when the service was last asked. */
export interface FullWindow {
  usageLimit: UsageLimitAnswer;
  left: number;
  checkedAt: number;
  /** Tells one finding from another. */
  id: string;
}

/** The full windows of tenants. One that is forgotten costs a refused call. */
export interface FullWindows {
  get(tenantId: string): Promise<FullWindow | undefined>;
  set(tenantId: string, window: FullWindow | undefined): Promise<void>;
}

export interface UsageWindowsOptions {
  ledger: CreditLedger;
  windows: FullWindows;
  askCredits: AskCredits;
  /** A clock that only goes on. */
  now: () => number;
}

/**
 * Explains a 429 with the windows of `GET /v1/credits`, which is not gated, and a 402 with its balance. While a window
 * is known to have less left than a gated call costs, the call is refused without sending it. Any answer of `GET
 * /v1/credits` that shows room ends this; if it gives no answer when asked again, the call itself is sent.
 */
export function withUsageWindows(send: Send, { ledger, windows, askCredits, now }: UsageWindowsOptions): Send {
  const requests = new Map<string, Promise<CreditStatusAnswer | undefined>>();

  const learn = (tenantId: string, usageLimit: UsageLimitAnswer | undefined, refused = false) => {
    const isFull = usageLimit !== undefined && (usageLimit.isLimitReached || refused);
    return windows.set(
      tenantId,
      isFull ? { usageLimit, left: roomIn(usageLimit), checkedAt: now(), id: randomUUID() } : undefined,
    );
  };

  const status: Send = async (call) => {
    const answer = await send(call);
    await learn(call.tenantId, (answer.value as CreditStatusAnswer).usageLimit);
    return answer;
  };

  /** The balance and the windows; concurrent callers share one request. Undefined if there is no answer. */
  const askOnce = (call: Call): Promise<CreditStatusAnswer | undefined> => {
    const { tenantId } = call;
    const request = requests.get(tenantId) ?? askCredits(send, call).finally(() => requests.delete(tenantId));
    requests.set(tenantId, request);
    return request;
  };

  /** Whether a window has less left than the call is expected to cost. A call of unknown price fits if anything is. */
  const isTooFull = async (window: FullWindow, call: Call): Promise<boolean> => {
    const { prices } = await ledger.estimate(call.tenantId);
    const { price, atLeast } = quote(prices, call);
    return window.left <= 0 || (price ?? atLeast) > window.left;
  };

  const ask: Send = async (call) => {
    const { tenantId } = call;
    let window = await windows.get(tenantId);
    if (window && (await isTooFull(window, call))) {
      if (now() - window.checkedAt < askAgainAfter) throw limitReached(window.usageLimit);
      // Recorded first, so that concurrent calls ask once.
      await windows.set(tenantId, { ...window, checkedAt: now() });
      await learn(tenantId, (await askOnce(call))?.usageLimit);
      window = await windows.get(tenantId);
      if (window && (await isTooFull(window, call))) throw limitReached(window.usageLimit);
    }
    try {
      return await send(call);
    } catch (error) {
      throw await explained(error, call, window);
    }
  };

  async function explained(error: unknown, call: Call, before: FullWindow | undefined): Promise<unknown> {
    const failure = error instanceof AdLibraryError ? error.failure : undefined;
    if (failure?.kind !== 'usage_limit' && failure?.kind !== 'payment_required') return error;
    // Another call may have found out in the meantime.
    const found = await windows.get(call.tenantId);
    if (failure.kind === 'usage_limit' && found && found.id !== before?.id) {
      return new AdLibraryError({ ...failure, usageLimit: found.usageLimit }, { cause: error });
    }
    const status = await askOnce(call);
    if (failure.kind === 'payment_required') {
      return new AdLibraryError({ ...failure, creditsLeft: status?.credits ?? undefined }, { cause: error });
    }
    await learn(call.tenantId, status?.usageLimit, true);
    return new AdLibraryError({ ...failure, usageLimit: status?.usageLimit }, { cause: error });
  }

  const gated = gatedOnly(send, ask);
  return (call) => (call.operation.name === 'getCredits' ? status(call) : gated(call));
}

/** Credits left in the tighter of the two windows. */
function roomIn({ isLimitReached, hourlyCredits, hourlyLimit, dailyCredits, dailyLimit }: UsageLimitAnswer): number {
  if (isLimitReached) return 0;
  const left = (used: number | undefined, max: number | undefined) => (max ?? Infinity) - (used ?? 0);
  return Math.max(0, Math.min(left(hourlyCredits, hourlyLimit), left(dailyCredits, dailyLimit)));
}

const limitReached = (usageLimit: UsageLimitAnswer) =>
  new AdLibraryError({ kind: 'usage_limit', status: 429, usageLimit, sent: false });
