import * as z from 'zod';
import { invalidRequest } from '../api/errors.ts';
import { isNear, nearestFirst } from '../api/nearest.ts';
import { minute } from '../dataset/gathering-report.ts';
import { questionText, withoutRepeats } from '../dataset/gatherings.ts';
import { cleanLabel } from '../dataset/labels.ts';
import { isoTime } from '../dataset/tables.ts';
import { questionOf, storeWatch, type Watch, watchesIn } from '../dataset/watches.ts';
import type { DataOf } from '../present/fields.ts';
import { dataPerText } from '../present/full-view.ts';
import { count } from '../present/lists.ts';
import { quote, sanitizeLine } from '../present/safe-text.ts';
import { estimateTokens, truncate } from '../present/tokens.ts';
import type { OwnRecords } from '../state/own-records.ts';
import { adFilters, checkQuestion, collectionId, split } from './arguments.ts';
import { defineTool } from './tool.ts';

const maxName = 80;
/** The most characters of filters and split together, as JSON. */
const maxQuestion = 20_000;

const WatchView = z
  .looseObject({
    name: z.string(),
    filters: z.looseObject({}).optional(),
    split: z.array(z.looseObject({})).optional().describe('each laid over filters'),
    shortened: z.boolean().optional().describe('its question is left out, for want of room'),
    collectionId: z.string().optional(),
    maxAds: z.number().optional().describe('of a check'),
    maxCredits: z.number().describe('of a check'),
    checkedAt: z.string().nullable().describe('when it was last checked'),
    ads: z.number().nullable().describe('read by that check'),
    complete: z.boolean().nullable().describe('it read all'),
  })
  .meta({ title: 'Watch' });
type WatchView = DataOf<typeof WatchView>;

export const watchAds = defineTool({
  name: 'watch_ads',
  title: 'Watch ads',
  description: 'Store a question under a name for check_watches, end one with remove, or list all.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  example: () => ({
    name: 'Videos in Germany',
    filters: { countries: ['DE'], displayFormat: ['VIDEO'] },
    maxCredits: 10,
  }),
  operations: [],
  keepsRecords: true,
  input: z.strictObject({
    name: z.string().optional(),
    filters: adFilters,
    split,
    collectionId: collectionId.optional(),
    maxAds: z.int().min(1).max(10_000).optional().describe('default 1000'),
    maxCredits: z.number().min(0).optional().describe('for each check'),
    remove: z.boolean().optional(),
  }),
  output: z.looseObject({
    watches: z.array(WatchView).describe('all watches'),
    stored: z.string().optional().describe('the watch that was stored'),
    ended: z.string().optional().describe('the watch that was ended'),
    note: z.string().optional(),
  }),
  async run({ name: given, maxAds, maxCredits, remove = false, ...question }, { dataset, resultTokens }) {
    const { filters, split, collectionId } = question;
    const { own } = await dataset();
    const isAbout = [filters, split, collectionId, maxAds, maxCredits].some((value) => value !== undefined);
    if (given === undefined && (isAbout || remove))
      throw invalidRequest('name is required: the watch to store or to end.');
    const done = given === undefined ? undefined : remove ? 'ended' : 'stored';
    if (given !== undefined && remove) await removeWatch(own, given);
    else if (given !== undefined) {
      checkQuestion([filters, ...(split ?? [])], { collectionId, split });
      checkQuestion([], { collectionId, filters });
      if (!maxCredits)
        throw invalidRequest(
          'maxCredits is required, above 0: the most that one check may cost. To end a watch, pass remove: true.',
        );
      if (JSON.stringify(question).length > maxQuestion)
        throw invalidRequest(`filters and split may have at most ${maxQuestion} characters together.`);
      await storeWatch(own, { ...questionOf(withoutRepeats(question)), name: nameOf(given), maxAds, maxCredits });
    }
    return {
      ...(done && { [done]: given }),
      watches: viewsOf(watchesIn(await own.read('watch')), dataPerText * resultTokens),
      ...(!own.isLasting && { note: 'Watches are kept in memory, and end with this server.' }),
    };
  },
  render({ watches, note, ...done }) {
    const head = Object.entries(done).map(([word, name]) => `Watch ${quote(sanitizeLine(String(name)))} is ${word}.`);
    const all = watches.length === 0 ? 'There are no watches.' : `${count(watches.length, 'watch', 'watches')}:`;
    return [...head, all, ...watches.map(watchText), note].filter(Boolean).join('\n');
  },
});

/** A name as it is stored. */
function nameOf(given: string): string {
  const name = cleanLabel(given);
  if (name !== '' && name.length <= maxName) return name;
  throw invalidRequest(`name must have 1 to ${maxName} characters that can be seen.`);
}

const removeWatch = (own: OwnRecords, given: string): Promise<void> =>
  own.update('watch', (records) => {
    const removed = namedWatches(watchesIn(records), [given]).map(({ name }) => name);
    return { removed, result: undefined };
  });

/** @throws AdLibraryError for names that no watch has */
export function namedWatches(watches: readonly Watch[], names: readonly string[]): Watch[] {
  const byName = new Map(watches.map((watch) => [watch.name, watch]));
  return [...new Set(names.map(cleanLabel))].map((name) => {
    const watch = byName.get(name);
    if (watch) return watch;
    const [nearest = ''] = nearestFirst(name, [...byName.keys()]);
    const hint = isNear(name, nearest)
      ? `Did you mean ${quote(nearest)}?`
      : `Watches: ${[...byName.keys()].slice(0, 20).map(quote).join(', ') || 'none'}.`;
    throw invalidRequest(`There is no watch ${quote(truncate(name.slice(0, 200), 30))}. ${hint}`);
  });
}

/** Filters are left out where all of them take more than so many tokens. */
function viewsOf(watches: readonly Watch[], tokens: number): WatchView[] {
  let left = tokens;
  return watches.map(({ name, filters, split, collectionId, maxAds, maxCredits, last }) => {
    const question = { ...(filters && { filters }), ...(split && { split }) };
    left -= estimateTokens(JSON.stringify(question)) + 80;
    return {
      name,
      ...(left > 0 && question),
      ...(left <= 0 && { shortened: true }),
      ...(collectionId && { collectionId }),
      ...(maxAds !== undefined && { maxAds }),
      maxCredits,
      checkedAt: last ? isoTime(last.at) : null,
      ads: last?.ads ?? null,
      complete: last?.complete ?? null,
    };
  });
}

function watchText(watch: WatchView): string {
  const { name, checkedAt, ads, complete, maxAds, maxCredits, shortened, ...about } = watch;
  const { filters = {}, split, collectionId = null } = about;
  const parts = split ? `; split: ${JSON.stringify(split)}` : '';
  const asks = shortened
    ? 'its filters are too long to be shown here'
    : quote(truncate(sanitizeLine(questionText({ filters, collectionId, parts: [] }) + parts), 60));
  const room = maxAds === undefined ? '' : ` and ${count(maxAds, 'ad')}`;
  const last =
    checkedAt === null
      ? 'not checked yet'
      : `checked ${minute(checkedAt)}: ${count(ads ?? 0, 'ad')}, ${complete ? 'complete' : 'not complete'}`;
  return `${quote(name)}: ${asks}; at most ${count(maxCredits, 'credit')}${room} a check; ${last}.`;
}
