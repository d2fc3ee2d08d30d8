import * as z from 'zod';
import { invalidRequest } from '../api/errors.ts';
import { isNear, nearestFirst } from '../api/nearest.ts';
import { minute } from '../dataset/gathering-report.ts';
import { questionText } from '../dataset/gatherings.ts';
import { cleanLabel } from '../dataset/labels.ts';
import { isoTime } from '../dataset/tables.ts';
import { type Watch, watchesIn } from '../dataset/watches.ts';
import type { DataOf } from '../present/fields.ts';
import { dataPerText } from '../present/full-view.ts';
import { count } from '../present/lists.ts';
import { quote } from '../present/safe-text.ts';
import { estimateTokens, untrustedText } from '../present/tokens.ts';
import { noArguments } from './arguments.ts';
import { defineTool, readOnly } from './tool.ts';

export const WatchView = z
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

export const inMemory = 'Watches are kept in memory, and end with this server.';

export const listWatches = defineTool({
  name: 'list_watches',
  title: 'What is monitored',
  description: 'List what is monitored: the watches of watch_ads, with their questions and last checks.',
  annotations: { ...readOnly, openWorldHint: false },
  example: () => ({}),
  operations: [],
  input: noArguments,
  output: z.looseObject({ watches: z.array(WatchView), note: z.string().optional() }),
  async run(_, { dataset, resultTokens }) {
    const { own } = await dataset();
    const watches = watchesIn(await own.read('watch'));
    return { watches: viewsOf(watches, dataPerText * resultTokens), ...(!own.isLasting && { note: inMemory }) };
  },
  render: ({ watches, note }) =>
    [
      watches.length === 0 ? 'There are no watches.' : `${count(watches.length, 'watch', 'watches')}:`,
      ...watches.map(watchText),
      note,
    ]
      .filter(Boolean)
      .join('\n'),
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
    throw invalidRequest(`There is no watch ${untrustedText(name, 30)}. ${hint}`);
  });
}

/** Filters are left out where all of them take more tokens. */
export function viewsOf(watches: readonly Watch[], tokens: number): WatchView[] {
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

export function watchText(watch: WatchView): string {
  const { name, checkedAt, ads, complete, maxAds, maxCredits, shortened, ...about } = watch;
  const { filters = {}, split, collectionId = null } = about;
  const parts = split ? `; split: ${JSON.stringify(split)}` : '';
  const asks = shortened
    ? 'its filters are too long to be shown here'
    : untrustedText(questionText({ filters, collectionId, parts: [] }) + parts, 60);
  const room = maxAds === undefined ? '' : ` and ${count(maxAds, 'ad')}`;
  const last =
    checkedAt === null
      ? 'not checked yet'
      : `checked ${minute(checkedAt)}: ${count(ads ?? 0, 'ad')}, ${complete ? 'complete' : 'not complete'}`;
  return `${quote(name)}: ${asks}; at most ${count(maxCredits, 'credit')}${room} a check; ${last}.`;
}
