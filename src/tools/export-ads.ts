import * as z from 'zod';
import { coverageText, viewCoverage } from '../dataset/coverage.ts';
import { type ExportFormat, everyAdSql, methodsNote, writeExport } from '../dataset/export.ts';
import { count } from '../present/list-text.ts';
import { quote, word } from '../present/safe-text.ts';
import { dayOf } from '../present/values.ts';
import type { ExportedFile } from '../state/exports.ts';
import { defineListTool, type ResourceLink } from './tool.ts';

const mimeTypes: Record<ExportFormat, string> = { csv: 'text/csv', jsonl: 'application/jsonl' };

const noteEnding = '-methods.md';

export const exportAds = defineListTool({
  name: 'export_ads',
  title: 'Export gathered ads',
  description:
    'Write gathered ads, or the rows of any SELECT, to a CSV or JSON Lines file with a note on how they were gathered, as resources that the host can read for an hour, or as files where AD_LIBRARY_FILES names a folder.',
  guide: 'export_ads writes files for the user.',
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  example: () => ({ name: 'ads' }),
  operations: [],
  input: z.strictObject({
    sql: z.string().optional().describe('as in query_ads; default: every ad, without json'),
    format: z.enum(['csv', 'jsonl']).optional().describe('default csv'),
    name: z
      .string()
      .regex(/^[A-Za-z0-9][\w -]{0,79}$/, 'must be 1 to 80 letters, digits, spaces, - or _, without an ending')
      .optional()
      .describe('of the file, without its ending'),
  }),
  output: z.looseObject({ uri: z.string(), file: z.string().optional(), rows: z.number(), bytes: z.number() }),
  async run({ sql = everyAdSql, format = 'csv', name: chosen }, context) {
    const { signal, now, version } = context;
    const contents = await (await context.dataset()).contents();
    const exports = context.exports();
    const name = chosen ?? `ads-${dayOf(now)}`;
    let rows = 0;
    const file = await exports.create({
      name: `${name}.${format}`,
      besideEnding: noteEnding,
      mimeType: mimeTypes[format],
      write: (take) =>
        context.sql().export(contents, { sql, signal }, async (exported) => {
          const { maxBytes } = exports;
          ({ rows } = await writeExport(exported, { format, write: take, maxBytes }));
        }),
    });
    const known = await context.adRows.knownAds(context.tenantId, contents);
    const coverage = viewCoverage({ contents, known, sql });
    const noteText = methodsNote({ contents, coverage, sql, rows, now, version });
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
    const data = { uri: file.uri, ...(file.path && { file: file.path }), rows, bytes: file.bytes, methods: note.uri };
    return {
      data,
      text: exportText(file, note, rows) + coverageText(coverage),
      attached: [linkTo(file), linkTo(note)],
    };
  },
});

function exportText(file: ExportedFile, note: ExportedFile, rows: number): string {
  const readable = `can be read for an hour as ${file.uri}, and how the ads were gathered as ${note.uri}`;
  const location =
    file.path === undefined
      ? `It ${readable}`
      : `It is in ${quote(file.path)}, with ${word(note.name)} beside it, and ${readable}`;
  return `${word(file.name)}: ${count(rows, 'row')}, ${file.bytes} bytes. ${location}.\n`;
}

const linkTo = ({ uri, name, mimeType, bytes }: ExportedFile): ResourceLink => ({
  type: 'resource_link',
  uri,
  name,
  mimeType,
  size: bytes,
});
