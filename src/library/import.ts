import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Ad } from '../api/schemas.ts';
import { loadAdLanguage } from './ad-language.ts';
import { csvDelimiter, csvPieces } from './csv-pieces.ts';
import { addProblem, emptyReport, type ImportReport } from './import-report.ts';
import { textOf, UnreadableSource } from './import-text.ts';
import { JsonPieces } from './json-pieces.ts';
import type { Piece } from './piece.ts';
import { archiveKeys } from './public-archive.ts';
import { type Entry, readEntry } from './read-record.ts';
import type { Records } from './records.ts';
import type { ServiceContext } from './service-context.ts';

/** Milliseconds of work per transaction, after which other callers get a turn. */
const sliceMs = 50;

/**
 * Loads ads and pages in the API's shapes, or in those of the public ad library. The format is found by content: JSON
 * of any layout, or CSV, compressed or not. A record replaces one with the same id; one that cannot be used is skipped
 * and reported. Memory is bounded by the longest record and a batch of text. Work is cut into short transactions, and
 * other callers get a turn after each.
 */
export async function importRecords(
  { database, records }: Pick<ServiceContext, 'database' | 'records'>,
  source: AsyncIterable<string | Uint8Array>,
): Promise<ImportReport> {
  const report = emptyReport();
  const withLanguage = await loadAdLanguage();
  const position = { line: 1, path: '' };
  try {
    for await (const pieces of piecesOf(textOf(source, (note) => report.notes.push(note)))) {
      const entries = entriesOf(pieces, { records, report, position });
      for (let done = false; !done; ) {
        const end = performance.now() + sliceMs;
        database.unsynced(() => {
          while (!done && performance.now() < end) {
            const next = entries.next();
            if (next.done) done = true;
            else if (next.value) put(next.value, { records, report, withLanguage });
          }
        });
        await nextTurn();
      }
    }
  } catch (error) {
    if (!(error instanceof UnreadableSource)) throw error;
    addProblem(report, position, error);
  }
  database.sync();
  return report;
}

async function* piecesOf(text: AsyncGenerator<string>): AsyncGenerator<Iterable<Piece>> {
  const { value: head = '' } = await text.next();
  const all = withFirst(head, text);
  const delimiter = csvDelimiter(head);
  if (delimiter !== undefined) return yield* csvPieces(all, delimiter);
  const json = new JsonPieces(new Set([...archiveKeys, 'id', 'pageId']));
  for await (const chunk of all) yield json.read(chunk);
  yield json.end();
}

async function* withFirst(first: string, rest: AsyncGenerator<string>): AsyncGenerator<string> {
  yield first;
  yield* rest;
}

/** One step per piece. Skipped ones give `undefined`, because skipping takes time too. */
function* entriesOf(
  pieces: Iterable<Piece>,
  { records, report, position }: { records: Records; report: ImportReport; position: { line: number } },
): Generator<Entry | undefined, void> {
  for (const piece of pieces) {
    position.line = piece.line;
    let entry: Entry | undefined;
    try {
      entry = readEntry(piece, records.page);
    } catch (error) {
      addProblem(report, piece, error);
    }
    yield entry;
  }
}

interface Import {
  records: Records;
  report: ImportReport;
  withLanguage(ad: Ad): Ad;
}

function put(entry: Entry, { records, report, withLanguage }: Import): void {
  const isKnown =
    'ad' in entry ? records.putAd(withLanguage(entry.ad), entry.json) : records.putPage(entry.page, entry.json);
  if (isKnown) report.updated++;
  if ('page' in entry) report.pages++;
  else {
    report.ads++;
    if (entry.fromPublicArchive) report.fromPublicArchive++;
  }
}
