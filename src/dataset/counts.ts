import * as z from 'zod';
import type { CreditLimit } from '../api/call.ts';
import type { Api } from '../api/client.ts';
import { type RunDates, type SeenDays, seenDays } from '../present/dates.ts';
import { serviceNotes } from '../present/lists.ts';
import { type DatasetContents, idKey } from '../state/dataset.ts';
import { totalOf } from './gather.ts';
import { gatheringsOf } from './gatherings.ts';

type Filters = Readonly<Record<string, unknown>>;

export interface AdCount {
  total: number | null;
  /** When that was so, in milliseconds. */
  at: number;
  gatheredAt?: string;
  notes?: string[];
  lastSeen?: SeenDays;
  /** The values of `countBy`, from a service that tells them. */
  values?: NonNullable<ReturnType<typeof valueCounts>>;
}

export interface Counting {
  api: Api;
  callBudget: CreditLimit;
  now: number;
  fresh: boolean;
  contents: DatasetContents | undefined;
}

/** The age of a gathering that answers in place of a search, in milliseconds: a day. */
const maxAge = 86_400_000;

/** Counts by a recent complete gathering if there is one, otherwise by one search. */
export async function countOf(filters: Filters, { api, callBudget, now, fresh, contents }: Counting): Promise<AdCount> {
  const gathered = contents && gatheredCount(filters, contents, now);
  return gathered ?? searchedCount(await api.searchAds({ body: { ...filters, limit: 1 }, fresh, callBudget }), now);
}

export const isGathered = (filters: Filters, { contents, now }: Pick<Counting, 'contents' | 'now'>): boolean =>
  contents !== undefined && gatheredCount(filters, contents, now) !== undefined;

/** The same for the values of a key, by one search of a service that counts them. */
export async function countBy(key: string, filters: Filters, { api, callBudget, now, fresh }: Counting) {
  const answer = await api.searchAds({ body: { ...filters, limit: 1, countBy: key }, fresh, callBudget });
  const values = valueCounts((answer.raw as { counts?: unknown }).counts);
  return { ...searchedCount(answer, now), ...(values && { values }) };
}

type SearchAnswer = Awaited<ReturnType<Api['searchAds']>>;

function searchedCount(answer: SearchAnswer, now: number): AdCount {
  const { raw, receipt } = answer;
  const lastSeen = seenDays((raw as { items: readonly RunDates[] }).items);
  return {
    total: totalOf(answer) ?? null,
    at: now - (receipt.age ?? 0),
    ...serviceNotes(raw),
    ...(lastSeen && { lastSeen }),
  };
}

/** `none`: ads without a value. */
const ValueCounts = z.object({ values: z.array(z.unknown()), none: z.int().min(0) });
const ValueCount = z.object({ value: z.union([z.string(), z.boolean()]), total: z.int().min(0) });

/** The counts that the local library tells; undefined for any other service. */
function valueCounts(counts: unknown) {
  const { data } = ValueCounts.safeParse(counts);
  return data && { ...data, values: data.values.flatMap((one) => ValueCount.safeParse(one).data ?? []) };
}

function gatheredCount(filters: Filters, contents: DatasetContents, now: number): AdCount | undefined {
  // The clock of one from the future was wrong, so its age is unknown; clocks of replicas may be a minute apart.
  const isRecent = (age: number) => age >= -sameTime && age <= maxAge;
  const gathering = gatheringsOf(contents, { filters }).find(
    (one) => isRecent(now - one.gatheredAt) && one.complete,
  );
  if (gathering === undefined) return undefined;
  const { gatheredAt, adIds, found } = gathering;
  const needsDates = Object.hasOwn(filters, 'active');
  const ads = needsDates ? contents.ads.filter(({ id }) => adIds.has(idKey(id))) : [];
  const lastSeen = seenDays(ads.map(({ json }) => JSON.parse(Buffer.from(json).toString()) as RunDates));
  // Ads that were read exist, even if the last page stated a smaller total.
  const total = Math.max(found ?? 0, adIds.size);
  return { total, at: gatheredAt, gatheredAt: new Date(gatheredAt).toISOString(), ...(lastSeen && { lastSeen }) };
}

/** Counts of one call are of one time, as far as a reader cares, if they were made within a minute. */
const sameTime = 60_000;

/** What the parts leave of a total; undefined where one is not known, or they are of different times, or overlap. */
export function withoutParts(total: AdCount, parts: readonly AdCount[]): number | undefined {
  if (total.total === null || parts.some((part) => Math.abs(part.at - total.at) > sameTime)) return undefined;
  const remaining = parts.reduce((rest, part) => rest - (part.total ?? Number.NaN), total.total);
  return remaining >= 0 ? remaining : undefined;
}
