import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import fc from 'fast-check';
import { AdLibraryError } from '../../src/api/errors.ts';
import type { HttpRequest, HttpResponse } from '../../src/api/http.ts';
import { openCallBackend } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { createLogger } from '../../src/logging/log.ts';

/**
 * What can happen to a tool call. A failed call may be charged. A `late` call is charged when the next paid call
 * arrives.
 */
const fates = [
  ...(['answer', 'timeout', 'late', 'reset', 'unsent'] as const),
  ...(['http 502', 'http 500', 'http 503', 'charged 503'] as const),
];
type Fate = (typeof fates)[number];

interface Request {
  operation: 'search' | 'ad' | 'credits';
  limit: number;
}

interface Charge {
  operation: Request['operation'];
  items: number;
  price: number;
}

const defaultLimit = 20;

/** A fake API in place of the network. It records its charges and responds when the schedule tells it to. */
class CreditService {
  charged = 0;
  maxCharged = 0;
  /** The total by which calls without a reported charge exceeded the highest reported charge. */
  unreportedIncrease = 0;
  readonly #reportedCharges: Charge[] = [];
  paidInFlight = 0;
  maxPaidInFlight = 0;
  /** The number of running calls that will turn out to be free, which the server cannot know. */
  freeInFlight = 0;
  readonly pending: (() => void)[] = [];
  requestCount = 0;
  #lateCredits = 0;
  readonly #rule: PriceRule;
  readonly #plans: Plan[];

  constructor(rule: PriceRule, plans: readonly Plan[]) {
    this.#rule = rule;
    this.#plans = [...plans];
  }

  computePrice({ operation, limit }: Request, hits: number = this.#rule.hits): number {
    const { kind, credits } = this.#rule;
    if (kind === 'rising') return credits + this.requestCount;
    if (kind === 'flat' || operation === 'ad') return credits;
    return Math.ceil((kind === 'byLimit' ? limit : Math.min(limit, hits)) / 10) * credits;
  }

  /** Returns the highest price that is possible according to the charges reported so far. */
  computeMaxExpectedPrice({ operation, limit }: Request): number {
    const matchingCharges = this.#reportedCharges.filter((charge) => charge.operation === operation);
    return Math.max(0, ...matchingCharges.map((charge) => charge.price * Math.ceil(limit / Math.max(1, charge.items))));
  }

  fetch = async (url: string, { body, onSent }: HttpRequest): Promise<HttpResponse> => {
    const request: Request = {
      operation: url.endsWith('/credits') ? 'credits' : url.includes('/search') ? 'search' : 'ad',
      limit: body === undefined ? 1 : Number((JSON.parse(body) as { limit?: number }).limit ?? defaultLimit),
    };
    if (request.operation === 'credits') return this.#respondWithBalance();
    const plan = this.#nextPlan();
    if (plan.fate === 'unsent') throw new AdLibraryError({ kind: 'network', problem: 'ECONNREFUSED' });
    onSent();
    const hits = this.#rule.hasVaryingHits ? (this.requestCount * 31) % (this.#rule.hits + 1) : this.#rule.hits;
    const price =
      plan.fate === 'answer' || plan.fate === 'charged 503' || plan.isCharged ? this.computePrice(request, hits) : 0;
    this.requestCount++;
    this.charged += this.#lateCredits;
    this.#lateCredits = plan.fate === 'late' ? price : 0;
    this.charged += plan.fate === 'http 503' || plan.fate === 'late' ? 0 : price;
    this.maxCharged = Math.max(this.maxCharged, price);
    this.maxPaidInFlight = Math.max(this.maxPaidInFlight, ++this.paidInFlight);
    const freeCallCount = price === 0 ? 1 : 0;
    this.freeInFlight += freeCallCount;
    await new Promise<void>((resolve) => this.pending.push(resolve));
    this.freeInFlight -= freeCallCount;
    this.paidInFlight--;
    return this.#respond(plan.fate, { operation: request.operation, items: Math.min(request.limit, hits), price });
  };

  #nextPlan(): Plan {
    const plan = this.#plans.shift() ?? { fate: 'answer', isCharged: true };
    // An API that reports charges also reports them for failures. An API that does not report charges never charges a
    // 503.
    return plan.fate === 'charged 503' && !this.#rule.reportsCharges ? { ...plan, fate: 'http 503' } : plan;
  }

  #respondWithBalance(): HttpResponse {
    const credits = this.#rule.reportsBalance ? 1_000_000 - this.charged : null;
    return response(200, { billingUserId: 'b', credits, usageLimit: { isLimitReached: false } }, {});
  }

  #respond(fate: Fate, { operation, items: count, price }: Charge): HttpResponse {
    const isChargeReported = this.#rule.reportsCharges && (fate === 'answer' || fate === 'charged 503');
    if (isChargeReported) this.#reportedCharges.push({ operation, items: count, price });
    else
      this.unreportedIncrease += Math.max(
        0,
        price - Math.max(0, ...this.#reportedCharges.map((charge) => charge.price)),
      );
    if (fate === 'reset') throw new AdLibraryError({ kind: 'network' });
    if (fate === 'timeout' || fate === 'late') throw new AdLibraryError({ kind: 'timeout' });
    const charge = this.#rule.reportsCharges ? { 'x-service-credits-charged': String(price) } : {};
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

/** Generates the pricing rule of the fake API. */
const rule = fc.record({
  kind: fc.constantFrom('flat', 'byLimit', 'byItems', 'rising'),
  /** The price of a call, of each started group of ten items, or of the first call, depending on `kind`. */
  credits: fc.integer({ min: 0, max: 9 }),
  /** The number of ads that match each search, or the maximum if `hasVaryingHits` is true. */
  hits: fc.constantFrom(0, 7, 50, 1000),
  hasVaryingHits: fc.boolean(),
  /** True if the responses report the charge in a header. */
  reportsCharges: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
  /** True if `GET /v1/credits` returns the credit balance. */
  reportsBalance: fc.boolean(),
});

/**
 * A step of a schedule: `begin` starts a call, `answer` sends the response to a call, and `leave` cancels a call.
 * Without a limit, a search uses the page size of the API.
 */
type Step = { begin: 'search' | 'ad'; limit: number | undefined } | { answer: number } | { leave: number };

const limit = fc.constantFrom(undefined, 1, 5, 10, 20, 50, 100);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ begin: fc.constantFrom('search', 'ad'), limit }) as fc.Arbitrary<Step> },
  { weight: 4, arbitrary: fc.record({ answer: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ leave: fc.nat(9) }) },
);

const plan = fc.record({ fate: fc.constantFrom(...fates), isCharged: fc.boolean() });

type Generated<Some> = Some extends fc.Arbitrary<infer Value> ? Value : never;
type PriceRule = Generated<typeof rule>;
/** What happens to one tool call, and whether it is charged despite a failure. */
export type Plan = Generated<typeof plan>;
type Schedule = Generated<ReturnType<typeof creditSchedules>>;

const removeCancellation = (step: Step): Step => ('leave' in step ? { answer: step.leave } : step);

/** Generates either faults at random calls, or an API that serves a few calls and then always fails in the same way. */
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

/** Generates sequential calls: a few with one page size, then many with another. */
const sequentialCalls: fc.Arbitrary<Step[]> = fc
  .tuple(limit, fc.nat(3), limit)
  .map(([first, firstCallCount, then]) =>
    Array.from({ length: 20 }, (_, call) => (call < firstCallCount ? first : then)).flatMap((size): Step[] => [
      { begin: 'search', limit: size },
      { answer: 0 },
    ]),
  );

/** Generates random sequences of calls and responses, with or without faults. */
export const creditSchedules = (hasFaults: boolean) =>
  fc.record({
    budget: fc.integer({ min: 0, max: 60 }),
    rule,
    plans: hasFaults ? faults : fc.constant<Plan[]>([]),
    steps: fc.oneof(
      { weight: 3, arbitrary: fc.array(hasFaults ? step : step.map(removeCancellation), { maxLength: 40 }) },
      { weight: 1, arbitrary: sequentialCalls },
    ),
  });

interface RefusedCall {
  message: string;
  /** True if the call would have fit into the budget, given the charges and the running calls. */
  fits: boolean;
  /** The highest price in credits that is possible according to the earlier charges. */
  maxExpectedPrice: number;
}

/**
 * Runs a schedule through the client, the cache and the credit meter. Returns the service with its recorded charges.
 */
async function runSchedule({ budget, rule, plans, steps }: Schedule) {
  const service = new CreditService(rule, plans);
  const config = { ...readConfig({}), creditBudget: budget, cacheSeconds: 0 };
  const log = createLogger('silent', () => {});
  const upstream = { fetch: service.fetch, baseUrl: 'http://service.invalid' };
  const { createContext } = await openCallBackend(
    { config, log, now: () => 0, monotonicNow: () => 0, random: () => 0 },
    upstream,
  );
  const callers: AbortController[] = [];
  const calls: Promise<void>[] = [];
  const refusedCalls: RefusedCall[] = [];

  const begin = (kind: 'search' | 'ad', limit: number | undefined) => {
    const caller = new AbortController();
    const { api } = createContext({ apiKey: 'svc_live_schedule', tenantId: 't', signal: caller.signal });
    const number = callers.push(caller);
    // Give each call different arguments, because the server would merge identical concurrent calls.
    const pendingCall =
      kind === 'ad' ? api.getAd({ path: { adId: `${number}` } }) : api.searchAds({ body: { limit, number } });
    calls.push(
      pendingCall.then(
        () => {},
        async (error) => {
          // After one tick, a call admitted at the same time has reached the service.
          await new Promise(process.nextTick);
          if (!(error instanceof AdLibraryError) || error.failure.kind !== 'credit_budget') return;
          // The ledger assumes at least one credit for an unknown price.
          const request = { operation: kind, limit: kind === 'ad' ? 1 : (limit ?? defaultLimit) };
          const price = Math.max(1, service.computePrice(request));
          const fits = service.charged + service.freeInFlight + price <= budget;
          refusedCalls.push({
            message: error.message,
            fits,
            maxExpectedPrice: Math.max(1, service.computeMaxExpectedPrice(request)),
          });
        },
      ),
    );
  };

  for (const step of steps) {
    if ('begin' in step) begin(step.begin, step.limit);
    else if ('leave' in step) callers[step.leave % Math.max(1, callers.length)]?.abort();
    else service.pending.splice(step.answer % Math.max(1, service.pending.length), 1)[0]?.();
    await yieldToEventLoop();
  }
  const allCalls = Promise.all(calls);
  let areCallsFinished = false;
  void allCalls.then(() => {
    areCallsFinished = true;
  });
  while (!areCallsFinished || service.pending.length > 0) {
    service.pending.shift()?.();
    await yieldToEventLoop();
  }
  const { readSpending } = createContext({
    apiKey: 'svc_live_schedule',
    tenantId: 't',
    signal: new AbortController().signal,
  });
  const { charged, uncertain = 0 } = await readSpending();
  return { service, refusedCalls, countedCredits: charged + uncertain };
}

/**
 * Returns by how many credits rising prices can exceed the budget. Up to four calls run at once, and each request
 * raises the price by a credit. Charges that were not reported add to this.
 */
const computePriceRise = ({ rule }: Schedule, { requestCount, unreportedIncrease }: CreditService) =>
  rule.kind === 'rising' ? 4 * requestCount + unreportedIncrease : 0;

/**
 * Returns the size of a possible late charge, which arrives after the server's balance check. The server notices it
 * only one call later.
 */
const computeLateCharge = ({ plans }: Schedule, maxCharged: number) =>
  plans.some(({ fate }) => fate === 'late') ? maxCharged : 0;

/**
 * Returns true if at most four paid calls ran at once, and the charges stayed within the budget. They may exceed it by
 * one call of unknown price, a price increase or a late charge.
 */
export async function isBudgetRespected(schedule: Schedule): Promise<boolean> {
  const { service } = await runSchedule(schedule);
  const { charged, maxCharged, maxPaidInFlight } = service;
  const maxAllowed =
    schedule.budget +
    Math.max(0, maxCharged - 1) +
    computePriceRise(schedule, service) +
    computeLateCharge(schedule, maxCharged);
  return charged <= maxAllowed && maxPaidInFlight <= 4;
}

/**
 * Returns true if the ledger had a good reason to reject a call that would have fit into the budget. Prices that rise
 * with each call can look like prices that grow with the page size, and a page can have fewer items than reserved. The
 * rejection is excusable only if the expected price did not fit and the earlier charges make that price possible.
 */
function isRefusalExcusable({ rule, budget }: Schedule, { message, maxExpectedPrice }: RefusedCall): boolean {
  const readNumber = (pattern: RegExp) => Number(pattern.exec(message)?.[1] ?? 0);
  const expectedPrice = Math.max(1, readNumber(/cost ([\d.]+?)( or more)?\./));
  const usedCredits = readNumber(/([\d.]+) spent/) + readNumber(/([\d.]+) counted/) + readNumber(/([\d.]+) reserved/);
  const canExpectHigherPrice = rule.kind === 'rising' || rule.kind === 'byItems';
  return canExpectHigherPrice && usedCredits + expectedPrice > budget && expectedPrice <= maxExpectedPrice;
}

/**
 * Returns true if the ledger admitted every call that fits the budget, and if its total equals the charges of the API.
 * Always returns true for an API that does not report its charges.
 */
export async function isEveryFittingCallAdmitted(schedule: Schedule): Promise<boolean> {
  const { service, countedCredits, refusedCalls } = await runSchedule(schedule);
  const wrongRefusals = refusedCalls.filter((call) => call.fits && !isRefusalExcusable(schedule, call));
  return !schedule.rule.reportsCharges || (wrongRefusals.length === 0 && countedCredits === service.charged);
}
