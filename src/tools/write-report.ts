import * as z from 'zod';
import { AdLibraryError, createInvalidRequestError } from '../api/errors.ts';
import { buildChart } from '../charts/chart.ts';
import { chartKinds } from '../charts/chart-kinds.ts';
import {
  buildCoverageView,
  FileCoverageView,
  formatCoverage,
  listCaptionNotes,
  listNotesOfEmptyResult,
} from '../dataset/coverage.ts';
import { mergeStatementFields } from '../dataset/coverage-notes.ts';
import { maxFirstRows } from '../dataset/export.ts';
import {
  countGatheredAds,
  getLaunchCoverage,
  getReadingPeriod,
  omitPartsOfSplits,
  selectPaidGatherings,
  sumGatheringCharges,
} from '../dataset/gatherings.ts';
import { formatLabels, groupLabelsByAd } from '../dataset/labels.ts';
import { findRecordsByName } from '../dataset/named-records.ts';
import {
  assertCanStoreReport,
  buildStoredRow,
  findRunOfEarlierDay,
  parseReports,
  type SavedReport,
  saveReport,
  selectComparableFigures,
} from '../dataset/saved-reports.ts';
import { isEmptySqlResult, type StatementFields } from '../dataset/sql/statement.ts';
import type { Cell } from '../dataset/tables.ts';
import { buildReportCard } from '../reports/card.ts';
import type { ReportSection } from '../reports/report.tsx';
import { type DatasetContents, normalizeAdId, pickAdsById } from '../storage/dataset.ts';
import { reportTtlMs } from '../storage/exports.ts';
import { parseItem } from '../storage/item-versions.ts';
import type { UserRecords } from '../storage/user-records.ts';
import type { AdPicture } from '../views/ad-media.ts';
import { formatDay } from '../views/dates.ts';
import type { DataOf } from '../views/fields.ts';
import { formatCount, formatNumber } from '../views/numbers.ts';
import { joinLines, joinNames, quote, quoteUnlessWord } from '../views/safe-text.ts';
import type { UntypedFields } from '../views/view.ts';
import { checkExclusiveArguments, fileNameSchema } from './arguments.ts';
import { readCoverageInput } from './coverage-input.ts';
import { FirstRows, formatFirstRows, selectFirstRows } from './first-rows.ts';
import { getMaxItemTokens } from './pager.ts';
import { formatMissingPictureReasons } from './picture-reasons.ts';
import { loadThumbnails } from './thumbnails.ts';
import {
  buildFileLocationFields,
  createResourceLink,
  defineTool,
  formatFileLocation,
  type ToolContext,
} from './tool.ts';

/**
 * Creates a text schema whose length limit does not appear in the tool list, because the list is part of every
 * conversation and its tokens cost money.
 */
const createTextSchema = (maxChars: number) =>
  z.string().refine(({ length }) => length <= maxChars, `must be at most ${maxChars} characters`);

const SectionInput = z.strictObject({
  heading: createTextSchema(200).describe('Heading of the section.'),
  text: createTextSchema(10_000).optional().describe('Text with **bold** words and lists in Markdown, without links.'),
  sql: z.string().optional().describe('One SELECT, shown as a table.'),
  chart: z.enum(chartKinds).optional().describe('Chart of the rows, as in query_ads.'),
  adIds: z.array(z.string()).max(12).optional().describe('Ads shown as cards with pictures.'),
});

const ReportSectionView = z
  .looseObject({
    heading: z.string().describe('Heading of the section.'),
    rows: z.number().nullable().optional().describe('Number of rows of its table. null above 100,000.'),
    ...FirstRows.shape,
    last: z
      .looseObject({})
      .optional()
      .describe('For a table of one row: its numbers in the last report, and at, the day of that report.'),
    ads: z.number().optional().describe('Number of ads that the section shows.'),
    problem: z.string().optional().describe('Why something is missing from the section.'),
  })
  .meta({ title: 'Section' });

const ReportInput = z.strictObject({
  title: createTextSchema(200).optional().describe('Title of the report.'),
  sections: z.array(SectionInput).min(1).max(20).optional().describe('Sections in order.'),
  name: fileNameSchema.describe(
    'Name of the file. It also stores the report under this name, in memory until the server ends.',
  ),
  again: z.string().optional().describe('Name of a stored report to write again, alone or with texts.'),
  texts: z
    .array(createTextSchema(10_000))
    .optional()
    .describe('New text for each section. An empty text keeps the stored one.'),
});

export const writeReport = defineTool({
  name: 'write_report',
  title: 'Write a report',
  description:
    'Write a report, a document to hand to the team: one HTML file with your text, tables and charts of SELECT statements, ads as cards, and the method. Use it for a custom competitor report, a strategic teardown, or a comparison of campaigns. With again, it writes a stored report over the current ads. The result says where the file is.',
  usageHint: 'write_report writes a report for others.',
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
  createsFile: true,
  buildExampleArguments: ({ adIds }) => ({
    title: 'What advertisers say',
    sections: [
      {
        heading: 'Calls to action',
        sql: 'SELECT ctaType, count(*) AS ads FROM ads GROUP BY 1 ORDER BY 2 DESC',
        chart: 'bar',
      },
      { heading: 'Two examples', text: 'Both have run for long.', adIds: adIds.slice(0, 2) },
    ],
  }),
  operations: [],
  isCpuIntensive: true,
  inputSchema: ReportInput,
  createOutputSchema: () =>
    z.looseObject({
      uri: z.string().describe('URI of the file as an MCP resource, for a day.'),
      file: z.string().optional().describe('Path of the file.'),
      link: z.string().optional().describe('URL of the file, for a day.'),
      bytes: z.number().describe('Size of the file in bytes.'),
      sections: z.array(ReportSectionView).describe('One entry for each section.'),
      coverage: FileCoverageView,
      note: z.string().optional().describe('Note on how the report is stored.'),
    }),
  async run(input, context) {
    const { now, serverVersion, isDemo } = context;
    const dataset = await context.openDataset();
    const {
      title,
      sections: sectionInputs,
      name,
      previousRun,
    } = await readReportInput(input, dataset.userRecords, now);
    if (name !== undefined) await assertCanStoreReport(dataset.userRecords, { name, title, sections: sectionInputs });
    const contents = await dataset.readContents();
    const ads = pickAdsOfSections(contents, sectionInputs);
    const coverageInput = await readCoverageInput(contents, context);
    const method = buildMethod(sectionInputs, contents);
    const headings = sectionInputs.map(({ heading }) => heading);
    const results: SectionResult[] = [];
    async function* generateSections() {
      for (const [index, section] of sectionInputs.entries()) {
        const { reportSection, ...sectionResult } = await buildSection(section, ads, coverageInput, context);
        const figures = selectComparableFigures(previousRun?.rows[index], sectionResult.row);
        if (previousRun && figures)
          reportSection.previousFigures = { reportWrittenAt: previousRun.writtenAt, row: figures };
        results.push({ ...sectionResult, previousFigures: reportSection.previousFigures });
        yield reportSection;
      }
    }
    /**
     * Computes the coverage of the report, i.e. which ads are missing from its data. Call this function after the last
     * section, because the sections determine which fields the report reads.
     */
    const buildReportCoverage = () =>
      buildCoverageView({
        ...coverageInput,
        fieldsByStatement: mergeStatementFields(results.map(({ statementFields }) => statementFields)),
        readsPages: results.some(({ readsPages }) => readsPages),
      });
    const { writeReportPage } = await import('../reports/report.tsx');
    const reportMetadata = {
      title,
      writtenAt: now,
      isDemo,
      version: serverVersion,
      headings,
      missingAdNotes: listNotesOfEmptyResult(buildReportCoverage()),
      methodology: { ...method, describeCoverage: () => formatCoverage(buildReportCoverage()) },
    };
    const { html, missingPictures } = await writeReportPage(reportMetadata, generateSections(), () =>
      loadThumbnails(
        results.flatMap(({ pictures }) => pictures),
        context,
      ),
    );
    // Store the report before the file is written. Otherwise, a file would be left behind if storing fails.
    let hasReplacedReport = false;
    if (name !== undefined) {
      const runs = [{ writtenAt: now, rows: results.map(({ row }) => row) }, ...(previousRun ? [previousRun] : [])];
      const report = { name, title, sections: sectionInputs, runs };
      hasReplacedReport = await saveReport(dataset.userRecords, report, input.again !== undefined);
    }
    const bytes = Buffer.from(html);
    const file = await context.getExports().create({
      name: `${name ?? `report-${formatDay(now)}`}.html`,
      mimeType: 'text/html',
      ttlMs: reportTtlMs,
      write: (writeChunk) => writeChunk(bytes),
    });
    const coverage = buildReportCoverage();
    const rowTokens = Math.min(maxFirstRowsTokens, getMaxItemTokens(context) / 2) / results.length;
    const sectionViews = results.map(({ heading, rowCount, tablePreview, previousFigures, pictures, problem }) => ({
      heading,
      ...(rowCount !== undefined && { rows: rowCount }),
      ...(tablePreview && selectFirstRows(tablePreview, rowTokens)),
      ...(previousFigures && { last: buildLastFigures(previousFigures) }),
      ...(pictures.length > 0 && { ads: pictures.length }),
      ...(problem && { problem }),
    }));
    const note = [
      hasReplacedReport && name !== undefined && formatReplacedReportNote(name),
      name !== undefined && !dataset.userRecords.isPersistent && inMemoryReportNote,
    ]
      .filter(Boolean)
      .join(' ');
    return {
      data: {
        ...buildFileLocationFields(file, context),
        bytes: file.bytes,
        sections: sectionViews,
        coverage,
        ...(note && { note }),
      },
      text: joinLines([
        `${quoteUnlessWord(file.name)}: ${formatCount(sectionViews.length, 'section')}, ${formatNumber(file.bytes)} bytes. ${formatFileLocation(file, context)}.`,
        ...sectionViews.map(formatSection),
        missingPictures.length > 0 &&
          `${formatCount(missingPictures.length, 'picture')} could not be shown. ${formatMissingPictureReasons(missingPictures)}.`,
        formatCoverage(
          coverage,
          results.flatMap(({ notesOfEmptyResult = [] }) => notesOfEmptyResult),
        ),
        note,
      ]),
      attachments: [createResourceLink(file)],
    };
  },
});

const formatReplacedReportNote = (name: string) =>
  `This report has replaced the stored report ${quote(name)}, including its texts and earlier figures. To update a stored report instead, call write_report with again: ${quote(name)}.`;
const inMemoryReportNote = 'The report is kept in memory under its name, and ends with this server.';

/**
 * The maximum number of tokens for the first table rows that the result quotes from the report, for all sections
 * combined.
 */
const maxFirstRowsTokens = 1500;

type SavedSection = SavedReport['sections'][number];

async function readReportInput(input: z.output<typeof ReportInput>, userRecords: UserRecords, now: number) {
  const { title, sections, name, again, texts } = input;
  if (again === undefined) {
    if (title === undefined || sections === undefined || texts !== undefined)
      throw createInvalidRequestError(
        'Pass title and sections, or again with the name of a kept report, alone or with texts.',
      );
    const datedSections = sections.map((section) => ({ ...section, textWrittenAt: now }));
    return { title, name: name?.trim(), sections: datedSections, previousRun: undefined };
  }
  checkExclusiveArguments({ again, title, sections, name });
  const [storedReport] = findRecordsByName('kept report', parseReports(await userRecords.read('report')), [again]);
  if (storedReport === undefined) throw createInvalidRequestError('again must be a name.');
  if (texts && texts.length !== storedReport.sections.length)
    throw createInvalidRequestError(
      `texts must have one text for each of the ${storedReport.sections.length} sections (empty: the kept one): ${joinNames(storedReport.sections.map(({ heading }) => quote(heading)))}.`,
    );
  const updatedSections = storedReport.sections.map((section, index): SavedSection => {
    const text = texts?.[index]?.trim();
    return text ? { ...section, text, textWrittenAt: now } : section;
  });
  return { ...storedReport, sections: updatedSections, previousRun: findRunOfEarlierDay(storedReport, now) };
}

/**
 * Builds the result field `last`. Its key `at` contains the day of the earlier report. A column of the same name is
 * therefore called `at (column)`.
 */
function buildLastFigures({ row, reportWrittenAt }: NonNullable<SectionResult['previousFigures']>) {
  const { at: atFigure, ...figures } = row;
  return {
    ...figures,
    ...(atFigure !== undefined && { 'at (column)': atFigure }),
    at: formatDay(reportWrittenAt),
  };
}

/** Formats the facts about a section, e.g. `"Calls to action", 14 rows; first rows of …`. */
function formatSection(section: DataOf<typeof ReportSectionView>): string {
  const { heading, rows, ads, problem, last } = section;
  const facts = [
    quote(heading),
    rows === null ? 'more than 100,000 rows' : rows !== undefined && formatCount(rows, 'row'),
    ads !== undefined && formatCount(ads, 'ad'),
    last &&
      `on ${last.at}: ${Object.entries(last)
        .flatMap(([name, value]) => (name === 'at' ? [] : `${quoteUnlessWord(name)} ${value}`))
        .join(', ')}`,
    problem,
  ];
  return formatFirstRows(section, facts.filter(Boolean).join(', '));
}

const maxTableRows = 200;
const maxCellChars = 300;
const maxChartRows = 1000;
const maxListedGatherings = 60;

interface SectionResult {
  heading: string;
  /** The number of rows in the whole result. null if there are more than 100,000 rows. */
  rowCount?: number | null;
  tablePreview?: { columns: readonly string[]; firstRows: readonly (readonly Cell[])[] };
  /** The ad fields that the section's SQL statement reads. They are needed for notes on fields that many ads lack. */
  statementFields?: StatementFields | undefined;
  /** True if the section's SQL statement reads the table `pages`, which may contain only some of the advertisers. */
  readsPages?: boolean;
  /**
   * Sentences about incomplete searches, if the section has no rows. These sentences are already part of `problem`, so
   * the coverage text does not repeat them.
   */
  notesOfEmptyResult?: readonly string[];
  /**
   * The row of a table with a single row, or null for any other table. Later reports compare their figures with this
   * row.
   */
  row: ReturnType<typeof buildStoredRow>;
  /** The figures of this section in an earlier report. */
  previousFigures?: ReportSection['previousFigures'];
  pictures: { adId: string; picture: AdPicture }[];
  /** A problem to report to the caller. The text may mention SQL, so the report itself does not contain it. */
  problem?: string | undefined;
}

async function buildSection(
  section: SavedSection,
  ads: ReportAds,
  coverageInput: Awaited<ReturnType<typeof readCoverageInput>>,
  context: ToolContext,
) {
  const { contents } = coverageInput;
  const { heading, sql, chart, adIds = [] } = section;
  const text = section.text?.trim() ? section.text : undefined;
  const { now, isDemo, signal } = context;
  const writtenAt = text !== undefined && section.textWrittenAt !== now ? section.textWrittenAt : undefined;
  const problems: string[] = [];
  const reportSection: ReportSection = { heading, text, textWrittenAt: writtenAt };
  const result: SectionResult = { heading, row: null, pictures: [] };
  if (sql === undefined && chart !== undefined) problems.push('A chart needs sql, whose rows it draws.');
  if (sql !== undefined) {
    try {
      const limit = chart === undefined ? maxTableRows : maxChartRows;
      const { columns, rows, rowCount, statementFields, isAboutAds, readsPages } = await context
        .getDatasetSql()
        .query(contents, { sql, limit, maxCellChars, signal });
      result.rowCount = rowCount;
      result.statementFields = statementFields;
      result.readsPages = readsPages;
      if (isAboutAds && isEmptySqlResult(rows, rowCount)) {
        result.notesOfEmptyResult = listNotesOfEmptyResult(buildCoverageView(coverageInput));
        problems.push(...result.notesOfEmptyResult);
      }
      result.tablePreview = { columns, firstRows: rows.slice(0, maxFirstRows) };
      if (rowCount === 1) result.row = buildStoredRow(columns, rows[0] ?? []);
      reportSection.table = { columns, rows: rows.slice(0, maxTableRows), rowCount };
      const chartedRows = { columns, rows, sql, isTruncated: rowCount !== rows.length };
      const readAtMs = getLaunchCoverage(contents)?.completeUntil;
      const notes =
        chart && isAboutAds
          ? listCaptionNotes({
              ...coverageInput,
              columns,
              rows,
              maxCellChars,
              fieldsByStatement: mergeStatementFields([statementFields]),
              readsPages,
            })
          : [];
      const wideChart = chart && buildChart(chart, chartedRows, { readAtMs, isDemo, notes });
      const narrowChart = chart && buildChart(chart, chartedRows, { readAtMs, isDemo, notes, isNarrow: true });
      if (wideChart && 'problem' in wideChart) problems.push(`There is no chart: ${wideChart.problem}.`);
      else if (wideChart && narrowChart && 'shapes' in narrowChart) {
        reportSection.charts = { wide: wideChart, narrow: narrowChart };
        if (chartedRows.isTruncated) problems.push(formatOmittedChartRows(rows.length, rowCount));
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof AdLibraryError)) throw error;
      problems.push(error.message);
      reportSection.problem = 'The rows of this section could not be read.';
    }
  }
  const unknownIds = adIds.filter((id) => !ads.items.has(normalizeAdId(id)));
  if (unknownIds.length > 0) {
    problems.push(
      `${joinNames(unknownIds.map(quoteUnlessWord))} ${unknownIds.length === 1 ? 'is' : 'are'} not in the dataset.`,
    );
  }
  const items = [...new Set(adIds.map(normalizeAdId))].flatMap((key) => ads.items.get(key) ?? []);
  const cards = items.map((item) => buildReportCard(parseItem(item) as UntypedFields, { ...item, now }));
  reportSection.ads = cards.map(({ card }) => ({
    ...card,
    labels: formatLabels(ads.labels.get(normalizeAdId(card.id))),
  }));
  result.pictures = cards.map(({ card, picture }) => ({ adId: card.id, picture }));
  result.problem = problems.join(' ') || undefined;
  reportSection.problem ??= result.problem;
  return { ...result, reportSection };
}

/** Formats the number of rows that a chart shows, e.g. `The chart shows only the first 1,000 of 1,500 rows.` */
const formatOmittedChartRows = (chartedCount: number, rowCount: number | null): string =>
  `The chart shows only the first ${formatNumber(chartedCount)} of ${rowCount === null ? 'more than 100,000' : formatNumber(rowCount)} rows.`;

type ReportAds = ReturnType<typeof pickAdsOfSections>;

function pickAdsOfSections(contents: DatasetContents, sections: readonly SavedSection[]) {
  const adKeys = new Set(sections.flatMap(({ adIds = [] }) => adIds.map(normalizeAdId)));
  return { items: pickAdsById(contents, adKeys), labels: groupLabelsByAd(contents, adKeys) };
}

function buildMethod(sections: readonly SavedSection[], contents: DatasetContents) {
  const statements = sections.flatMap(({ heading, sql }) => (sql === undefined ? [] : [{ heading, sql }]));
  const gatherings = selectPaidGatherings(contents).slice(0, maxListedGatherings);
  const listedGatheringIds = new Set(gatherings.flatMap(({ id, partGatheringIds }) => [id, ...partGatheringIds]));
  return {
    adCount: contents.ads.length,
    gatheredAdCount: countGatheredAds(contents),
    gatherings,
    unlistedGatheringCount: omitPartsOfSplits(contents).filter(({ id }) => !listedGatheringIds.has(id)).length,
    readingPeriod: getReadingPeriod(contents),
    cost: sumGatheringCharges(contents),
    statements,
  };
}
