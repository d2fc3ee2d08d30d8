import * as z from 'zod';
import { createInvalidRequestError } from '../api/errors.ts';
import {
  buildCoverageView,
  buildCoverageWithoutAds,
  FileCoverageView,
  formatCoverage,
  listNotesOfEmptyResult,
} from '../dataset/coverage.ts';
import { mergeStatementFields } from '../dataset/coverage-notes.ts';
import {
  allAdsSql,
  type ExportFormat,
  type ExportStatement,
  methodSheetName,
  type StatementSummary,
  writeExport,
} from '../dataset/export.ts';
import { buildMethodNote, buildMethodNoteRows, renderMethodNoteMarkdown } from '../dataset/method-note.ts';
import { normalizeAdId } from '../storage/dataset.ts';
import { formatDay } from '../views/dates.ts';
import { formatCount, formatNumber, sumNumbers } from '../views/numbers.ts';
import { joinLines, normalizeLine, quote, quoteUnlessWord } from '../views/safe-text.ts';
import { checkExclusiveArguments, fileNameSchema } from './arguments.ts';
import { readCoverageInput } from './coverage-input.ts';
import { FirstRows, formatFirstRows, selectFirstRows } from './first-rows.ts';
import { buildFileLocationFields, createResourceLink, defineTool, formatFileLocation } from './tool.ts';

/** The media type of each export format, as registered with IANA. */
const mimeTypes: Record<ExportFormat, string> = {
  csv: 'text/csv',
  jsonl: 'application/jsonl',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  parquet: 'application/vnd.apache.parquet',
};

const methodNoteSuffix = '-methods.md';

const Sheet = z.strictObject({
  name: z.string().describe('Name of the sheet.'),
  sql: z.string().describe('One SELECT.'),
});

const SheetView = z
  .looseObject({
    name: z.string().describe('Name of the sheet.'),
    rows: z.number().describe('Number of rows of the sheet.'),
    ...FirstRows.shape,
  })
  .meta({ title: 'Sheet' });

export const exportAds = defineTool({
  name: 'export_ads',
  title: 'Export a spreadsheet or file',
  description:
    'Export gathered ads, or the rows of SELECT statements, as a spreadsheet or file to download (CSV, JSON Lines, Excel, Parquet), with a header row and a note on how the ads were gathered. The result says where the file is.',
  usageHint: 'export_ads writes files for the user.',
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  createsFile: true,
  buildExampleArguments: () => ({ name: 'ads' }),
  operations: [],
  inputSchema: z.strictObject({
    sql: z.string().optional().describe('One SELECT. Default: all ads with all columns except json.'),
    sheets: z
      .array(Sheet)
      .refine(({ length }) => length > 0 && length <= 10, 'must be 1 to 10 sheets')
      .optional()
      .describe('For xlsx: one sheet per statement, instead of sql.'),
    format: z.enum(['csv', 'jsonl', 'xlsx', 'parquet']).optional().describe('Default csv.'),
    name: fileNameSchema,
  }),
  createOutputSchema: () =>
    z.looseObject({
      uri: z.string().describe('URI of the file as an MCP resource, for an hour.'),
      file: z.string().optional().describe('Path of the file.'),
      link: z.string().optional().describe('URL of the file, for an hour.'),
      rows: z.number().describe('Number of rows of all sheets.'),
      bytes: z.number().describe('Size of the file in bytes.'),
      ...FirstRows.shape,
      sheets: z.array(SheetView).optional().describe('One entry for each sheet of sheets.'),
      coverage: FileCoverageView,
      methods: z.string().describe('URI of the note on how the ads were gathered, as an MCP resource.'),
      cut: z.number().optional().describe('Number of cells that were shortened, because Excel limits their length.'),
    }),
  async run({ sql, sheets, format = sheets ? 'xlsx' : 'csv', name: requestedName }, context) {
    checkExclusiveArguments({ sql, sheets });
    const { signal, now: exportedAt, serverVersion } = context;
    const sheetsToExport = sheets ? normalizeSheets(sheets, format) : [{ name: 'Ads', sql: sql ?? allAdsSql }];
    const contents = await (await context.openDataset()).readContents();
    const coverageInput = await readCoverageInput(contents, context);
    const describeExport = (exportedSheets: readonly StatementSummary[]) => {
      const adIds = collectAdIds(exportedSheets, coverageInput.adFacts);
      const idRows = adIds && { columns: ['id'], rows: [...adIds].map((id) => [id]) };
      const fieldsByStatement = mergeStatementFields(exportedSheets.map((sheet) => sheet.statementFields));
      const isAboutAds = exportedSheets.some((sheet) => sheet.isAboutAds);
      const readsPages = exportedSheets.some((sheet) => sheet.readsPages);
      const coverage = isAboutAds
        ? buildCoverageView({ ...coverageInput, ...idRows, fieldsByStatement, readsPages })
        : buildCoverageWithoutAds(contents);
      return {
        coverage,
        isAboutAds,
        note: buildMethodNote({
          coverageInput,
          coverage,
          exportedStatements: exportedSheets,
          adIds,
          exportedAt,
          serverVersion,
        }),
      };
    };
    const tenantExports = context.getExports();
    let statementSummaries: StatementSummary[] = [];
    const file = await tenantExports.create({
      name: `${requestedName ?? `ads-${formatDay(exportedAt)}`}.${format}`,
      companionSuffix: methodNoteSuffix,
      mimeType: mimeTypes[format],
      write: async (writeChunk, maxBytes) => {
        const statements = sheetsToExport.map(
          (statement): ExportStatement => ({
            ...statement,
            runStatement: (readRows) =>
              context.getDatasetSql().exportRows(contents, { sql: statement.sql, signal }, readRows),
          }),
        );
        const buildMethodRows = (exportedStatements: readonly StatementSummary[]) =>
          buildMethodNoteRows(describeExport(exportedStatements).note);
        statementSummaries = await writeExport(statements, {
          format,
          buildMethodRows,
          writeBytes: writeChunk,
          maxBytes,
        });
      },
    });
    const { coverage, isAboutAds, note: methodNote } = describeExport(statementSummaries);
    const emptyResultNotes =
      sumNumbers(statementSummaries.map((statement) => statement.rowCount)) === 0
        ? listNotesOfEmptyResult(coverage)
        : [];
    const noteFile = await tenantExports
      .create({
        name: `${file.name.slice(0, -`.${format}`.length)}${methodNoteSuffix}`,
        mimeType: 'text/markdown',
        write: (writeChunk) => writeChunk(Buffer.from(renderMethodNoteMarkdown(methodNote))),
      })
      .catch(async (error) => {
        await file.discard?.();
        throw error;
      });
    const rows = sumNumbers(statementSummaries.map((statement) => statement.rowCount));
    const truncatedCellCount = sumNumbers(statementSummaries.map((statement) => statement.truncatedCellCount));
    const firstRowsBySheet = statementSummaries.map((statement) =>
      selectFirstRows(
        { columns: statement.columns, firstRows: statement.firstRows },
        maxFirstRowsTokens / statementSummaries.length,
      ),
    );
    const sheetViews = statementSummaries.map((statement, index) => ({
      name: statement.name,
      rows: statement.rowCount,
      ...firstRowsBySheet[index],
    }));
    const truncationText = `${formatCount(truncatedCellCount, 'cell')} had more than 32,767 characters, Excel's limit, and were cut.`;
    return {
      data: {
        ...buildFileLocationFields(file, context),
        rows,
        bytes: file.bytes,
        ...(sheets ? { sheets: sheetViews } : firstRowsBySheet[0]),
        coverage,
        methods: noteFile.uri,
        ...(truncatedCellCount > 0 && { cut: truncatedCellCount }),
      },
      text: joinLines([
        ...emptyResultNotes,
        `${quoteUnlessWord(file.name)}: ${formatCount(rows, 'row')}, ${formatNumber(file.bytes)} bytes. ${formatFileLocation(file, context, noteFile)}, and how the ads were gathered as ${noteFile.uri}.`,
        ...sheetViews.map((sheetView) =>
          formatFirstRows(sheetView, sheets && `${quote(sheetView.name)}, ${formatCount(sheetView.rows, 'row')}`),
        ),
        truncatedCellCount > 0 && truncationText,
        isAboutAds && formatCoverage(coverage, emptyResultNotes),
      ]),
      attachments: [createResourceLink(file), createResourceLink(noteFile)],
    };
  },
});

const maxFirstRowsTokens = 600;

/**
 * Returns the ids of all exported ads, in lower case. Ignores ids without an ad in the dataset, because a column `id`
 * may also contain other ids, e.g. of watches. Returns undefined if the rows of an SQL statement cannot be traced to
 * ads.
 */
function collectAdIds(
  exportedSheets: readonly StatementSummary[],
  adFacts: ReadonlyMap<string, unknown>,
): Set<string> | undefined {
  const adIds = new Set<string>();
  for (const { distinctIds, rowCount } of exportedSheets) {
    if (distinctIds === undefined) return undefined;
    const statementAdIds = [...distinctIds].map((id) => normalizeAdId(String(id))).filter((id) => adFacts.has(id));
    if (statementAdIds.length === 0 && rowCount > 0) return undefined;
    for (const id of statementAdIds) adIds.add(id);
  }
  return adIds;
}

/**
 * Normalizes the names of the requested sheets.
 * @throws AdLibraryError `invalid_request` if the format is not xlsx, or if a name is invalid or used twice
 */
function normalizeSheets(sheets: readonly z.output<typeof Sheet>[], format: ExportFormat) {
  if (format !== 'xlsx') throw createInvalidRequestError('sheets are sheets of Excel: leave out format, or pass xlsx.');
  const usedNames = new Set([methodSheetName.toLowerCase(), 'history']);
  return sheets.map(({ name: requestedName, sql }) => {
    const name = normalizeLine(requestedName);
    const problem =
      name === '' || name.length > 31 || /[[\]:*?/\\]|^'|'$/.test(name)
        ? 'must have 1 to 31 characters, without []:*?/\\ and without an apostrophe at an end'
        : usedNames.has(name.toLowerCase()) && 'is taken: each name once, and neither Method nor History';
    if (problem) throw createInvalidRequestError(`The name ${quote(name)} of a sheet ${problem}.`);
    usedNames.add(name.toLowerCase());
    return { name, sql };
  });
}
