import fc from 'fast-check';
import { collectionId, dayMs, type ServiceRule, type Totals } from './gathering-service.ts';

type Filters = Record<string, unknown>;

export interface Question {
  filters?: Filters;
  split?: Filters[];
  collectionId?: string;
}

/** A tool call. */
export type Call =
  | { gather: Question; fresh: boolean; maxAds: number; maxCredits: number }
  | { search: Filters; limit: number; fresh: boolean; isNext: boolean }
  | { ad: number; fresh: boolean }
  | { count: Filters; split: Filters[] | undefined; fresh: boolean };

/** What changes without a call. */
export type Change =
  | { ad: number; version: number }
  | { gone: number }
  | { passMs: number }
  | { clockOf: 0 | 1; jumpMs: number }
  /** Time passes, and the clock of a process stands still. */
  | { stoppedClockOf: 0 | 1; passMs: number }
  | { expireCursors: true }
  /** The key is refused from then on, or accepted again. */
  | { rejectedBy: 'service' | 'gateway' | undefined }
  /** Gatherings of other questions are made, until there is room for so many more; unless in files. */
  | { roomLeft: number };

/** What happens while a page is in flight. */
type Interruption =
  | 'cancel'
  | 'kill'
  | 'stop'
  | 'break off'
  | { change: Change }
  /** Another call by the same process. */
  | { call: Call };

/** One thing after the other. `by` is the process that is called. */
export type Step =
  | { call: Call; by: 0 | 1; during?: { page: number; happens: Interruption } | undefined }
  | { change: Change }
  | { restart: 0 | 1 };

/** A service, where the server keeps what it brings, and what happens in which order. */
export interface GatheringSchedule {
  rule: Omit<ServiceRule, 'padding'>;
  /** Ads at the beginning. */
  ads: number;
  storedIn: 'memory' | 'files' | 'replicas';
  hasCache: boolean;
  /** What one process may spend, or all replicas together. */
  budget: number | undefined;
  /** Bytes that the dataset may have, unless in files. */
  room: number | undefined;
  /** Whether the dataset is read by SQL at the end, which takes long. */
  asksSql: boolean;
  steps: Step[];
}

const image = { displayFormat: 'IMAGE' };
const video = { displayFormat: 'VIDEO' };
const german = { countries: ['DE'] };

/** One of several, each as often as its weight says. */
const weighted = <One>(...all: [weight: number, arbitrary: fc.Arbitrary<One>][]): fc.Arbitrary<One> =>
  fc.oneof(...all.map(([weight, arbitrary]) => ({ weight, arbitrary })));
const rarely = (times: number) => weighted([times, fc.constant(false)], [1, fc.constant(true)]);
const usually = (most: number, times: number, ...others: number[]) =>
  weighted([times, fc.constant(most)], [1, fc.constantFrom(...others)]);

const question = weighted<Question>(
  [3, fc.constantFrom<Filters>({}, image, video, german, { ...german, ...video }).map((filters) => ({ filters }))],
  [
    3,
    fc.constantFrom<Question>(
      { split: [image, video] },
      { split: [image, image] },
      { split: [image, german] },
      { split: [{}, image] },
      { filters: german, split: [video, image] },
      { split: [video, { ...german, ...video }, image, video] },
    ),
  ],
  [1, fc.constant({ collectionId })],
);

const most = 12;
const ad = fc.nat(most - 1);
const maxAds = usually(1000, 2, 1, 3, 4, 7);
const maxCredits = usually(1000, 3, 0, 2, 5);

/** The filters of a question and of its parts. */
const filtersOf = ({ filters = {}, split = [] }: Question): Filters[] => [
  filters,
  ...split.map((part) => ({ ...filters, ...part })),
];

/** Calls that are about a few questions, so that they meet. */
const callsAbout = (questions: Question[]): fc.Arbitrary<Call> => {
  const gather = fc.constantFrom(...questions);
  const some = fc.constantFrom<Filters>(...questions.flatMap(filtersOf));
  const split = fc.constantFrom<Filters[] | undefined>(undefined, [image, video]);
  const fresh = fc.boolean();
  return weighted<Call>(
    [6, fc.record({ gather, fresh, maxAds, maxCredits })],
    [2, fc.record({ search: some, limit: fc.constantFrom(2, 100), fresh, isNext: rarely(3) })],
    [1, fc.record({ ad, fresh })],
    [1, fc.record({ count: some, split, fresh: rarely(3) })],
  );
};

const hourMs = 3_600_000;
const times = [20, 60_000, hourMs, 20 * hourMs, 3 * dayMs, 40 * dayMs];
const jumps = [...times.flatMap((ms) => [ms, -ms]), 40 * dayMs, 40 * dayMs];
const by = fc.constantFrom<0 | 1>(0, 1);
const passMs = fc.constantFrom(...times);
const verdicts = ['service', 'gateway', undefined, undefined] as const;

const change = weighted<Change>(
  [4, fc.record({ ad, version: fc.nat(3) })],
  [2, fc.record({ gone: ad })],
  [3, fc.record({ passMs })],
  [3, fc.record({ clockOf: by, jumpMs: fc.constantFrom(...jumps) })],
  [2, fc.record({ stoppedClockOf: by, passMs })],
  [1, fc.constant({ expireCursors: true })],
  [3, fc.record({ rejectedBy: fc.constantFrom(...verdicts) })],
);
/** With -1, the one that was read longest ago has to go. */
const others = fc.record({ change: fc.record({ roomLeft: fc.constantFrom(-1, -1, 0, 1) }) });

const stepsAbout = ([questions, isCrowded]: [Question[], boolean]): fc.Arbitrary<Step[]> => {
  const call = callsAbout(questions);
  const happens = weighted<Interruption>(
    [3, fc.constant('cancel')],
    [2, fc.constantFrom('kill', 'stop', 'break off')],
    [2, fc.record({ change })],
    [isCrowded ? 12 : 0, fc.constant({ change: { roomLeft: -1 } })],
    [3, fc.record({ call })],
  );
  const during = fc.oneof(
    fc.constant(undefined),
    fc.option(fc.record({ page: fc.nat(4), happens }), { nil: undefined }),
  );
  const step = weighted<Step & { isAgain?: boolean }>(
    [8, fc.record({ call, by, during, isAgain: rarely(3) })],
    [5, fc.record({ change })],
    [1, fc.record({ restart: by })],
    [isCrowded ? 3 : 0, others],
  );
  return fc.array(step, { maxLength: 14, size: 'max' }).map(withRepetitions);
};

/** Some calls are the same as the one before. */
function withRepetitions(steps: (Step & { isAgain?: boolean })[]): Step[] {
  let last: Call | undefined;
  return steps.map(({ isAgain, ...step }) => {
    if (!('call' in step)) return step;
    last = (isAgain && last) || step.call;
    return { ...step, call: last };
  });
}

export const gatheringSchedules: fc.Arbitrary<GatheringSchedule> = fc.record({
  rule: fc.record({
    pageSize: fc.constantFrom(1, 2, 3, 5, 100),
    perCall: fc.constantFrom(1, 0),
    perAd: fc.constantFrom(0, 1),
    totals: fc.constantFrom<Totals>('right', 'right', 'right', 'none', 'none at the end', 'zero', 'low', 'high'),
  }),
  ads: fc.nat(most),
  storedIn: fc.constantFrom('memory', 'files', 'replicas'),
  hasCache: fc.boolean(),
  budget: weighted<number | undefined>([3, fc.constant(undefined)], [1, fc.constantFrom(3, 12)]),
  room: weighted<number | undefined>([8, fc.constant(undefined)], [1, fc.constantFrom(60_000, 90_000)]),
  asksSql: rarely(1000),
  steps: fc.tuple(fc.array(question, { minLength: 1, maxLength: 2 }), rarely(4)).chain(stepsAbout),
});
