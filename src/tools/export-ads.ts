import * as z from 'zod';
import { coverageText, viewCoverage } from '../dataset/coverage.ts';
import {
  type ExportCounts,
  type ExportFormat,
  everyAdSql,
  methodsNote,
  type RunStatement,
  writeExport,
} from '../dataset/export.ts';
import { dayOf } from '../present/dates.ts';
import { count } from '../present/lists.ts';
import { word } from '../present/safe-text.ts';
import { idKey } from '../state/dataset.ts';
import { fileName } from './arguments.ts';
import { addressesOf, defineListTool, linkTo, locationText } from './tool.ts';

/** As registered at IANA. */
const mimeTypes: Record<ExportFormat, string> = {
  csv: 'text/csv',
  jsonl: 'application/jsonl',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  parquet: 'application/vnd.apache.parquet',
};

const noteEnding = '-methods.md';

export const exportAds = defineListTool({
  name: 'export_ads',
  title: 'Export a spreadsheet or file',
  description:
    'Download gathered ads, or the rows of any SELECT, as a spreadsheet or file (CSV, JSON Lines, Excel, Parquet) with a note on how they were gathered. The result says where it is and how long.',
  guide: 'export_ads writes files for the user.',
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  example: () => ({ name: 'ads' }),
  operations: [],
  input: z.strictObject({
    sql: z.string().optional().describe('as in query_ads; default: every ad, all columns but json; SELECT * brings it'),
    format: z.enum(['csv', 'jsonl', 'xlsx', 'parquet']).optional().describe('default csv'),
    name: fileName,
  }),
  output: z.looseObject({
    uri: z.string().describe('the file as a resource, for an hour'),
    file: z.string().optional().describe('path to open'),
    link: z.string().optional().describe('address to open, for an hour'),
    rows: z.number(),
    bytes: z.number(),
    methods: z.string().describe('a resource: how the ads were gathered'),
    cut: z.number().optional().describe('cells that Excel could not hold in full'),
  }),
  async run({ sql = everyAdSql, format = 'csv', name: chosen }, context) {
    const { signal, now, version } = context;
    const contents = await (await context.dataset()).contents();
    const exports = context.exports();
    const name = chosen ?? `ads-${dayOf(now)}`;
    let counts: ExportCounts = { rows: 0, cut: 0, ids: undefined };
    const file = await exports.create({
      name: `${name}.${format}`,
      besideEnding: noteEnding,
      mimeType: mimeTypes[format],
      write: async (take, maxBytes) => {
        const run: RunStatement = (read) => context.sql().export(contents, { sql, signal }, read);
        counts = await writeExport(run, { format, write: take, maxBytes });
      },
    });
    const { rows, cut, ids } = counts;
    const known = await context.adRows.knownAds(context.tenantId, contents);
    const listed = ids && { columns: ['id'], rows: [...ids].map((id) => [id]) };
    const coverage = viewCoverage({ contents, known, ...listed });
    const adIds = ids && new Set([...ids].flatMap((id) => (typeof id === 'string' ? idKey(id) : [])));
    const noteText = methodsNote({ contents, coverage, sql, rows, adIds, now, version });
    const note = await exports
      .create({
        name: `${file.name.slice(0, -`.${format}`.length)}${noteEnding}`,
        mimeType: 'text/markdown',
        write: (take) => take(Buffer.from(noteText)),
      })
      .catch(async (error) => {
        await file.discard?.();
        throw error;
      });
    const data = { ...addressesOf(file, context), rows, bytes: file.bytes, methods: note.uri, ...(cut > 0 && { cut }) };
    const cutText =
      cut === 0 ? '' : `${count(cut, 'cell')} had more than 32,767 characters, Excel's limit, and were cut.\n`;
    return {
      data,
      text:
        `${word(file.name)}: ${count(rows, 'row')}, ${file.bytes} bytes. ${locationText(file, context, note)}, and how the ads were gathered as ${note.uri}.\n` +
        cutText +
        coverageText(coverage),
      attached: [linkTo(file), linkTo(note)],
    };
  },
});
