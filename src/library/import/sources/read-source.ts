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
  if (jsonpPattern.test(firstBatch.slice(0, 1000))) {
    yield* readJson(unwrapJsonp(batches), options);
    return;
  }
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

/** Matches the start of JSONP, which passes JSON to a function so that web pages can load it, e.g. `callback({`. */
const jsonpPattern = /^\s*(?:\/\*\*\/\s*)?[A-Za-z_$][\w$.]{0,80}\(\s*(?=[[{])/;
/** The number of characters at the end of a source in which to search for the end of the function call. */
const maxJsonpEndLength = 32;

/** Removes the function call from JSONP, so that only its JSON remains. */
async function* unwrapJsonp(batches: AsyncIterable<string>): AsyncGenerator<string> {
  let pending: string | undefined;
  for await (const batch of batches) {
    const text = pending === undefined ? batch.replace(jsonpPattern, '') : pending + batch;
    yield text.slice(0, -maxJsonpEndLength);
    pending = text.slice(-maxJsonpEndLength);
  }
  yield (pending ?? '').trimEnd().replace(/\)\s?;?$/, '');
}

/** Matches a line that starts like JSON. If there is one, the lines before it are reported as damaged. */
const jsonLinePattern = /^[^\S\n\r\u2028\u2029]*[[{]/m;

function describeProblem(text: string): string {
  const head = text.slice(0, 64 * 1024);
  if (hasInvalidBytes(head.split('\n', 1)[0] ?? '')) return notUtf8Problem;
  return 'neither JSON nor a table of ads: no line of column names contains a name such as "headline" or "body" (a table of your own), "ad_archive_id" (Meta), "creative_id" (Google), "first_shown_date" (TikTok) or "adUrl" (LinkedIn); "library formats" lists the formats';
}
