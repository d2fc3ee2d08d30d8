import { AdLibraryError } from '../../src/api/errors.ts';
import type { HttpRequest, HttpResponse } from '../../src/api/send-http.ts';

/** What calls cost at a service that a schedule makes up. */
export interface PriceRule {
  kind: 'flat' | 'byLimit' | 'byItems' | 'rising';
  /** Credits: of a call, of ten items begun, or of the first call. */
  credits: number;
  /** Ads that every search finds. */
  hits: number;
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

/** Asked in place of a network: a service that keeps its own books, and answers when its driver says so. */
export class CreditService {
  /** What was really charged, and the dearest single call. */
  charged = 0;
  dearest = 0;
  /** By how much calls whose charge nobody stated cost more than any that was stated. */
  unseenRise = 0;
  private dearestStated = 0;
  paidUnderWay = 0;
  maxPaidUnderWay = 0;
  /** Calls under way that turn out to cost nothing, which nobody knew. */
  freeUnderWay = 0;
  /** The calls that have come in and wait for their answer. */
  readonly pending: (() => void)[] = [];
  private calls = 0;
  private late = 0;
  private readonly rule: PriceRule;
  private readonly plans: Plan[];

  constructor(rule: PriceRule, plans: readonly Plan[]) {
    this.rule = rule;
    this.plans = [...plans];
  }

  /** What a call costs now. */
  priceOf({ operation, limit }: Request): number {
    const { kind, credits, hits } = this.rule;
    if (kind === 'rising') return credits + this.calls;
    if (kind === 'flat' || operation === 'ad') return credits;
    return Math.ceil((kind === 'byLimit' ? limit : Math.min(limit, hits)) / 10) * credits;
  }

  fetch = async (url: string, { body, onSent }: HttpRequest): Promise<HttpResponse> => {
    const request: Request = {
      operation: url.endsWith('/credits') ? 'credits' : url.includes('/search') ? 'search' : 'ad',
      limit: body === undefined ? 1 : Number((JSON.parse(body) as { limit?: number }).limit ?? 20),
    };
    if (request.operation === 'credits') return this.balance();
    const plan = this.nextPlan();
    if (plan.fate === 'unsent') throw new AdLibraryError({ kind: 'network', problem: 'ECONNREFUSED' });
    onSent();
    const price = plan.fate === 'answer' || plan.fate === 'charged 503' || plan.isCharged ? this.priceOf(request) : 0;
    this.calls++;
    this.charged += this.late;
    this.late = plan.fate === 'late' ? price : 0;
    this.charged += plan.fate === 'http 503' || plan.fate === 'late' ? 0 : price;
    this.dearest = Math.max(this.dearest, price);
    this.maxPaidUnderWay = Math.max(this.maxPaidUnderWay, ++this.paidUnderWay);
    const isFree = price === 0 ? 1 : 0;
    this.freeUnderWay += isFree;
    await new Promise<void>((resolve) => this.pending.push(resolve));
    this.freeUnderWay -= isFree;
    this.paidUnderWay--;
    return this.answer(plan.fate, request, price);
  };

  private nextPlan(): Plan {
    const plan = this.plans.shift() ?? { fate: 'answer', isCharged: true };
    // A service that states charges does so on failures, too; one that does not charges no 503.
    return plan.fate === 'charged 503' && !this.rule.statesCharges ? { ...plan, fate: 'http 503' } : plan;
  }

  private balance(): HttpResponse {
    const credits = this.rule.tellsBalance ? 1_000_000 - this.charged : null;
    return response(200, { billingUserId: 'b', credits, usageLimit: { isLimitReached: false } }, {});
  }

  private answer(fate: Fate, { operation, limit }: Request, price: number): HttpResponse {
    const isStated = this.rule.statesCharges && (fate === 'answer' || fate === 'charged 503');
    if (isStated) this.dearestStated = Math.max(this.dearestStated, price);
    else this.unseenRise += Math.max(0, price - this.dearestStated);
    if (fate === 'reset') throw new AdLibraryError({ kind: 'network' });
    if (fate === 'timeout' || fate === 'late') throw new AdLibraryError({ kind: 'timeout' });
    const charge = this.rule.statesCharges ? { 'x-service-credits-charged': String(price) } : {};
    if (fate === 'charged 503') return response(503, {}, { 'x-service-credits-charged': String(price) });
    if (fate.startsWith('http ')) return response(Number(fate.slice(5)), {}, {});
    const items = Array.from({ length: Math.min(limit, this.rule.hits) }, (_, index) => ({ id: `ad-${index}` }));
    return response(200, operation === 'ad' ? { id: 'ad' } : { items, cursor: null, hasMore: false }, charge);
  }
}

const response = (status: number, body: object, headers: Record<string, string>): HttpResponse => ({
  status,
  headers: { get: (name) => headers[name] ?? null },
  text: async () => JSON.stringify(body),
});
