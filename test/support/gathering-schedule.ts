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

/** What happens while a page is under way. */
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
  keptIn: 'memory' | 'files' | 'replicas';
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

const filters = fc.constantFrom<Filters>({}, image, video, german, { ...german, ...video });
const question = fc.oneof(
  { weight: 3, arbitrary: filters.map((filters): Question => ({ filters })) },
  {
    weight: 3,
    arbitrary: fc.constantFrom<Question>(
      { split: [image, video] },
      { split: [image, image] },
      { split: [image, german] },
      { split: [{}, image] },
      { filters: german, split: [video, image] },
      { split: [video, { ...german, ...video }, image, video] },
    ),
  },
  { weight: 1, arbitrary: fc.constant<Question>({ collectionId }) },
);
const rarely = (times: number) =>
  fc.oneof({ weight: times, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) });

const most = 12;
const ad = fc.nat(most - 1);

/** Calls that are about a few questions, so that they meet. */
const callsAbout = (questions: Question[]): fc.Arbitrary<Call> => {
  const gather = fc.constantFrom(...questions);
  const someFilters = fc.constantFrom<Filters>(...questions.flatMap(filtersOf));
  const arbitraries: [weight: number, arbitrary: fc.Arbitrary<Call>][] = [
    [6, fc.record({ gather, fresh: fc.boolean(), maxAds, maxCredits })],
    [2, fc.record({ search: someFilters, limit: fc.constantFrom(2, 100), fresh: fc.boolean(), isNext: rarely(3) })],
    [1, fc.record({ ad, fresh: fc.boolean() })],
    [
      1,
      fc.record({
        count: someFilters,
        split: fc.constantFrom<Filters[] | undefined>(undefined, [image, video]),
        fresh: rarely(3),
      }),
    ],
  ];
  return fc.oneof(...arbitraries.map(([weight, arbitrary]) => ({ weight, arbitrary })));
};
const usually = (most: number, times: number, ...others: number[]) =>
  fc.oneof({ weight: times, arbitrary: fc.constant(most) }, { weight: 1, arbitrary: fc.constantFrom(...others) });
const maxAds = usually(1000, 2, 1, 3, 4, 7);
const maxCredits = usually(1000, 3, 0, 2, 5);
/** The filters of a question and of its parts. */
const filtersOf = ({ filters = {}, split = [] }: Question): Filters[] => [
  filters,
  ...split.map((part) => ({ ...filters, ...part })),
];

const hourMs = 3_600_000;
const times = [20, 60_000, hourMs, 20 * hourMs, 3 * dayMs, 40 * dayMs];
const change = fc.oneof(
  { weight: 4, arbitrary: fc.record({ ad, version: fc.nat(3) }) as fc.Arbitrary<Change> },
  { weight: 2, arbitrary: fc.record({ gone: ad }) as fc.Arbitrary<Change> },
  { weight: 3, arbitrary: fc.record({ passMs: fc.constantFrom(...times) }) as fc.Arbitrary<Change> },
  {
    weight: 3,
    arbitrary: fc.record({
      clockOf: fc.constantFrom(0, 1),
      jumpMs: fc.constantFrom(...times.flatMap((ms) => [ms, -ms]), 40 * dayMs, 40 * dayMs),
    }) as fc.Arbitrary<Change>,
  },
  {
    weight: 2,
    arbitrary: fc.record({
      stoppedClockOf: fc.constantFrom(0, 1),
      passMs: fc.constantFrom(...times),
    }) as fc.Arbitrary<Change>,
  },
  { weight: 1, arbitrary: fc.constant<Change>({ expireCursors: true }) },
  {
    weight: 3,
    arbitrary: fc.record({
      rejectedBy: fc.constantFrom('service', 'gateway', undefined, undefined),
    }) as fc.Arbitrary<Change>,
  },
);
/** With -1, the one that was read longest ago has to go. */
const others = fc.record({ roomLeft: fc.constantFrom(-1, -1, 0, 1) }) as fc.Arbitrary<Change>;

const by = fc.constantFrom<0 | 1>(0, 1);

const stepsAbout = ([questions, isCrowded]: [Question[], boolean]): fc.Arbitrary<Step[]> => {
  const call = callsAbout(questions);
  const happens = fc.oneof(
    { weight: 3, arbitrary: fc.constant<Interruption>('cancel') },
    { weight: 2, arbitrary: fc.constantFrom<Interruption>('kill', 'stop', 'break off') },
    { weight: 2, arbitrary: change.map((change): Interruption => ({ change })) },
    { weight: isCrowded ? 12 : 0, arbitrary: fc.constant<Interruption>({ change: { roomLeft: -1 } }) },
    { weight: 3, arbitrary: call.map((call): Interruption => ({ call })) },
  );
  const during = fc.option(fc.record({ page: fc.nat(4), happens }), { nil: undefined });
  const step: fc.Arbitrary<Step & { isAgain?: boolean }> = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({ call, by, during: fc.oneof(fc.constant(undefined), during), isAgain: rarely(3) }),
    },
    { weight: 5, arbitrary: change.map((change): Step => ({ change })) },
    { weight: 1, arbitrary: fc.record({ restart: by }) },
    { weight: isCrowded ? 3 : 0, arbitrary: others.map((change): Step => ({ change })) },
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
  keptIn: fc.constantFrom('memory', 'files', 'replicas'),
  hasCache: fc.boolean(),
  budget: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.constantFrom(3, 12) }),
  room: fc.oneof(
    { weight: 8, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom(60_000, 90_000) },
  ),
  asksSql: rarely(1000),
  steps: fc.tuple(fc.array(question, { minLength: 1, maxLength: 2 }), rarely(4)).chain(stepsAbout),
});
