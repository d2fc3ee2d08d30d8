import * as z from 'zod';
import { formatAdQuery } from '../dataset/gatherings.ts';
import { parseReports } from '../dataset/saved-reports.ts';
import { formatIsoTime } from '../dataset/tables.ts';
import { formatMinute } from '../views/dates.ts';
import type { DataOf } from '../views/fields.ts';
import { dataTokensPerTextToken } from '../views/full-view.ts';
import { formatCount } from '../views/numbers.ts';
import { joinLines, quote } from '../views/safe-text.ts';
import { estimateTokens, quoteUntrustedText, truncateLine } from '../views/tokens.ts';
import { parseWatches, type Watch } from '../watches/stored-watches.ts';
import { noArgumentsSchema } from './arguments.ts';
import { defineTool, readOnlyAnnotations } from './tool.ts';

export const WatchView = z
  .looseObject({
    name: z.string().describe('Name of the watch.'),
    filters: z.looseObject({}).optional().describe('Filters of the watch.'),
    split: z.array(z.looseObject({})).optional().describe('Filter objects, each combined with filters.'),
    shortened: z.boolean().optional().describe('true if the question was left out to save tokens.'),
    collectionId: z.string().optional().describe('Collection that the watch reads, instead of filters.'),
    maxAds: z.number().optional().describe('Most ads that a check reads.'),
    maxCredits: z.number().describe('Most credits that a check may spend.'),
    checkedAt: z.string().nullable().describe('Time of the last check. null before the first check.'),
    ads: z.number().nullable().describe('Number of ads that the last check read. null before the first check.'),
    complete: z
      .boolean()
      .nullable()
      .describe('true if the last check read all matching ads. null before the first check.'),
  })
  .meta({ title: 'Watch' });
export type WatchView = DataOf<typeof WatchView>;

const ReportView = z
  .looseObject({
    name: z.string().describe('Name of the report.'),
    title: z.string().describe('Title of the report.'),
    writtenAt: z.string().describe('Time when the report was last written.'),
    sections: z.number().describe('Number of sections.'),
  })
  .meta({ title: 'SavedReport' });

const formatReport = ({ name, title, writtenAt, sections }: DataOf<typeof ReportView>) =>
  `Report ${quote(name)}: ${quote(title)}, ${formatCount(sections, 'section')}, written ${formatMinute(writtenAt)}.`;

/**
 * The schema of a note that watches are lost when the server stops. Results contain this note only if watches are
 * stored in memory.
 */
export const inMemoryNoteSchema = z.string().optional().describe('Note on how long the watches are stored.');

export const inMemoryWatchesNote = 'They are kept in memory, and end with this server.';

export const listWatches = defineTool({
  name: 'list_watches',
  title: 'What is monitored',
  description:
    'List the watches: which competitors and topics you monitor or track, with their questions and the time of the last check, and the stored reports.',
  annotations: { ...readOnlyAnnotations, openWorldHint: false },
  buildExampleArguments: () => ({}),
  operations: [],
  inputSchema: noArgumentsSchema,
  createOutputSchema: () =>
    z.looseObject({
      watches: z.array(WatchView).describe('All watches.'),
      reports: z.array(ReportView).describe('All stored reports.'),
      note: inMemoryNoteSchema,
    }),
  async run(_, { openDataset, maxTextTokens }) {
    const { userRecords } = await openDataset();
    const watches = parseWatches(await userRecords.read('watch'));
    const reports = parseReports(await userRecords.read('report')).map(({ name, title, runs, sections }) => ({
      name,
      title: truncateLine(title, 40),
      sections: sections.length,
      writtenAt: formatIsoTime(runs[0]?.writtenAt ?? 0),
    }));
    const views = buildWatchViews(watches, dataTokensPerTextToken * maxTextTokens);
    return { data: { watches: views, reports, ...(!userRecords.isPersistent && { note: inMemoryWatchesNote }) } };
  },
  render: ({ watches, reports, note }) =>
    joinLines([
      watches.length === 0 ? 'There are no watches.' : `${formatCount(watches.length, 'watch', 'watches')}:`,
      ...watches.map(formatWatch),
      ...reports.map(formatReport),
      note,
    ]),
});

/**
 * Returns the watches in the form in which results contain them. If all filters together exceed `maxTokens`, omits the
 * filters of the last watches.
 */
export function buildWatchViews(watches: readonly Watch[], maxTokens: number): WatchView[] {
  let remainingTokens = maxTokens;
  return watches.map(({ name, filters, split, collectionId, maxAds, maxCredits, last }) => {
    const adQuery = { ...(filters && { filters }), ...(split && { split }) };
    remainingTokens -= estimateTokens(JSON.stringify(adQuery)) + 80;
    return {
      name,
      ...(remainingTokens > 0 && adQuery),
      ...(remainingTokens <= 0 && { shortened: true }),
      ...(collectionId && { collectionId }),
      ...(maxAds !== undefined && { maxAds }),
      maxCredits,
      checkedAt: last ? formatIsoTime(last.at) : null,
      ads: last?.ads ?? null,
      complete: last?.complete ?? null,
    };
  });
}

/** Formats a watch (a stored search) as one line of text. */
export function formatWatch(watch: WatchView): string {
  const { name, checkedAt, ads, complete, maxAds, maxCredits, shortened, ...questionFields } = watch;
  const { filters = {}, split, collectionId = null } = questionFields;
  const splitText = split ? `; split: ${JSON.stringify(split)}` : '';
  const questionText = shortened
    ? 'its filters are too long to be shown here'
    : quoteUntrustedText(formatAdQuery({ filters, collectionId, partGatheringIds: [] }) + splitText, 60);
  const maxAdsText = maxAds === undefined ? '' : ` and ${formatCount(maxAds, 'ad')}`;
  const lastCheckText =
    checkedAt === null
      ? 'not checked yet'
      : `checked ${formatMinute(checkedAt)}: ${formatCount(ads ?? 0, 'ad')}, ${complete ? 'complete' : 'not complete'}`;
  return `${quote(name)}: ${questionText}; at most ${formatCount(maxCredits, 'credit')}${maxAdsText} a check; ${lastCheckText}.`;
}
