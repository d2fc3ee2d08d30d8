import { decodeText, hasInvalidBytes, notUtf8Problem, peekFirst } from './decode-text.ts';
import { type JsonOptions, readJson } from './json.ts';
import { type SourceEntry, UnreadableSourceError } from './source-entry.ts';
import { detectTable, readTableRows, type Table } from './table.ts';

/** What `readSource` needs in addition to `readJson`. */
export interface SourceOptions extends JsonOptions {
  /** Called once if the source is a table. */
  onTable(table: Table): void;
  /** Called if the text is Windows-1252. */
  onWindows1252?(): void;
}

/**
 * Reads the records of a source, in batches. The source's content determines whether it is read as JSON or as a table.
 * The memory usage is limited by the longest record and one batch of text.
 * @throws UnreadableSourceError if the source, or the rest of it, cannot be read
 */
export async function* readSource(
  source: AsyncIterable<string | Uint8Array>,
  { onTable, onWindows1252, ...options }: SourceOptions,
): AsyncGenerator<SourceEntry[]> {
  const { firstItem: firstBatch = '', allItems: batches } = await peekFirst(decodeText(source, onWindows1252));
  if (!/^\s*(?:[[{]|for\s?\(;;\);|while\s?\(1\);|\)\]\}')/.test(firstBatch.slice(0, 1000))) {
    const table = await detectTable(firstBatch, options.detector);
    if (table) {
      onTable(table);
      yield* readTableRows(batches, table);
      return;
    }
    if (firstBatch.trim() !== '' && !jsonLinePattern.test(firstBatch))
      throw new UnreadableSourceError(describeProblem(firstBatch));
  }
  yield* readJson(batches, options);
}

/** Matches a line that starts like JSON. If there is one, the lines before it are reported as damaged. */
const jsonLinePattern = /^[^\S\n\r\u2028\u2029]*[[{]/m;

function describeProblem(text: string): string {
  const head = text.slice(0, 64 * 1024);
  if (hasInvalidBytes(head.split('\n', 1)[0] ?? '')) return notUtf8Problem;
  return 'neither JSON nor a table of ads: no line of column names contains "headline" or "body" (a table of your own) or "ad_archive_id" (ads of the Meta Ad Library)';
}
