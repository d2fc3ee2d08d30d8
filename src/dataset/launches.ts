import * as z from 'zod';
import type { SearchFilter } from '../api/search-filters.ts';
import { type DatasetContents, idKey } from '../storage/dataset.ts';
import type { DataOf } from '../views/fields.ts';
import { medianOf } from '../views/numbers.ts';
import type { AdRowReader } from './ad-rows.ts';
import { type GatheringQuestion, gatheringsOf } from './gatherings.ts';
import type { Check } from './watches.ts';

export const UsualView = z
  .looseObject({
    started: z.number().describe('of new, since then'),
    weeks: z.number().describe('full weeks before, at most eight'),
    median: z.number().describe('launches a week, scaled to the time since then'),
    least: z.number(),
    most: z.number(),
  })
  .meta({ title: 'Usual' });
export type UsualView = DataOf<typeof UsualView>;

const day = 86_400_000;
const maxWeeks = 8;
const minWeeks = 4;
/** Launches come in days: for less time since the last check, weeks say nothing. */
const minInterval = 20 * 3_600_000;

/** Undefined where launches cannot be compared: filters that ask for running or dates leave survivors alone. */
export async function usualLaunches(
  question: GatheringQuestion,
  { since, changes, gathering }: Check,
  contents: DatasetContents,
  { adRows, adFilters }: { adRows(): AdRowReader; adFilters: readonly SearchFilter[] },
): Promise<UsualView | undefined> {
  if (
    !gathering.complete ||
    !since ||
    !changes ||
    question.collectionId !== undefined ||
    asksForTime(question, adFilters)
  )
    return;
  if (gathering.gatheredAt - since.at < minInterval) return;
  const all = gatheringsOf(contents, question).flatMap(({ adIds }) => [...adIds]);
  const fresh = new Set(changes.fresh.map(idKey));
  const [before, launches] = [startOfDay(since.at), Array<number>(maxWeeks).fill(0)];
  let [started, earliest] = [0, before];
  for await (const part of adRows().read(contents, { json: false, ids: new Set(all) }))
    for (const { ad } of part) {
      if (ad.startedAt === null || ad.id === null) continue;
      const at = startOfDay(Date.parse(ad.startedAt));
      earliest = Math.min(earliest, at);
      if (at >= before) started += fresh.has(idKey(ad.id)) ? 1 : 0;
      else {
        const week = Math.ceil((before - at) / day / 7) - 1;
        if (week < maxWeeks) launches[week] = (launches[week] ?? 0) + 1;
      }
    }
  const weeks = Math.min(maxWeeks, Math.floor((before - earliest) / day / 7));
  if (weeks < minWeeks) return;
  const inOrder = launches.slice(0, weeks).sort((left, right) => left - right);
  const scale = (gathering.gatheredAt - since.at) / day / 7;
  const scaleToInterval = (launches: number) => Math.round(launches * scale * 10) / 10;
  return {
    started,
    weeks,
    median: scaleToInterval(medianOf(inOrder)),
    least: scaleToInterval(inOrder[0] ?? 0),
    most: scaleToInterval(inOrder[weeks - 1] ?? 0),
  };
}

const startOfDay = (at: number): number => Math.floor(at / day) * day;

/** Whether filters choose ads by whether they run or by dates, as far as their names and descriptions tell. */
function asksForTime({ filters = {}, split = [] }: GatheringQuestion, described: readonly SearchFilter[]): boolean {
  const dates = new Set(described.flatMap(({ key, type }) => (type === 'date' ? key : [])));
  return [filters, ...split].some(function asks(value: unknown): boolean {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    return Object.entries(value).some(([key, inner]) => dates.has(key) || namesTime(key) || asks(inner));
  });
}

const namesTime = (key: string) => key.split(/[^A-Za-z]|(?=[A-Z])/).some((word) => timeWords.has(word.toLowerCase()));

const timeWords = new Set(
  'active inactive status state running run live date dates day days week month year time since until before after start started starts end ended ends seen launch launched created published age missing'.split(
    ' ',
  ),
);
