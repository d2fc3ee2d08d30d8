import type { Gathering } from '../storage/dataset.ts';
import { formatCount, sumNumbers } from '../views/numbers.ts';
import {
  type CoverageInput,
  type CoverageView,
  describeIncompleteGatherings,
  formatUncoveredAdvertisers,
} from './coverage.ts';
import { formatUnlistedAds } from './coverage-notes.ts';
import type { StatementSummary } from './export.ts';
import { countAdsOutsideGatherings, formatAdQueryJson, formatSplitMatchingCount } from './gatherings.ts';
import { formatIsoTime, listComputedColumns } from './tables.ts';
import type { SheetCell } from './workbook.ts';

/** The data from which the method note of an export is built. The note explains how the exported ads were collected. */
interface MethodNoteInput {
  coverageInput: CoverageInput;
  coverage: CoverageView;
  exportedStatements: readonly Pick<StatementSummary, 'name' | 'sql' | 'rowCount'>[];
  /** The ids of the exported ads, in lower case. Undefined if the exported rows contain no ad ids. */
  adIds?: ReadonlySet<string> | undefined;
  exportedAt: number;
  serverVersion: string;
}

/** A section of the method note of an export. The note explains how the exported ads were collected. */
interface MethodNoteSection {
  heading: string;
  paragraphs?: string[];
  sql?: string;
  table?: (string | number)[][];
  bulletPoints?: string[];
}

/** Builds the method note of an export, which explains how the ads were collected and what the columns mean. */
export function buildMethodNote(input: MethodNoteInput): MethodNoteSection[] {
  const { coverageInput, coverage, exportedStatements, adIds, exportedAt, serverVersion } = input;
  const { contents } = coverageInput;
  const { ads, pages, evictedCounts } = contents;
  const gatherings = contents.gatherings.filter(
    (gathering) => !adIds || [...gathering.adIds].some((id) => adIds.has(id)),
  );
  const otherCount = contents.gatherings.length - gatherings.length;
  const uncoveredCount = countAdsOutsideGatherings(contents);
  const rowCount = sumNumbers(exportedStatements.map((statement) => statement.rowCount));
  const hasOneStatement = exportedStatements.length === 1;
  const { partial, unlisted = 0, notes = [] } = coverage;
  const gatheringIds = new Set(gatherings.map(({ id }) => id));
  const warnings = [
    // `partial` lists only the newest gatherings, but the exported ads may come from an older one.
    ...(partial ? describeIncompleteGatherings(coverageInput, gatheringIds) : []),
    ...(unlisted > 0 ? [`${formatUnlistedAds(unlisted)}.`] : []),
    ...notes,
  ];
  return [
    {
      heading: 'How these ads were gathered',
      paragraphs: [
        `Exported ${formatIsoTime(exportedAt)} by ad-library-mcp ${serverVersion}: ${formatCount(rowCount, 'row')} from ${formatCount(ads.length, 'ad')} and ${formatCount(pages.length, 'page')}.`,
      ],
    },
    ...exportedStatements.map(({ name, sql, rowCount }) => ({
      heading: hasOneStatement ? 'Statement' : `Statement of ${name}, ${formatCount(rowCount, 'row')}`,
      sql: sql.trim(),
    })),
    {
      heading: 'Gatherings',
      ...(gatherings.length > 0 && { table: [gatheringColumns, ...gatherings.map(buildGatheringRow)] }),
      paragraphs: [
        contents.gatherings.length === 0 &&
          'None. These are only the ads that searches returned, so shares and totals say nothing about all existing ads.',
        otherCount > 0 && `${formatCount(otherCount, 'other gathering')} of the dataset read none of these ads.`,
        uncoveredCount > 0 &&
          `${uncoveredCount} of the ads came only from searches or earlier gatherings. The newest gathering of each question does not have them.${formatUncoveredAdvertisers(coverage)}`,
        evictedCounts.ads > 0 && `Removed to make room: ${formatCount(evictedCounts.ads, 'ad')}.`,
      ].filter((text) => text !== false),
    },
    ...(warnings.length > 0 ? [{ heading: 'What the ads cannot support', bulletPoints: warnings }] : []),
    {
      heading: 'What to keep in mind',
      bulletPoints: [
        '"Found" is the number of matching ads that the service stated. "Read" is the number of different ads that were read. For a question in parts, "found" is the sum over the parts, so an ad in several parts is counted several times. An incomplete gathering contains the ads that the service listed first. It is not a random sample.',
        'Each ad is in its newest version. If a later response lacks a field, the earlier value of the field is kept.',
        ...listComputedColumns().flatMap(({ name, meaning }) =>
          meaning === undefined ? [] : `\`${name}\`: ${meaning}.`,
        ),
        '`duplicates`: number of copies of the ad, including the ad itself. Dates are in UTC. A date without an offset counts as UTC.',
        "Reach, spend, revenue, trend and performance are the service's own estimates. The API document does not define them.",
        'An ad that is no longer found has not necessarily ended.',
      ],
    },
  ];
}

const gatheringColumns = ['gathering', 'question', 'gathered', 'found', 'read', 'complete'];

const buildGatheringRow = (gathering: Gathering): (string | number)[] => {
  const { id, gatheredAt, matchingCount, adIds, isComplete } = gathering;
  const totalText = matchingCount ?? formatSplitMatchingCount(gathering) ?? 'not stated';
  return [
    id,
    formatAdQueryJson(gathering),
    formatIsoTime(gatheredAt),
    totalText,
    adIds.size,
    isComplete ? 'yes' : 'no',
  ];
};

/** Formats the method note of an export as Markdown. */
export const renderMethodNoteMarkdown = (noteSections: readonly MethodNoteSection[]): string =>
  noteSections
    .flatMap(({ heading, paragraphs = [], sql, table = [], bulletPoints = [] }, index) => [
      `${index === 0 ? '#' : '##'} ${heading}`,
      sql?.replace(/^/gm, '    '),
      table
        .flatMap((row, index) => [formatTableLine(row), index === 0 ? [`|${'---|'.repeat(row.length)}`] : []].flat())
        .join('\n'),
      ...paragraphs,
      bulletPoints.map((bulletPoint) => `- ${bulletPoint}`).join('\n'),
    ])
    .filter(Boolean)
    .join('\n\n')
    .concat('\n');

const formatTableLine = (cells: readonly (string | number)[]) =>
  `| ${cells.map((cell) => (/[{}]/.test(String(cell)) ? `\`${removeTableSyntax(cell)}\`` : removeTableSyntax(cell))).join(' | ')} |`;
const removeTableSyntax = (cell: string | number) => String(cell).replace(/[`|\n\r]/g, ' ');

/** Converts the method note of an export to rows of an Excel worksheet. */
export const buildMethodNoteRows = (noteSections: readonly MethodNoteSection[]): SheetCell[][] =>
  noteSections.flatMap(({ heading, paragraphs = [], sql, table = [], bulletPoints = [] }): SheetCell[][] => [
    [{ bold: heading }],
    ...[
      ...(sql?.split('\n') ?? []),
      ...paragraphs,
      ...bulletPoints.map((bulletPoint) => bulletPoint.replaceAll('`', '')),
    ].map((line) => [line]),
    ...table.map((row, index) => row.map((cell) => (index === 0 ? { bold: String(cell) } : cell))),
    [],
  ]);
