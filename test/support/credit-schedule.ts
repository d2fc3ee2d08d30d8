import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { AdLibraryError } from '../../src/api/errors.ts';
import { openCalls } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { createLog } from '../../src/log/log.ts';
import { CreditService, defaultLimit, type Fate, type Plan, type PriceRule } from './credit-service.ts';

/** One thing that happens: a call begins, a call that waits is answered, a caller leaves. */
/** Without a limit, a search has the page size of the service. */
type Step = { begin: 'search' | 'ad'; limit: number | undefined } | { answer: number } | { leave: number };

/** A budget, a service with its prices and faults, and what callers do in which order. */
export interface Schedule {
  budget: number;
  rule: PriceRule;
  plans: Plan[];
  steps: Step[];
}

const fates: Fate[] = [
  'answer',
  'timeout',
  'late',
  'reset',
  'unsent',
  'http 502',
  'http 500',
  'http 503',
  'charged 503',
];

const rule: fc.Arbitrary<PriceRule> = fc.record({
  kind: fc.constantFrom('flat', 'byLimit', 'byItems', 'rising'),
  credits: fc.integer({ min: 0, max: 9 }),
  hits: fc.constantFrom(0, 7, 50, 1000),
  varies: fc.boolean(),
  statesCharges: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
  tellsBalance: fc.boolean(),
});

const limit = fc.constantFrom(undefined, 1, 5, 10, 20, 50, 100);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ begin: fc.constantFrom('search', 'ad'), limit }) as fc.Arbitrary<Step> },
  { weight: 4, arbitrary: fc.record({ answer: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ leave: fc.nat(9) }) },
);

const planOf = (kinds: Fate[]): fc.Arbitrary<Plan> =>
  fc.record({ fate: fc.constantFrom(...kinds), isCharged: fc.boolean() });

const withoutLeaving = (one: Step): Step => ('leave' in one ? { answer: one.leave } : one);

/** Faults here and there; or a service that answers a few calls, and then fails all in one way. */
const faults: fc.Arbitrary<Plan[]> = fc.oneof(
  { weight: 2, arbitrary: fc.array(planOf(fates), { maxLength: 25 }) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.nat(3), planOf(fates))
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

/** @param faulty whether calls may fail, and callers leave */
export const schedules = (faulty: boolean): fc.Arbitrary<Schedule> =>
  fc.record({
    budget: fc.integer({ min: 0, max: 60 }),
    rule,
    plans: faulty ? faults : fc.constant([]),
    steps: fc.oneof(
      { weight: 3, arbitrary: fc.array(faulty ? step : step.map(withoutLeaving), { maxLength: 40 }) },
      { weight: 1, arbitrary: inTurn },
    ),
  });

export interface RefusedCall {
  /** What its caller reads. */
  message: string;
  /** Whether it would have fitted beside what was charged and what was in progress. */
  fits: boolean;
  /** The most it could be expected to cost, by the charges so far. */
  maxExpected: number;
}

export interface Outcome {
  /** What the service really charged, and its highest charge. */
  charged: number;
  maxCharged: number;
  /** By how much calls whose charge nobody stated cost more than any that was stated. */
  unseenRise: number;
  /** Paid requests, repeated ones included. */
  requests: number;
  maxPaidInFlight: number;
  refused: RefusedCall[];
  /** What the ledger says at the end. */
  counted: number;
}

/** Lets a schedule happen to the whole send chain, and looks at it with the service's own books. */
export async function run({ budget, rule, plans, steps }: Schedule): Promise<Outcome> {
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
  const { charged: really, maxCharged, unseenRise, requests, maxPaidInFlight } = service;
  return { charged: really, maxCharged, unseenRise, requests, maxPaidInFlight, refused, counted: charged + uncertain };
}
