import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { AdLibraryError } from '../../src/api/errors.ts';
import type { HttpRequest, HttpResponse } from '../../src/api/http.ts';
import { openCalls } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { createLog } from '../../src/logging/log.ts';

/** What becomes of one call. A fault may be charged all the same: `late` is charged when the next paid call comes in. */
const fates = [
  ...(['answer', 'timeout', 'late', 'reset', 'unsent'] as const),
  ...(['http 502', 'http 500', 'http 503', 'charged 503'] as const),
];
type Fate = (typeof fates)[number];

interface Request {
  operation: 'search' | 'ad' | 'credits';
  limit: number;
}

interface Charged {
  operation: Request['operation'];
  items: number;
  price: number;
}

const defaultLimit = 20;

/** Asked in place of a network: a service that keeps its own books, and answers when its driver says so. */
class CreditService {
  charged = 0;
  maxCharged = 0;
  /** By how much calls whose charge nobody stated cost more than any that was stated. */
  unseenRise = 0;
  readonly #stated: Charged[] = [];
  paidInFlight = 0;
  maxPaidInFlight = 0;
  /** Calls in flight that turn out to cost nothing, which nobody knew. */
  freeInFlight = 0;
  readonly pending: (() => void)[] = [];
  requests = 0;
  #late = 0;
  readonly #rule: PriceRule;
  readonly #plans: Plan[];

  constructor(rule: PriceRule, plans: readonly Plan[]) {
    this.#rule = rule;
    this.#plans = [...plans];
  }

  priceOf({ operation, limit }: Request, hits: number = this.#rule.hits): number {
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

/** What calls cost at a service that a schedule makes up. */
const rule = fc.record({
  kind: fc.constantFrom('flat', 'byLimit', 'byItems', 'rising'),
  /** Of a call, of ten items begun, or of the first call. */
  credits: fc.integer({ min: 0, max: 9 }),
  /** Ads that every search finds, or the most that one finds. */
  hits: fc.constantFrom(0, 7, 50, 1000),
  varies: fc.boolean(),
  /** Whether answers say what was charged, and whether `GET /v1/credits` can be asked. */
  statesCharges: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
  tellsBalance: fc.boolean(),
});

/** A call begins, a call that waits is answered, a caller leaves. Without a limit, a search has the service's page size. */
type Step = { begin: 'search' | 'ad'; limit: number | undefined } | { answer: number } | { leave: number };

const limit = fc.constantFrom(undefined, 1, 5, 10, 20, 50, 100);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ begin: fc.constantFrom('search', 'ad'), limit }) as fc.Arbitrary<Step> },
  { weight: 4, arbitrary: fc.record({ answer: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ leave: fc.nat(9) }) },
);

const plan = fc.record({ fate: fc.constantFrom(...fates), isCharged: fc.boolean() });

type Generated<Some> = Some extends fc.Arbitrary<infer One> ? One : never;
type PriceRule = Generated<typeof rule>;
export type Plan = Generated<typeof plan>;
type Schedule = Generated<ReturnType<typeof schedules>>;

const withoutLeaving = (one: Step): Step => ('leave' in one ? { answer: one.leave } : one);

/** Faults here and there; or a service that answers a few calls, and then fails all in one way. */
const faults: fc.Arbitrary<Plan[]> = fc.oneof(
  { weight: 2, arbitrary: fc.array(plan, { maxLength: 25 }) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.nat(3), plan)
      .map(([answered, plan]) => Array.from({ length: 40 }, (_, call) => (call < answered ? answer : plan))),
  },
);
const answer: Plan = { fate: 'answer', isCharged: true };

/** Calls one after the other: some of one size, then many of another. */
const inTurn: fc.Arbitrary<Step[]> = fc
  .tuple(limit, fc.nat(3), limit)
  .map(([first, times, then]) =>
    Array.from({ length: 20 }, (_, call) => (call < times ? first : then)).flatMap((size): Step[] => [
      { begin: 'search', limit: size },
      { answer: 0 },
    ]),
  );

export const schedules = (faulty: boolean) =>
  fc.record({
    budget: fc.integer({ min: 0, max: 60 }),
    rule,
    plans: faulty ? faults : fc.constant<Plan[]>([]),
    steps: fc.oneof(
      { weight: 3, arbitrary: fc.array(faulty ? step : step.map(withoutLeaving), { maxLength: 40 }) },
      { weight: 1, arbitrary: inTurn },
    ),
  });

interface RefusedCall {
  message: string;
  /** Whether it would have fitted beside what was charged and what was in progress. */
  fits: boolean;
  /** The most it could be expected to cost, by the charges so far. */
  maxExpected: number;
}

/** Lets a schedule happen to the whole send chain, and looks at it with the service's own books. */
async function run({ budget, rule, plans, steps }: Schedule) {
  const service = new CreditService(rule, plans);
  const config = { ...readConfig({}), creditBudget: budget, cacheSeconds: 0 };
  const log = createLog('silent', () => {});
  const upstream = { fetch: service.fetch, baseUrl: 'http://service.invalid' };
  const { callsOf } = await openCalls({ config, log, now: () => 0, elapsed: () => 0, random: () => 0 }, upstream);
  const callers: AbortController[] = [];
  const calls: Promise<void>[] = [];
  const refused: RefusedCall[] = [];

  const begin = (kind: 'search' | 'ad', limit: number | undefined) => {
    const caller = new AbortController();
    const { api } = callsOf({ apiKey: 'svc_live_schedule', tenantId: 't', signal: caller.signal });
    const number = callers.push(caller);
    // A question of its own, so that equal calls at once are not made into one.
    const asked =
      kind === 'ad' ? api.getAd({ path: { adId: `${number}` } }) : api.searchAds({ body: { limit, number } });
    calls.push(
      asked.then(
        () => {},
        async (error) => {
          // A call that was granted its place at the same time has reached the service by then.
          await new Promise(process.nextTick);
          if (!(error instanceof AdLibraryError) || error.failure.kind !== 'credit_budget') return;
          // A price that is not known yet is one credit at least.
          const request = { operation: kind, limit: kind === 'ad' ? 1 : (limit ?? defaultLimit) };
          const price = Math.max(1, service.priceOf(request));
          const fits = service.charged + service.freeInFlight + price <= budget;
          refused.push({ message: error.message, fits, maxExpected: Math.max(1, service.maxExpected(request)) });
        },
      ),
    );
  };

  for (const step of steps) {
    if ('begin' in step) begin(step.begin, step.limit);
    else if ('leave' in step) callers[step.leave % Math.max(1, callers.length)]?.abort();
    else service.pending.splice(step.answer % Math.max(1, service.pending.length), 1)[0]?.();
    await nextTurn();
  }
  const ended = Promise.all(calls);
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  while (!isOver || service.pending.length > 0) {
    service.pending.shift()?.();
    await nextTurn();
  }
  const { spending } = callsOf({ apiKey: 'svc_live_schedule', tenantId: 't', signal: new AbortController().signal });
  const { charged, uncertain = 0 } = await spending();
  return { service, refused, counted: charged + uncertain };
}

/**
 * What prices can rise by unseen: while calls are in flight, four of them, each by as much as there were requests
 * before; and with calls whose charge nobody states.
 */
const riseOf = ({ rule }: Schedule, { requests, unseenRise }: CreditService) =>
  rule.kind === 'rising' ? 4 * requests + unseenRise : 0;

/** A charge that comes after the balance was asked for it is noticed one call later. */
const lateOf = ({ plans }: Schedule, maxCharged: number) =>
  plans.some(({ fate }) => fate === 'late') ? maxCharged : 0;

/** Whether a budget is passed by one call of unknown price at most, or by a rise, and four calls go at once. */
export async function keepsItsPromise(schedule: Schedule): Promise<boolean> {
  const { service } = await run(schedule);
  const { charged, maxCharged, maxPaidInFlight } = service;
  const most = schedule.budget + Math.max(0, maxCharged - 1) + riseOf(schedule, service) + lateOf(schedule, maxCharged);
  return charged <= most && maxPaidInFlight <= 4;
}

/**
 * Prices that rise with each call may look as if they grew with the page, and a page may hold fewer items than it is
 * expected to be charged for. Then a call may be refused that would have fitted, but only if it did not fit at the price
 * expected of it, which the charges so far must allow.
 */
function isMistaken({ rule, budget }: Schedule, { message, maxExpected }: RefusedCall): boolean {
  const figure = (pattern: RegExp) => Number(pattern.exec(message)?.[1] ?? 0);
  const expected = Math.max(1, figure(/cost ([\d.]+?)( or more)?\./));
  const used = figure(/([\d.]+) spent/) + figure(/([\d.]+) counted/) + figure(/([\d.]+) reserved/);
  const isExpectedDearer = rule.kind === 'rising' || rule.kind === 'byItems';
  return isExpectedDearer && used + expected > budget && expected <= maxExpected;
}

/** Whether every call that fits goes, where charges are stated and nothing fails; and the ledger agrees. */
export async function refusesNothingThatFits(schedule: Schedule): Promise<boolean> {
  const { service, counted, refused } = await run(schedule);
  const wrong = refused.filter((call) => call.fits && !isMistaken(schedule, call));
  return !schedule.rule.statesCharges || (wrong.length === 0 && counted === service.charged);
}
