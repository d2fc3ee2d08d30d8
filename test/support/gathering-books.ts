import { canonical } from '../../src/api/json.ts';
import type { Row } from '../../src/dataset/tables.ts';
import type { Call, Question } from './gathering-schedule.ts';
import {
  type AdFields,
  dayMs,
  type GatheringService,
  type Listed,
  questionOf,
  type ServedPage,
  unread,
} from './gathering-service.ts';
import type { Item, Result } from './server.ts';

/** What is promised of gatherings. */
type PromiseName =
  | 'a page is paid once'
  | 'complete means held'
  | 'newest is what came last'
  | 'figures agree'
  | 'a rejected key is served nothing'
  | 'what was paid for stays'
  | 'a budget is kept'
  | 'an answer is cached for its time'
  | 'charges agree';

/** A promise that was not kept, and what was seen. */
export interface Problem {
  promise: PromiseName;
  seen: string;
}

/** The tables of a dataset. */
export interface DatasetView {
  ads?: (Row<'ads'> & { id: string })[];
  ad_versions?: Row<'ad_versions'>[];
  gatherings?: GatheringRow[];
  gathered?: Row<'gathered'>[];
  /** How much was removed for want of room. */
  evicted: { ads: number; gatherings: number };
}

type GatheringRow = Row<'gatherings'> & { id: string };

/** A tool call as its caller saw it. */
export interface MadeCall {
  call: Call;
  /** The last answer that had arrived when it began. */
  from: number;
  /** When it began, by the true time. */
  at: number;
  ended?: Promise<void>;
  /** Missing if its caller left. */
  result?: Result;
}

/** What happened in one step: a call, and those that were made while it ran. */
interface Happened {
  calls: MadeCall[];
  /** Whether a caller left, or an answer was lost. */
  isBroken: boolean;
  after: DatasetView;
}

/** Content of an ad, from the answer that brought it first. */
interface Version {
  fields: AdFields;
  since: number;
}

/** How far a question was read since it was last begun. */
interface Reading {
  number: number;
  begunFresh: boolean;
  tip: ServedPage;
  ids: Set<string>;
  /** How many of its last pages brought nothing new. */
  idle: number;
}

/** The newest gathering of a question, as the promise of `fresh` counts it. */
interface Run {
  fresh: boolean;
  at: number;
  /** Readings that were begun before it. */
  after: number;
  /** Its end was returned to whoever called; undefined where several calls could be meant. */
  hasEnded: boolean | undefined;
  /** The readings of its parts when it was last seen. */
  readings: Map<string, number>;
}

/** A gathering that was complete, and between which answers it was made. */
interface Completed {
  id: string;
  key: string;
  ids: Set<string>;
  from: number;
  to: number;
}

type Gather = Extract<Call, { gather: Question }>;

/** How long answers are cached, where they are. */
export const cacheSeconds = 900;

const isEstimate = (call: Call) => 'gather' in call && call.maxCredits === 0;
export const isSearchOfOne = (call: Call) => 'count' in call || isEstimate(call);

const keyOf = ({ filters = {}, split, collectionId }: Question): string =>
  collectionId ?? canonical({ ...filters, ...(split && { split: distinct(split) }) });

/** A part stands once, however often it is named. */
const distinct = (parts: Record<string, unknown>[]) => [
  ...new Map(parts.map((part) => [canonical(part), part])).values(),
];

const partsOf = ({ filters = {}, split, collectionId }: Question): string[] => [
  ...new Set(split?.map((part) => questionOf({ ...filters, ...part })) ?? [questionOf(filters, collectionId)]),
];

/** What a service sent, kept apart from the server, and what follows from it for what the server says. */
export class GatheringBooks {
  readonly problems: Problem[] = [];
  clocksJumped = false;
  readonly #service: GatheringService;
  readonly #ads = new Map<string, Version[]>();
  /** Which calls a page may be for. */
  readonly #askers = new Map<ServedPage, MadeCall[]>();
  readonly #readings = new Map<string, Reading>();
  readonly #runs = new Map<string, Run>();
  /** Parts of a question that was begun anew, of which nothing was read since. */
  readonly #begunAnew = new Set<string>();
  readonly #completed: Completed[] = [];
  #readingsBegun = 0;
  readonly #budget: number | undefined;
  readonly #accounts = new Map<string, { spent: number; maxCharged: number; at: number }>();
  readonly #kept = new Set<string>();
  #checked = 0;

  constructor(service: GatheringService, budget?: number) {
    this.#service = service;
    this.#budget = budget;
    service.onArrival = (ads, arrived) => {
      for (const ad of ads) this.#arrive(ad, arrived);
    };
  }

  /** A page was asked for, while some calls were made. */
  asked(page: ServedPage, askers: MadeCall[], made: MadeCall[]): void {
    // Counts and estimates search for one ad, several at once, and read nothing.
    const isSearch = page.limit === 1 && made.some(({ call }) => isSearchOfOne(call));
    this.#askers.set(page, isSearch ? [] : askers);
  }

  check(happened: Happened): void {
    const pages = this.#service.pages.slice(this.#checked);
    this.#checked = this.#service.pages.length;
    const begun = this.#checkPaidOnce(pages, happened);
    this.#checkCharges(pages, happened);
    this.#checkBudget(pages);
    this.#checkStored(happened.after);
    for (const made of happened.calls) {
      if ('gather' in made.call) this.#checkGathering(made, made.call, happened, begun);
      else if ('count' in made.call) this.#checkCount(made, happened);
      else this.#checkAge(made);
    }
    this.#checkComplete(happened.after);
    this.#remember(happened.after);
  }

  /** Whether a key was served anything by a process that knew that it was rejected; and again once it was accepted. */
  checkVerdict({ name, isError, isRefused, wasRejected, isRefusing }: Verdict): void {
    if (isRefusing && !isError) this.#fail('a rejected key is served nothing', `${name} answered`);
    if (isRefused && !wasRejected) this.#fail('a rejected key is served nothing', `${name} refused an accepted key`);
  }

  /** The ads that changed most often. */
  mostChanged(count: number): { id: string }[] {
    const byVersions = [...this.#ads].sort(([, left], [, right]) => right.length - left.length);
    return byVersions.slice(0, count).map(([id]) => ({ id }));
  }

  /** Whether the tables hold what came last, and before it what came before. */
  checkNewest({ ads = [], ad_versions: versions = [], evicted }: DatasetView): void {
    const fails = (seen: string) => this.#fail('newest is what came last', seen);
    for (const row of ads) {
      const known = this.#ads.get(row.id) ?? [];
      const newest = known.at(-1)?.fields;
      if (evicted.ads > 0) {
        if (!known.some(({ fields }) => fields.headline === row.headline)) fails(`${row.headline} was never sent`);
        continue;
      }
      const [expected, found] = [textOf(newest), textOf(row)];
      if (expected !== found) fails(`${found} in place of ${expected}`);
      const earlier = known.slice(-11, -1).map(({ fields }) => copyOf(fields));
      const kept = versions.filter(({ id }) => id === row.id).map(({ json }) => copyOf(JSON.parse(json ?? '{}')));
      if (`${earlier}` !== `${kept}`) fails(`versions ${kept} before ${found} in place of ${earlier}`);
    }
    const missing = evicted.ads > 0 ? [] : [...this.#ads.keys()].filter((id) => !ads.some((row) => row.id === id));
    if (missing.length > 0) fails(`${missing} came and is not kept`);
  }

  checkSeen(id: string, ad: Item): void {
    const [expected, seen] = [copyOf(this.#ads.get(id)?.at(-1)?.fields), copyOf(ad)];
    if (seen !== expected) this.#fail('newest is what came last', `get_ad seen: ${seen} in place of ${expected}`);
  }

  #arrive(ad: AdFields, arrived: number): void {
    const versions = this.#ads.get(ad.id) ?? [];
    this.#ads.set(ad.id, versions);
    const newest = versions.at(-1);
    const fields = { ...newest?.fields, ...ad };
    if (newest && copyOf(fields) === copyOf(newest.fields)) newest.fields = fields;
    else versions.push({ fields, since: arrived });
  }

  #fail(promise: PromiseName, seen: string): void {
    this.problems.push({ promise, seen });
  }

  #gathersOf(page: ServedPage): Gather[] {
    const askers = this.#askers.get(page) ?? [];
    return askers.flatMap(({ call }) =>
      'gather' in call && !isEstimate(call) && partsOf(call.gather).includes(page.question ?? '') ? call : [],
    );
  }

  /** Whether a call with `fresh` may begin anew, by what was promised; or has to. */
  #mayBeginAnew(gather: Question, now: number): 'must' | 'may' | 'must not' {
    const run = this.#runs.get(keyOf(gather));
    const parts = partsOf(gather);
    const readings = parts.map((part) => this.#readings.get(part));
    // What a call of several parts began with `fresh`, other calls go on with.
    if (!run?.fresh && !run?.hasEnded && readings.some((reading) => reading?.begunFresh)) return 'may';
    if (run === undefined) return 'must';
    const isAsItWas = parts.every((part) => run.readings.get(part) === this.#readings.get(part)?.number);
    // Where the service no longer takes its cursor, or its pages repeat, nothing is to be had by going on.
    const isStuck = readings.some(
      (reading) => reading && (reading.idle >= 3 || !this.#service.takes(reading.tip.next)),
    );
    if (!isAsItWas || isStuck || run.hasEnded === undefined) return 'may';
    if (!run.fresh || run.hasEnded) return 'must';
    // Nobody heard of the end, or other questions brought it.
    if (this.clocksJumped || this.#isRead(gather, run)) return 'may';
    return now - run.at >= dayMs ? 'must' : 'must not';
  }

  /** Follows what was paid. Returns the questions whose first page was asked for, and what `fresh` had to do before. */
  #checkPaidOnce(pages: readonly ServedPage[], { calls, after }: Happened): Begun {
    const first = new Set<string>();
    const begun = new Set<string>();
    const rules = new Map(
      calls.flatMap(({ call, at }, number) => {
        if (!('gather' in call)) return [];
        // One that was made meanwhile may have waited for another, and take what that read.
        return [[call, number === 0 ? this.#mayBeginAnew(call.gather, at) : 'may'] as const];
      }),
    );
    // Which of two calls began a question anew is not known; that no other page is paid twice is.
    const hasSeveral = rules.size > 1 && [...rules.keys()].some(({ fresh }) => fresh);
    const mayBeAnyOf = ({ cursor }: ServedPage) => hasSeveral && cursor === null;
    for (const page of pages) {
      const gathers = this.#gathersOf(page);
      const { question } = page;
      if (question === undefined || gathers.length === 0) continue;
      if (page.cursor === null) first.add(question);
      const fresh = gathers.filter((one) => one.fresh);
      const isFirst = page.cursor === null;
      const isRepeated = isFirst
        ? this.#readings.has(question) && !this.#begunAnew.has(question)
        : this.#service.pages.some((other) => {
            const isEarlier = other !== page && other.question === question && other.cursor === page.cursor;
            return isEarlier && other.arrived > 0 && this.#gathersOf(other).length > 0;
          });
      const mayBegin = (one: Gather) => isFirst && rules.get(one) !== 'must not' && !begun.has(keyOf(one.gather));
      const anew = fresh.filter(mayBegin);
      for (const one of anew) {
        begun.add(keyOf(one.gather));
        for (const part of partsOf(one.gather)) this.#begunAnew.add(part);
        this.#runs.delete(keyOf(one.gather));
      }
      if (isRepeated && anew.length === 0 && !mayBeAnyOf(page) && !hasEvicted(after))
        this.#fail('a page is paid once', `the page at ${page.cursor} of ${question} was paid again`);
      if (page.arrived === 0) continue;
      if (page.cursor === null) {
        const begunFresh = this.#begunAnew.has(question) || fresh.length > 0;
        const number = ++this.#readingsBegun;
        this.#readings.set(question, { number, begunFresh, tip: page, ids: new Set(), idle: 0 });
        // The first pages may all be of the other call, which was made before.
        if (!hasSeveral) this.#begunAnew.delete(question);
      }
      const reading = this.#readings.get(question);
      if (reading && (page.cursor === null || reading.tip.next === page.cursor)) turnTo(page, reading);
      for (const one of gathers) this.#follow(one, page.asked);
    }
    return { first, rules };
  }

  /** A gathering went on. */
  #follow({ gather, fresh }: Gather, at: number): void {
    const key = keyOf(gather);
    const begun = { fresh, at, after: this.#readingsBegun - 1, hasEnded: false };
    const run: Run = this.#runs.get(key) ?? { ...begun, readings: new Map() };
    this.#runs.set(key, run);
    for (const part of partsOf(gather)) {
      const reading = this.#readings.get(part);
      if (reading) run.readings.set(part, reading.number);
    }
  }

  /** Whether all parts are read to the end; with `fresh`, since then. */
  #isRead(gather: Question, { fresh, after }: Run): boolean {
    const readings = partsOf(gather).map((part) => this.#readings.get(part));
    return readings.every((reading) => reading?.tip.next === null && (!fresh || reading.number > after));
  }

  #checkCharges(pages: readonly ServedPage[], { calls, isBroken }: Happened): void {
    const results = calls.map(({ result }) => result);
    if (isBroken || results.some((result) => result === undefined || result.isError)) return;
    const stated = results.map((result) => result?.data.receipt.charged);
    const charged = pages.reduce((sum, page) => sum + page.charged, 0);
    const sum = stated.reduce<number>((all, one) => all + (one ?? Number.NaN), 0);
    if (sum !== charged) this.#fail('charges agree', `${charged} charged, ${stated.join(' + ')} stated`);
  }

  /** One call may cost more than was expected of it: the first, or the largest so far. */
  #checkBudget(pages: readonly ServedPage[]): void {
    if (this.#budget === undefined) return;
    for (const { account, charged, asked } of pages) {
      const before = this.#accounts.get(account);
      const isOver = before === undefined || asked - before.at >= 30 * dayMs;
      if (charged === 0) continue;
      const spent = charged + (isOver ? 0 : before.spent);
      const maxCharged = Math.max(charged, isOver ? 0 : before.maxCharged);
      this.#accounts.set(account, { spent, maxCharged, at: asked });
      if (spent >= this.#budget + maxCharged)
        this.#fail('a budget is kept', `${spent} spent of ${this.#budget}, ${maxCharged} at once`);
    }
  }

  #checkStored(after: DatasetView): void {
    const kept = own(after).map(({ id }) => id);
    const missing = [...this.#kept].filter((id) => !kept.includes(id));
    if (missing.length > 0 && !hasEvicted(after)) this.#fail('what was paid for stays', `${missing.join()} is gone`);
    for (const id of kept) this.#kept.add(id);
  }

  /** An answer that was not asked for now is one that came lately, whatever the clocks say. */
  #checkAge({ at, result }: MadeCall): void {
    const { receipt = {}, items = [], ad } = result?.data ?? {};
    if (!('cached' in receipt && receipt.cached)) return;
    const ids = ad ? [ad.id] : items.map(({ id }) => id);
    const isLate = (page: ServedPage) => page.arrived > 0 && page.at >= at - 1000 * cacheSeconds - 1000;
    if (!this.#service.pages.some((page) => isLate(page) && ids.every((id) => page.ids.includes(id))))
      this.#fail('an answer is cached for its time', `${ids.length} ads were served from longer ago`);
  }

  #checkGathering({ from, result }: MadeCall, call: Gather, { calls, isBroken, after }: Happened, begun: Begun): void {
    if (result === undefined || result.isError || result.data.gathering === null) return;
    const data = result.data as unknown as Stated;
    const row = after.gatherings?.find(({ id }) => id === data.gathering);
    const isAlone = calls.length === 1;
    const fails = (seen: string) => this.#fail('figures agree', `${keyOf(call.gather)}: ${seen}`);
    if (row === undefined) {
      if (!hasEvicted(after)) fails(`gathering ${data.gathering} is not kept`);
      return;
    }
    const run = this.#runs.get(keyOf(call.gather));
    if (run && !isAlone) run.hasEnded = undefined;
    else if (run && data.stopped === 'end') run.hasEnded = true;
    const first = partsOf(call.gather)[0] ?? '';
    if (call.fresh && isAlone && begun.rules.get(call) === 'must' && !begun.first.has(first))
      this.#fail('newest is what came last', `fresh did not begin ${keyOf(call.gather)} anew`);
    if (!isAlone) return;
    const ids = idsOf(data.gathering, after);
    if (data.read !== ids.size) fails(`read ${data.read} in place of ${ids.size}`);
    if (Boolean(row.complete) !== data.complete) fails(`complete ${data.complete} and ${row.complete}`);
    if (row.found !== data.found) fails(`found ${data.found} and ${row.found}`);
    if (row.gatheredAt !== data.gatheredAt) fails(`gatheredAt ${data.gatheredAt} and ${row.gatheredAt}`);
    if (data.stopped === 'end' && !data.complete && !hasEvicted(after)) fails('not complete at the end');
    if (hasEvicted(after)) return;
    const read = [...ids].map((id) => ({ id, versions: this.#ads.get(id) ?? [] }));
    const isNew = ({ versions }: (typeof read)[number]) => (versions[0]?.since ?? 0) > from;
    const added = read.filter(isNew).length;
    if (data.added !== added) fails(`added ${data.added} in place of ${added}`);
    const updated = read.filter((ad) => !isNew(ad) && (ad.versions.at(-1)?.since ?? 0) > from).length;
    if (data.updated !== updated) fails(`updated ${data.updated} in place of ${updated}`);
    const last = data.complete
      ? this.#completed.findLast(({ id, key }) => key === keyOf(call.gather) && id !== data.gathering)
      : undefined;
    if (isBroken && last === undefined) return;
    this.#checkChanges(data, ids, last, fails);
  }

  /** What is stated of changes since the last complete gathering of the same question. */
  #checkChanges(data: Stated, ids: Set<string>, last: Completed | undefined, fails: (seen: string) => void): void {
    const gone = last && [...last.ids].filter((id) => !ids.has(id)).sort();
    if (JSON.stringify(data.gone && [...data.gone].sort()) !== JSON.stringify(gone ?? null))
      fails(`gone ${data.gone} in place of ${gone}`);
    if (Boolean(data.sinceLast) !== Boolean(last))
      fails(`sinceLast ${JSON.stringify(data.sinceLast)} after ${last?.id}`);
    if (last === undefined || data.sinceLast === undefined) return;
    const fresh = [...ids].filter((id) => !last.ids.has(id)).length;
    if (data.sinceLast.fresh !== fresh) fails(`sinceLast.fresh ${data.sinceLast.fresh} in place of ${fresh}`);
    if (data.sinceLast.gone !== gone?.length) fails(`sinceLast.gone ${data.sinceLast.gone}`);
    const versionsOf = (id: string) => this.#ads.get(id) ?? [];
    const asOf = (id: string, arrived: number) =>
      copyOf(versionsOf(id).findLast(({ since }) => since <= arrived)?.fields);
    // An ad that changed while the last one was made, or changed back since, may count or not.
    const surely = [...ids].filter((id) => {
      const now = copyOf(versionsOf(id).at(-1)?.fields);
      return last.ids.has(id) && now !== asOf(id, last.to) && (versionsOf(id).at(-1)?.since ?? 0) > last.to;
    });
    const perhaps = [...ids].filter((id) => {
      const versions = versionsOf(id);
      return versions.length > 1 && (versions.at(-1)?.since ?? 0) > last.from;
    });
    const { updated } = data.sinceLast;
    if (updated < surely.length || updated > perhaps.length)
      fails(`sinceLast.updated ${updated}, not ${surely.length} to ${perhaps.length}`);
  }

  #checkCount({ call, at, result }: MadeCall, { after, calls }: Happened): void {
    if (!('count' in call) || result === undefined || result.isError) return;
    if (calls.length > 1 || hasEvicted(after)) return;
    const { total, gatheredAt, counts } = result.data as unknown as Counted;
    const counted = [
      { filters: call.count, total, gatheredAt },
      ...counts.map((count) => ({ ...count, filters: { ...call.count, ...count.filters } })),
    ];
    for (const one of counted) {
      if (one.gatheredAt === undefined) continue;
      const rows = after.gatherings?.filter(({ filters }) => filters === canonical(one.filters)) ?? [];
      const row = rows.find((row) => row.complete && row.gatheredAt === one.gatheredAt);
      const age = at - Date.parse(one.gatheredAt);
      if (row === undefined || one.total === null || one.total < (row.read ?? 0))
        this.#fail('figures agree', `counted ${one.total} of a gathering ${JSON.stringify(row)}`);
      else if (!this.clocksJumped && (age < 0 || age > dayMs))
        this.#fail('figures agree', `counted from a gathering of ${one.gatheredAt}`);
    }
  }

  /** Every gathering is what the service listed from a first page on; a complete one to its last, and all of it held. */
  #checkComplete(after: DatasetView): void {
    const held = new Set(after.ads?.map(({ id }) => id));
    for (const row of own(after)) {
      const ids = idsOf(row.id, after);
      const isComplete = Boolean(row.complete);
      const name = `${row.id} of ${row.filters ?? row.collectionId}`;
      if (isComplete && [...ids].some((id) => !held.has(id)))
        this.#fail('complete means held', `${name} is complete without ${[...ids].filter((id) => !held.has(id))}`);
      const listed = this.#listed(row, isComplete);
      if (hasEvicted(after) && !isComplete) {
        if (row.found !== null && !listed.some(({ found }) => found === row.found))
          this.#fail('figures agree', `${name}, of which something was evicted: found ${row.found}`);
        continue;
      }
      const fitting = listed.filter(({ ids: all }) => isSame(all, ids));
      if (fitting.length > 0) this.#checkRow(row, fitting);
      else this.#fail('complete means held', `${name} with ${ids.size} ads is not what was listed`);
    }
  }

  #checkRow(row: GatheringRow, fitting: readonly Listed[]): void {
    const fails = (seen: string) => this.#fail('figures agree', `${row.filters ?? row.collectionId}: ${seen}`);
    if (!fitting.some(({ found, isDoubtful }) => found === row.found || isDoubtful))
      fails(`found ${row.found} in place of ${[...new Set(fitting.map(({ found }) => found))].join(' or ')}`);
    if (row.found !== null && row.found < (row.read ?? 0) && row.complete)
      fails(`${row.read} read of ${row.found} found`);
    if (this.clocksJumped || !row.complete) return;
    const at = Date.parse(row.gatheredAt ?? '');
    // A page that was kept is read up to 15 minutes later.
    if (!fitting.some(({ oldest }) => at >= oldest && at <= oldest + 901_000))
      fails(`gatheredAt ${row.gatheredAt} in place of ${new Date(fitting[0]?.oldest ?? 0).toISOString()}`);
  }

  /** What the service listed in answer to a question, in all ways in which its pages followed each other. */
  #listed(row: GatheringRow, isComplete: boolean): Listed[] {
    const parts = row.filters === null ? [row.collectionId ?? ''] : partsOf(questionIn(row.filters));
    let all: Listed[] = [{ ...unread, found: 0 }];
    for (const part of parts) {
      const ways = this.#service.listed(part, isComplete);
      all = all.flatMap((before) => ways.map((way) => joined(before, way)));
    }
    return all;
  }

  #remember(after: DatasetView): void {
    for (const row of own(after)) {
      if (!row.complete || this.#completed.some(({ id }) => id === row.id)) continue;
      const ids = idsOf(row.id, after);
      const fitting = this.#listed(row, true).filter((listed) => isSame(listed.ids, ids));
      const from = Math.min(...fitting.map((listed) => listed.from));
      const to = Math.max(...fitting.map((listed) => listed.to));
      const key = row.filters === null ? (row.collectionId ?? '') : keyOf(questionIn(row.filters));
      this.#completed.push({ id: row.id, key, ids, from, to });
    }
  }
}

function turnTo(page: ServedPage, reading: Reading): void {
  const before = reading.ids.size;
  for (const id of page.ids) reading.ids.add(id);
  reading.idle = reading.ids.size > before ? 0 : reading.idle + 1;
  reading.tip = page;
}

interface Begun {
  first: Set<string>;
  rules: Map<Gather, 'must' | 'may' | 'must not'>;
}

/** A call that ended, and whether its process knew of a rejection when it began. */
interface Verdict {
  name: string;
  isError: boolean;
  isRefused: boolean;
  wasRejected: boolean;
  isRefusing: boolean;
}

/** The result of `gather_ads`. */
interface Stated {
  gathering: string;
  found: number | null;
  read: number;
  added: number;
  updated: number;
  gone: string[] | null;
  complete: boolean;
  stopped: string;
  gatheredAt: string;
  sinceLast?: { fresh: number; updated: number; gone: number };
}

interface Counted {
  total: number | null;
  gatheredAt?: string;
  counts: { filters: Record<string, unknown>; total: number | null; gatheredAt?: string }[];
}

/** The gatherings that a schedule made. */
const own = ({ gatherings = [] }: DatasetView) => gatherings.filter(({ id }) => !id.startsWith(otherGatherings));
/** How the names of those begin that a schedule did not ask for. */
export const otherGatherings = 'other-';

const hasEvicted = ({ evicted }: DatasetView) => evicted.ads + evicted.gatherings > 0;

const joined = (left: Listed, right: Listed): Listed => ({
  ids: [...new Set([...left.ids, ...right.ids])],
  found: left.found === null || right.found === null ? null : left.found + right.found,
  isDoubtful: left.isDoubtful || right.isDoubtful,
  oldest: Math.min(left.oldest, right.oldest),
  from: Math.min(left.from, right.from),
  to: Math.max(left.to, right.to),
});

function questionIn(filters: string): Question {
  const { split, ...rest } = JSON.parse(filters) as Record<string, unknown> & { split?: Record<string, unknown>[] };
  return { filters: rest, ...(split && { split }) };
}

const idsOf = (gathering: string, { gathered = [] }: DatasetView): Set<string> =>
  new Set(gathered.filter(({ gatheringId }) => gatheringId === gathering).map(({ adId }) => adId ?? ''));

const isSame = (left: readonly string[], right: ReadonlySet<string>) =>
  left.length === right.size && left.every((id) => right.has(id));

interface Copy {
  headline?: unknown;
  body?: unknown;
  lastSeenAt?: unknown;
}

const copyOf = ({ headline = null, body = null }: Copy = {}): string =>
  `"${String(headline).replace(/\.+$/, '')}, ${body}"`;
const textOf = (ad: Copy = {}): string => `${copyOf(ad)} seen ${String(ad.lastSeenAt).slice(0, 10)}`;
