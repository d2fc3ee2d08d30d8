import { AdLibraryError } from '../../src/api/errors.ts';
import type { HttpRequest, HttpResponse } from '../../src/api/http.ts';

/** What calls cost at a service that a schedule makes up. */
export interface PriceRule {
  kind: 'flat' | 'byLimit' | 'byItems' | 'rising';
  /** Credits: of a call, of ten items begun, or of the first call. */
  credits: number;
  /** Ads that every search finds, or the most that one finds. */
  hits: number;
  varies: boolean;
  /** Whether answers say what was charged, and whether `GET /v1/credits` can be asked. */
  statesCharges: boolean;
  tellsBalance: boolean;
}

/** What becomes of one call. A fault may be charged all the same: `late` is charged when the next paid call comes in. */
export type Fate =
  | 'answer'
  | 'timeout'
  | 'late'
  | 'reset'
  | 'unsent'
  | 'http 502'
  | 'http 500'
  | 'http 503'
  | 'charged 503';

export interface Plan {
  fate: Fate;
  isCharged: boolean;
}

interface Request {
  operation: 'search' | 'ad' | 'credits';
  limit: number;
}

/** An answer and its charge. */
interface Charged {
  operation: Request['operation'];
  items: number;
  price: number;
}

/** Items of a page if the call asks for no number. */
export const defaultLimit = 20;

/** Asked in place of a network: a service that keeps its own books, and answers when its driver says so. */
export class CreditService {
  /** What was really charged, and the highest charge of one call. */
  charged = 0;
  maxCharged = 0;
  /** By how much calls whose charge nobody stated cost more than any that was stated. */
  unseenRise = 0;
  readonly #stated: Charged[] = [];
  paidInFlight = 0;
  maxPaidInFlight = 0;
  /** Calls in flight that turn out to cost nothing, which nobody knew. */
  freeInFlight = 0;
  /** The calls that have come in and wait for their answer. */
  readonly pending: (() => void)[] = [];
  /** Paid requests so far, repeated ones included. */
  requests = 0;
  #late = 0;
  readonly #rule: PriceRule;
  readonly #plans: Plan[];

  constructor(rule: PriceRule, plans: readonly Plan[]) {
    this.#rule = rule;
    this.#plans = [...plans];
  }

  /** What a call costs now, if it finds so many ads. */
  priceOf({ operation, limit }: Request, hits = this.#rule.hits): number {
    const { kind, credits } = this.#rule;
    if (kind === 'rising') return credits + this.requests;
    if (kind === 'flat' || operation === 'ad') return credits;
    return Math.ceil((kind === 'byLimit' ? limit : Math.min(limit, hits)) / 10) * credits;
  }

  /** The most that any price rule makes of the charges stated so far. */
  maxExpected({ operation, limit }: Request): number {
    const seen = this.#stated.filter((one) => one.operation === operation);
    return Math.max(0, ...seen.map((one) => one.price * Math.ceil(limit / Math.max(1, one.items))));
  }

  fetch = async (url: string, { body, onSent }: HttpRequest): Promise<HttpResponse> => {
    const request: Request = {
      operation: url.endsWith('/credits') ? 'credits' : url.includes('/search') ? 'search' : 'ad',
      limit: body === undefined ? 1 : Number((JSON.parse(body) as { limit?: number }).limit ?? defaultLimit),
    };
    if (request.operation === 'credits') return this.#balance();
    const plan = this.#nextPlan();
    if (plan.fate === 'unsent') throw new AdLibraryError({ kind: 'network', problem: 'ECONNREFUSED' });
    onSent();
    const hits = this.#rule.varies ? (this.requests * 31) % (this.#rule.hits + 1) : this.#rule.hits;
    const price =
      plan.fate === 'answer' || plan.fate === 'charged 503' || plan.isCharged ? this.priceOf(request, hits) : 0;
    this.requests++;
    this.charged += this.#late;
    this.#late = plan.fate === 'late' ? price : 0;
    this.charged += plan.fate === 'http 503' || plan.fate === 'late' ? 0 : price;
    this.maxCharged = Math.max(this.maxCharged, price);
    this.maxPaidInFlight = Math.max(this.maxPaidInFlight, ++this.paidInFlight);
    const isFree = price === 0 ? 1 : 0;
    this.freeInFlight += isFree;
    await new Promise<void>((resolve) => this.pending.push(resolve));
    this.freeInFlight -= isFree;
    this.paidInFlight--;
    return this.#answer(plan.fate, { operation: request.operation, items: Math.min(request.limit, hits), price });
  };

  #nextPlan(): Plan {
    const plan = this.#plans.shift() ?? { fate: 'answer', isCharged: true };
    // A service that states charges does so on failures, too; one that does not charges no 503.
    return plan.fate === 'charged 503' && !this.#rule.statesCharges ? { ...plan, fate: 'http 503' } : plan;
  }

  #balance(): HttpResponse {
    const credits = this.#rule.tellsBalance ? 1_000_000 - this.charged : null;
    return response(200, { billingUserId: 'b', credits, usageLimit: { isLimitReached: false } }, {});
  }

  #answer(fate: Fate, { operation, items: count, price }: Charged): HttpResponse {
    const isStated = this.#rule.statesCharges && (fate === 'answer' || fate === 'charged 503');
    if (isStated) this.#stated.push({ operation, items: count, price });
    else this.unseenRise += Math.max(0, price - Math.max(0, ...this.#stated.map((one) => one.price)));
    if (fate === 'reset') throw new AdLibraryError({ kind: 'network' });
    if (fate === 'timeout' || fate === 'late') throw new AdLibraryError({ kind: 'timeout' });
    const charge = this.#rule.statesCharges ? { 'x-service-credits-charged': String(price) } : {};
    if (fate === 'charged 503') return response(503, {}, { 'x-service-credits-charged': String(price) });
    if (fate.startsWith('http ')) return response(Number(fate.slice(5)), {}, {});
    const items = Array.from({ length: count }, (_, index) => ({ id: `ad-${index}` }));
    return response(200, operation === 'ad' ? { id: 'ad' } : { items, cursor: null, hasMore: false }, charge);
  }
}

const response = (status: number, body: object, headers: Record<string, string>): HttpResponse => ({
  status,
  headers: { get: (name) => headers[name] ?? null },
  text: async () => JSON.stringify(body),
});
