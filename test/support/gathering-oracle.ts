import { canonical } from '../../src/api/json.ts';
import type { Row } from '../../src/dataset/tables.ts';
import type { Call, Question } from './gathering-schedule.ts';
import type { AdFields, GatheringService, ServedPage } from './gathering-service.ts';
import type { Result } from './server.ts';

export interface DatasetView {
  ads: (Row<'ads'> & { id: string })[];
  ad_versions?: Row<'ad_versions'>[];
  gatherings?: (Row<'gatherings'> & { id: string })[];
  gathered?: Row<'gathered'>[];
}

export interface MadeCall {
  call: Call;
  /** The last answer that had arrived when it began. */
  from: number;
  at: number;
  ended?: Promise<void>;
  result?: Result;
}

/** One step: a call, and the calls that were made while it ran. */
interface Happened {
  calls: MadeCall[];
  /** A caller left, or an answer was lost. */
  isBroken: boolean;
  after: DatasetView;
}

interface Listed {
  ids: string[];
  found: number | null;
  /** When the last page arrived; of several parts, the earliest of these. */
  oldest: number;
}

interface Completed {
  id: string;
  key: string;
  ids: Set<string>;
}

type Gather = Extract<Call, { gather: Question }>;

export const isEstimate = (call: Call) => 'gather' in call && call.maxCredits === 0;

export const cacheSeconds = 900;

const keyOf = ({ filters = {}, split, collectionId }: Question): string =>
  collectionId ?? canonical({ ...filters, ...(split && { split: split.filter(isFirstOfItsKind) }) });

const isFirstOfItsKind = (part: object, index: number, all: object[]) =>
  all.findIndex((other) => canonical(other) === canonical(part)) === index;

const partsOf = ({ filters = {}, split, collectionId }: Question): string[] =>
  collectionId ? [collectionId] : [...new Set((split ?? [{}]).map((part) => canonical({ ...filters, ...part })))];

/** Follows what the service sent, apart from the server, and derives what the server must state. */
export class GatheringOracle {
  readonly problems: string[] = [];
  clocksJumped = false;
  readonly #service: GatheringService;
  /** The versions of each ad, oldest first, with the answer that brought each. */
  readonly #ads = new Map<string, { fields: AdFields; since: number }[]>();
  readonly #askers = new Map<ServedPage, MadeCall[]>();
  /** The pages that gatherings read, but for first ones of parts that have begun anew since. */
  readonly #read = new Set<string>();
  readonly #completed: Completed[] = [];
  readonly #stored = new Set<string>();
  #checked = 0;

  constructor(service: GatheringService) {
    this.#service = service;
    service.onArrival = (ads, arrived) => {
      for (const ad of ads) this.#addVersion(ad, arrived);
    };
  }

  /** Records a page that was requested during some calls. An estimate searches for one ad and reads nothing. */
  addRequest(page: ServedPage, askers: MadeCall[], made: MadeCall[]): void {
    const isSearch = page.limit === 1 && made.some(({ call }) => isEstimate(call));
    this.#askers.set(page, isSearch ? [] : askers);
  }

  check(happened: Happened): void {
    const pages = this.#service.pages.slice(this.#checked);
    this.#checked = this.#service.pages.length;
    this.#checkPaidOnce(pages, happened);
    this.#checkCharges(pages, happened);
    for (const made of happened.calls)
      if ('gather' in made.call) this.#checkResult(made, made.call, happened);
      else this.#checkAge(made);
    this.#checkGatherings(happened.after);
    this.#checkAds(happened.after);
  }

  #addVersion(ad: AdFields, arrived: number): void {
    const versions = this.#ads.get(ad.id) ?? [];
    this.#ads.set(ad.id, versions);
    const newest = versions.at(-1);
    const fields = { ...newest?.fields, ...ad };
    if (newest && copyOf(fields) === copyOf(newest.fields)) newest.fields = fields;
    else versions.push({ fields, since: arrived });
  }

  #gathersOf(page: ServedPage): Gather[] {
    const calls = (this.#askers.get(page) ?? []).map(({ call }) => call);
    return calls.filter(
      (call): call is Gather =>
        'gather' in call && !isEstimate(call) && partsOf(call.gather).includes(page.question ?? ''),
    );
  }

  /** No page is paid twice, but for a gathering that begins anew, which a call with `fresh` may do. */
  #checkPaidOnce(pages: readonly ServedPage[], { calls }: Happened): void {
    const begun = new Set<Gather>();
    const all = calls.flatMap(({ call }) => ('gather' in call ? [call] : []));
    // Which of two calls began a question anew is not known.
    const isUnclear = all.length > 1 && all.some(({ fresh }) => fresh);
    for (const page of pages) {
      const gathers = this.#gathersOf(page);
      const { question, cursor } = page;
      if (gathers.length === 0) continue;
      const isFirst = cursor === null;
      for (const one of gathers.filter((one) => isFirst && one.fresh && !begun.has(one))) {
        begun.add(one);
        for (const part of partsOf(one.gather)) this.#read.delete(`${part} null`);
      }
      const name = `${question} ${cursor}`;
      if (this.#read.has(name) && !(isUnclear && isFirst)) this.problems.push(`the page ${name} was paid again`);
      // The first pages may all be for the other call.
      if (page.arrived > 0 && !(isUnclear && isFirst)) this.#read.add(name);
    }
  }

  #checkCharges(pages: readonly ServedPage[], { calls, isBroken }: Happened): void {
    const results = calls.map(({ result }) => result);
    if (isBroken || results.some((result) => result === undefined || result.isError)) return;
    const stated = results.reduce((sum, result) => sum + (result?.data.receipt.charged ?? Number.NaN), 0);
    const charged = pages.reduce((sum, page) => sum + page.charged, 0);
    if (stated !== charged) this.problems.push(`${charged} charged, ${stated} stated`);
  }

  /** An answer without a request is one that arrived lately, by the clock of its process: after that was set, it may be older. */
  #checkAge({ at, result }: MadeCall): void {
    const { receipt = {}, items = [], ad } = result?.data ?? {};
    if (this.clocksJumped || !('cached' in receipt && receipt.cached)) return;
    const ids = ad ? [ad.id] : items.map(({ id }) => id);
    const isLate = (page: ServedPage) => page.arrived > 0 && page.at >= at - 1000 * cacheSeconds - 1000;
    if (!this.#service.pages.some((page) => isLate(page) && ids.every((id) => page.ids.includes(id))))
      this.problems.push(`${ids.length} ads came from a cached answer that had expired`);
  }

  /** What a result states agrees with the tables and with what the service sent. */
  #checkResult({ from, result }: MadeCall, call: Gather, { calls, isBroken, after }: Happened): void {
    if (result === undefined || result.isError || result.data.gathering === null) return;
    const stated = result.data as unknown as Stated;
    const row = after.gatherings?.find(({ id }) => id === stated.gathering);
    const key = keyOf(call.gather);
    const differs = (what: string, said: unknown, expected: unknown) =>
      this.problems.push(`${key}: ${what} ${said} in place of ${expected}`);
    if (row === undefined) return void differs('gathering', stated.gathering, 'one that is stored');
    if (calls.length > 1) return;
    const ids = idsIn(stated.gathering, after);
    const versions = [...ids].map((id) => this.#ads.get(id) ?? []);
    const added = versions.filter(([first]) => (first?.since ?? 0) > from).length;
    const changed = versions.filter((all) => (all.at(-1)?.since ?? 0) > from).length;
    const { found, gatheredAt, complete, read } = stated;
    const expected = { read: ids.size, added, updated: changed - added, found: row.found, gatheredAt: row.gatheredAt };
    for (const [name, value] of Object.entries(expected))
      if (value !== stated[name as keyof typeof expected]) differs(name, stated[name as keyof typeof expected], value);
    if (Boolean(row.complete) !== complete) differs('complete', complete, row.complete);
    if (stated.stopped === 'end' && !complete) differs('complete', false, `${read} of ${found} at ${gatheredAt}`);
    const last = complete
      ? this.#completed.findLast((one) => one.key === key && one.id !== stated.gathering)
      : undefined;
    if (!isBroken || last) this.#checkChanges(stated, ids, last, differs);
  }

  /** What is stated of changes since the last complete gathering of the same question. */
  #checkChanges(
    { gone, sinceLast }: Stated,
    ids: Set<string>,
    last: Completed | undefined,
    differs: (what: string, said: unknown, expected: unknown) => void,
  ): void {
    const expected = last && [...last.ids].filter((id) => !ids.has(id)).sort();
    if (`${gone && [...gone].sort()}` !== `${expected ?? null}`) differs('gone', gone, expected);
    if (Boolean(sinceLast) !== Boolean(last)) differs('sinceLast', sinceLast, last?.id);
    if (last === undefined || sinceLast === undefined) return;
    const fresh = [...ids].filter((id) => !last.ids.has(id)).length;
    if (sinceLast.fresh !== fresh) differs('sinceLast.fresh', sinceLast.fresh, fresh);
  }

  /** Every gathering is what the service listed from a first page on; a complete one to the last, with all ads held. */
  #checkGatherings({ ads, gatherings = [], ...rest }: DatasetView): void {
    const held = new Set(ads.map(({ id }) => id));
    for (const id of this.#stored)
      if (!gatherings.some((row) => row.id === id)) this.problems.push(`gathering ${id}, which was paid for, is gone`);
    for (const row of gatherings) {
      this.#stored.add(row.id);
      const { filters, collectionId, found, gatheredAt } = row;
      const ids = idsIn(row.id, rest);
      const isComplete = Boolean(row.complete);
      const name = `${row.id} of ${filters ?? collectionId}`;
      if (isComplete && [...ids].some((id) => !held.has(id))) this.problems.push(`${name} is complete without its ads`);
      const question = filters === null ? { collectionId: collectionId ?? '' } : questionIn(filters);
      const chains = this.#listed(partsOf(question), isComplete).filter(
        (listed) => listed.ids.length === ids.size && listed.ids.every((one) => ids.has(one)),
      );
      if (chains.length === 0) this.problems.push(`${name} with ${ids.size} ads is not what was listed`);
      // A service whose ads vanish states fewer than it listed.
      else if (!chains.some((one) => one.found === found || (one.found !== null && one.found < ids.size)))
        this.problems.push(`${name}: found ${found} in place of ${chains.map((one) => one.found)}`);
      if (!isComplete || chains.length === 0) continue;
      const at = Date.parse(gatheredAt ?? '');
      // A cached page may be read as long after it arrived as it is cached.
      if (!this.clocksJumped && !chains.some(({ oldest }) => at >= oldest && at <= oldest + 1000 * cacheSeconds + 1000))
        this.problems.push(`${name}: gatheredAt ${gatheredAt}`);
      if (this.#completed.some(({ id }) => id === row.id)) continue;
      this.#completed.push({ id: row.id, key: keyOf(question), ids });
    }
  }

  /** What the service listed, in all ways in which the pages of each part followed each other. */
  #listed([part, ...others]: string[], isComplete: boolean): Listed[] {
    if (part === undefined) return [{ ids: [], found: 0, oldest: Infinity }];
    const pages = this.#service.pages.filter(({ question, arrived }) => question === part && arrived > 0);
    const chains = pages.flatMap((last): Listed[] => {
      if (isComplete && last.next !== null) return [];
      const chain = [last];
      for (let first = last; first.cursor !== null; chain.unshift(first)) {
        const before = pages.find(({ next }) => next === first.cursor);
        if (before === undefined) return [];
        first = before;
      }
      const found = chain.findLast(({ total }) => total !== undefined)?.total ?? null;
      const ids = chain.flatMap((page) => page.ids);
      return [{ ids, found, oldest: last.at }];
    });
    if (!isComplete) chains.push({ ids: [], found: null, oldest: Infinity });
    return this.#listed(others, isComplete).flatMap((rest) =>
      chains.map((chain) => ({
        ids: [...new Set([...chain.ids, ...rest.ids])],
        found: chain.found === null || rest.found === null ? null : chain.found + rest.found,
        oldest: Math.min(chain.oldest, rest.oldest),
      })),
    );
  }

  /** The tables hold the newest version of every ad that arrived, and the versions before it. */
  #checkAds({ ads, ad_versions: versions = [] }: DatasetView): void {
    const rows = new Map(ads.map((row) => [row.id, row]));
    for (const [id, all] of this.#ads) {
      const [stored, newest] = [rows.get(id), all.at(-1)?.fields];
      const [seen, expected] = [stored && seenOf(stored), newest && seenOf(newest)];
      if (seen !== expected) this.problems.push(`ad ${seen} in place of ${expected}`);
      const earlier = all.slice(-11, -1).map(({ fields }) => copyOf(fields));
      const kept = versions.filter((row) => row.id === id).map(({ json }) => copyOf(JSON.parse(json ?? '{}')));
      if (`${earlier}` !== `${kept}`) this.problems.push(`versions ${kept} in place of ${earlier}`);
    }
  }
}

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
  sinceLast?: { fresh: number };
}

function questionIn(json: string): Question {
  const { split, ...filters } = JSON.parse(json) as Record<string, unknown> & { split?: Record<string, unknown>[] };
  return { filters, ...(split && { split }) };
}

const idsIn = (gathering: string, { gathered = [] }: Pick<DatasetView, 'gathered'>): Set<string> =>
  new Set(gathered.filter(({ gatheringId }) => gatheringId === gathering).map(({ adId }) => adId ?? ''));

interface Copy {
  headline?: unknown;
  body?: unknown;
  lastSeenAt?: unknown;
}

const copyOf = ({ headline = null, body = null }: Copy = {}): string => `"${headline}, ${body}"`;
const seenOf = (ad: Copy): string => `${copyOf(ad)} seen ${String(ad.lastSeenAt).slice(0, 10)}`;
