import * as z from 'zod';
import { buildChart } from '../charts/chart.ts';
import { chartKinds } from '../charts/chart-kinds.ts';
import {
  buildCoverageView,
  buildCoverageWithoutAds,
  CoverageView,
  formatCoverage,
  listCaptionNotes,
  listNotesOfEmptyResult,
} from '../dataset/coverage.ts';
import { mergeStatementFields } from '../dataset/coverage-notes.ts';
import { getLaunchCoverage } from '../dataset/gatherings.ts';
import { isEmptySqlResult } from '../dataset/sql/statement.ts';
import { type Cell, listComputedColumns } from '../dataset/tables.ts';
import { dataTokensPerTextToken } from '../views/full-view.ts';
import { formatCount, formatNumber } from '../views/numbers.ts';
import { isWord, joinLines, quote, quoteUnlessWord } from '../views/safe-text.ts';
import { countFittingItems } from '../views/tokens.ts';
import { readCoverageInput } from './coverage-input.ts';
import { RowView } from './first-rows.ts';
import {
  createJpegContent,
  defineTool,
  getRemainingDrawingMs,
  picturesNotAllowedReason,
  readOnlyAnnotations,
} from './tool.ts';

/** The highest `limit` that a call may pass. */
const maxRowLimit = 1000;

const derivedColumns = listComputedColumns()
  .map(({ name, meaning }) => (meaning === undefined ? name : `${name} (${meaning})`))
  .join(', ');

const tablesDescription = `One SQLite SELECT. Table ads has the API's fields (pageName, headline, body, startedAt, lastSeenAt, endDate, ctaType, displayFormat, adLibrary, duplicates, audienceReach …) and derived columns: ${derivedColumns}. Compare days as date(startedAt). Count running ads as active = 1 in current_ads (same columns): the ads that the newest complete gathering of each question lists. Other tables: ad_countries(id, country), ad_platforms(id, platform), ad_reach(id, country, age, gender, reach), ad_cards(id, number, title, body, url), ad_versions, pages, gatherings, gathered(gatheringId, adId), labels(adId, label, value), months(month, first, last). text REGEXP '(?i)pattern' works. Missing values are null.`;

export const queryAds = defineTool({
  name: 'query_ads',
  title: 'Analyze gathered ads',
  description:
    'Analyze gathered ads with one SQL SELECT. It answers questions about many ads: messaging patterns that keep appearing, the most common hooks, creative angles and calls to action, the distribution of formats, video lengths and countries, top 10 ads by reach or spend, longest-running ads as a proxy for winners, how long each advertiser keeps a creative, and a timeline or calendar of launches. It aggregates by advertiser, brand, campaign or day, and draws charts.',
  usageHint: 'Then query_ads answers for free, as often as you like; say what it covers.',
  annotations: { ...readOnlyAnnotations, openWorldHint: false },
  buildExampleArguments: () => ({
    sql: 'SELECT ctaType, count(*) AS ads, median(daysRunning) AS medianDays FROM ads GROUP BY 1 ORDER BY 2 DESC',
  }),
  operations: [],
  inputSchema: z.strictObject({
    sql: z.string().describe(tablesDescription),
    limit: z.int().min(1).max(maxRowLimit).optional().describe('Most rows to return. Default 50.'),
    cell: z.int().min(1).max(20_000).optional().describe('Most characters of a cell. Default 160.'),
    chart: z.enum(chartKinds).optional().describe('Draws the first column against the number columns after it.'),
  }),
  createOutputSchema: () =>
    z.looseObject({
      columns: z.array(z.string()).describe('Names of the columns.'),
      rows: z.array(RowView).describe('Rows. Each row lists its cells in the order of columns.'),
      rowCount: z.number().nullable().describe('Number of rows of the complete result. null above 100,000.'),
      truncated: z.boolean().describe('true if rows were left out.'),
      coverage: CoverageView.describe('Which ads the answer is based on, and what is missing.'),
      chart: z.string().optional().describe('Why no chart was drawn.'),
    }),
  async run({ sql, limit = 50, cell = 160, chart }, context) {
    const { maxTextTokens, maxTextBytes, signal, isDemo } = context;
    const contents = await (await context.openDataset()).readContents();
    const { columns, rows, rowCount, truncated, statementFields, isAboutAds, readsPages } = await context
      .getDatasetSql()
      .query(contents, {
        sql,
        limit,
        maxCellChars: cell,
        signal,
      });
    const coverageInput = {
      ...(await readCoverageInput(contents, context)),
      columns,
      rows,
      maxCellChars: cell,
      fieldsByStatement: mergeStatementFields([statementFields]),
      readsPages,
    };
    const coverage = isAboutAds ? buildCoverageView(coverageInput) : buildCoverageWithoutAds(contents);
    const emptyResultNotes = isEmptySqlResult(rows, rowCount) ? listNotesOfEmptyResult(coverage) : [];
    const coverageText = isAboutAds ? formatCoverage(coverage, emptyResultNotes) : undefined;
    const renderItems = (shownRows: readonly Cell[][]) =>
      joinLines([...emptyResultNotes, formatRows({ columns, rows: shownRows, rowCount, limit }), coverageText]);
    const textLimits = {
      maxTokens: maxTextTokens - (chart ? chartNoteTokens : 0),
      maxBytes: maxTextBytes - (chart ? chartNoteBytes : 0),
    };
    const readableRows = rows.slice(0, countFittingItems({ items: rows, ...textLimits, renderItems }));
    const dataLimits = {
      maxTokens: dataTokensPerTextToken * maxTextTokens,
      maxBytes: dataTokensPerTextToken * maxTextBytes,
    };
    const shownRows = readableRows.slice(
      0,
      countFittingItems({ items: readableRows, ...dataLimits, renderItems: JSON.stringify }),
    );
    const isCut = truncated || shownRows.length < rows.length;
    const data = { columns, rows: shownRows, rowCount, truncated: isCut, coverage };
    if (chart === undefined) return { data, text: renderItems(shownRows) };
    const addNote = (note: string) => `${renderItems(shownRows)}\n${note}`;
    const buildOutputWithoutChart = (reason: string) => {
      const note = `No chart: ${reason}.`;
      return { data: { ...data, chart: note }, text: addNote(note) };
    };
    if (!context.allowsPictures) return buildOutputWithoutChart(picturesNotAllowedReason);
    const readAtMs = getLaunchCoverage(contents)?.completeUntil;
    const notes = isAboutAds ? listCaptionNotes(coverageInput) : [];
    const drawing = buildChart(
      chart,
      { columns, rows: shownRows, sql, isTruncated: isCut },
      { readAtMs, isDemo, notes },
    );
    if ('problem' in drawing) return buildOutputWithoutChart(drawing.problem);
    const chartPicture = await (await context.loadPictures()).drawChart(drawing, {
      signal,
      getRemainingMs: () => getRemainingDrawingMs(context),
    });
    if ('reason' in chartPicture) return buildOutputWithoutChart(chartPicture.reason);
    // Some hosts show a result with structured data without its picture. The note is therefore only part of the text:
    // in the structured data, it would refer to a picture that the model cannot see.
    const note = `The chart shows these rows${chartPicture.hasNumberedLabels ? numberedRowsNote : ''}.`;
    return { data, text: addNote(note), attachments: [createJpegContent(chartPicture.jpeg)] };
  },
});

/** The number of tokens and of UTF-8 bytes that are reserved for the note about the chart. */
const chartNoteTokens = 80;
const chartNoteBytes = 400;
const numberedRowsNote = '; names in scripts that it cannot write are row 1, row 2 …, in this order';

interface ResultRows {
  columns: readonly string[];
  rows: readonly (readonly Cell[])[];
  /** The number of rows in the whole result, ignoring `limit`. null if there are more than 100,000 rows. */
  rowCount: number | null;
  limit: number;
}

function formatRows({ columns, rows, rowCount, limit }: ResultRows): string {
  const headerRow = columns.map(quoteUnlessWord).join(' | ');
  // If one text in a column needs quotes, quote all texts in this column, so that the column looks uniform.
  const needsQuotesByColumn = columns.map((_, index) => rows.some((row) => shouldQuote(row[index])));
  const lines = rows.map((row) =>
    row.map((cell, index) => formatCell(cell, needsQuotesByColumn[index] === true)).join(' | '),
  );
  return [formatRowCount(rows.length, rowCount, limit), headerRow, ...lines].join('\n');
}

function formatRowCount(shownCount: number, rowCount: number | null, limit: number): string {
  if (rowCount === shownCount) return `${formatCount(shownCount, 'row')}:`;
  const totalText = rowCount === null ? 'more than 100,000' : formatNumber(rowCount);
  if (shownCount < limit)
    return `The first ${formatNumber(shownCount)} of ${totalText} rows, cut to fit the result (fewer columns or a smaller cell give more; ${formatOffsetHint(shownCount)}):`;
  const moreRowsHint = limit < maxRowLimit ? 'limit gives more' : formatOffsetHint(limit);
  const moreText = rowCount === null ? '' : ` (GROUP BY and WHERE give fewer; ${moreRowsHint})`;
  return `The first ${formatNumber(shownCount)} of ${totalText} rows${moreText}:`;
}

/**
 * Formats a hint on how to change an SQL statement so that it returns the next rows. SQLite accepts `OFFSET` only after
 * `LIMIT`.
 */
const formatOffsetHint = (shownCount: number): string =>
  `for the next rows, raise OFFSET by ${shownCount}, e.g. LIMIT -1 OFFSET ${shownCount}`;

const formatCell = (cell: Cell, isQuoted: boolean): string =>
  isQuoted && typeof cell === 'string' ? quote(cell) : String(cell);

/**
 * Returns true if a cell is a text that needs quotes. The text `null` needs quotes too, because otherwise it would look
 * like a missing value.
 */
const shouldQuote = (cell: unknown): boolean => typeof cell === 'string' && (cell === 'null' || !isWord(cell));
