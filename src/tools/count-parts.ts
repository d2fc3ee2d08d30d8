import { totalOf } from '../dataset/ad-list.ts';
import { foundBy, gatheringsOf, isComplete } from '../dataset/gatherings.ts';
import { type Stop, stopOf } from '../dataset/stop.ts';
import { serviceNotes } from '../present/list-text.ts';
import type { DatasetContents } from '../state/dataset.ts';
import type { ToolContext } from './tool-context.ts';

type Filters = Record<string, unknown>;

/** How many ads match filters. */
export interface Count {
  filters: Filters;
  total: number | null;
  /** If the answer comes from a gathering: when that was made. */
  gatheredAt?: string;
  note?: string;
  /** What the service says about the number. */
  notes?: string[];
}

export interface Counted {
  total: Count;
  parts: Count[];
  stop: Stop | undefined;
}

interface CountRequest {
  filters: Filters;
  parts: readonly Filters[];
  maxCredits: number;
  fresh: boolean;
}

const atOnce = 4;
/** The age of a gathering that answers in place of a search, in milliseconds: a day. */
const maxAge = 86_400_000;

const ignored = 'the same as the total: perhaps the service ignored this key';
const allMissing = 'the same as the total: no ad has a value';

/** Counts all filters first, then each part: by a complete gathering if there is a recent one, else by one search. */
export async function countAll({ filters, parts, ...request }: CountRequest, context: ToolContext): Promise<Counted> {
  const count = await counter(request, context);
  const total = await count(filters);
  const counts: Count[] = parts.map((part) => ({ filters: part, total: null }));
  if (total.total === null) return { total, parts: counts, stop: undefined };

  let stop: Stop | undefined;
  let next = 0;
  const countNext = async () => {
    while (stop === undefined && next < parts.length) {
      const index = next++;
      const part = parts[index] ?? {};
      try {
        const counted = await count({ ...filters, ...part });
        const keys = Object.keys(part);
        const isSame = counted.total === total.total && counted.total !== 0 && keys.length > 0;
        const note = keys.every((key) => key === 'missing') ? allMissing : ignored;
        counts[index] = { ...counted, filters: part, ...(isSame && { note }) };
        if (counted.total === null) stop = { reason: 'error' };
      } catch (error) {
        const reason = stopOf(error, context);
        stop ??= reason;
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, countNext));
  return { total, parts: counts, stop };
}

async function counter({ maxCredits, fresh }: Omit<CountRequest, 'filters' | 'parts'>, context: ToolContext) {
  const { api, now } = context;
  const allowance = await context.allowance(maxCredits);
  const contents = fresh ? undefined : await (await context.dataset()).contents();
  return async (filters: Filters): Promise<Count> => {
    const gathered = contents && gatheredCount(filters, contents, now);
    if (gathered) return gathered;
    const answer = await api.searchAds({ body: { ...filters, limit: 1 }, fresh, allowance });
    return { filters, total: totalOf(answer) ?? null, ...serviceNotes(answer.raw) };
  };
}

function gatheredCount(filters: Filters, contents: DatasetContents, now: number): Count | undefined {
  const gathering = gatheringsOf(contents, { filters }).find(
    (one) => now - one.gatheredAt <= maxAge && isComplete(one, contents),
  );
  if (gathering === undefined) return undefined;
  const total = foundBy(gathering, contents) ?? gathering.adIds.size;
  return { filters, total, gatheredAt: new Date(gathering.gatheredAt).toISOString() };
}
