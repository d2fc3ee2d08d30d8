import { decodeText, hasInvalidBytes, notUtf8Problem, peekFirst } from './decode-text.ts';
import { readJson } from './json.ts';
import { type SourceEntry, UnreadableSourceError } from './source-entry.ts';
import { detectTable, readTableRows, type Table } from './table.ts';

export interface SourceCallbacks {
  /** The source is a table. */
  onTable(table: Table): void;
  /** A value on this line has `NaN` or `Infinity`, which are read as null. */
  onNaN(line: number): void;
}

/**
 * The records of a source, whose layout is found by content: JSON in any layout, or a table of cells. Memory is bounded
 * by the longest record and a batch of text.
 * @throws UnreadableSource
 */
export async function* readSource(
  source: AsyncIterable<string | Uint8Array>,
  { onTable, onNaN }: SourceCallbacks,
): AsyncGenerator<SourceEntry[]> {
  const { first = '', all } = await peekFirst(decodeText(source));
  if (!/^\s*(?:[[{]|for\s?\(;;\);|while\s?\(1\);|\)\]\}')/.test(first.slice(0, 1000))) {
    const table = await detectTable(first);
    if (table) {
      onTable(table);
      yield* readTableRows(all, table);
      return;
    }
    if (first.trim() !== '' && !bracketLine.test(first)) throw new UnreadableSourceError(problemOf(first));
  }
  yield* readJson(all, onNaN);
}

/** Some line begins like JSON. The lines before it are damaged. */
const bracketLine = /^[^\S\n\r\u2028\u2029]*[[{]/m;

function problemOf(text: string): string {
  const head = text.slice(0, 64 * 1024);
  if (hasInvalidBytes(head.split('\n', 1)[0] ?? '')) return notUtf8Problem;
  return 'neither JSON nor a table of ads: no line of column names has "headline" or "body" (ads of your own) or "ad_archive_id" (ads of the Meta Ad Library)';
}
