import { decodeText, type GuessedEncoding, hasInvalidBytes, notUtf8Problem, peekFirstItem } from './decode-text.ts';
import { type JsonReaderOptions, readJson } from './json.ts';
import { type SourceEntry, UnreadableSourceError } from './source-entry.ts';
import { detectTable, readTableRows, type TableLayout } from './table.ts';

/** The options of `readSource`, including the options of the JSON reader. */
export interface SourceOptions extends JsonReaderOptions {
  /** Called once, before the first row is read, if the source is a table. */
  onTableDetected(table: TableLayout): void;
  /** Called if the text is not encoded in UTF-8 or UTF-16, so that its encoding had to be guessed. */
  onEncodingGuessed?(encoding: GuessedEncoding): void;
}

/**
 * Reads the records of a source in batches. Detects from the content whether the source is JSON or a table. At any
 * time, the memory contains at most one batch of text and the longest record.
 * @throws UnreadableSourceError if the source, or the rest of it, cannot be read
 */
export async function* readSource(
  source: AsyncIterable<string | Uint8Array>,
  { onTableDetected, onEncodingGuessed, ...options }: SourceOptions,
): AsyncGenerator<SourceEntry[]> {
  const { firstItem: firstBatch = '', allItems: batches } = await peekFirstItem(decodeText(source, onEncodingGuessed));
  if (jsonpPattern.test(firstBatch.slice(0, 1000))) {
    yield* readJson(unwrapJsonp(batches), options);
    return;
  }
  if (!/^\s*(?:[[{]|for\s?\(;;\);|while\s?\(1\);|\)\]\}')/.test(firstBatch.slice(0, 1000))) {
    const table = await detectTable(firstBatch, options.formatDetector);
    if (table) {
      onTableDetected(table);
      yield* readTableRows(batches, table);
      return;
    }
    if (firstBatch.trim() !== '' && !jsonLinePattern.test(firstBatch))
      throw new UnreadableSourceError(describeUnknownSource(firstBatch));
  }
  yield* readJson(batches, options);
}

/** Matches the start of JSONP, which passes JSON to a function so that web pages can load it, e.g. `callback({`. */
const jsonpPattern = /^\s*(?:\/\*\*\/\s*)?[A-Za-z_$][\w$.]{0,80}\(\s*(?=[[{])/;
/** The number of characters at the end of a source in which `unwrapJsonp` searches for the end of the function call. */
const maxJsonpEndLength = 32;

/** Removes the JSONP function call around JSON text: `callback(` at the start, and `)` at the end. */
async function* unwrapJsonp(textBatches: AsyncIterable<string>): AsyncGenerator<string> {
  let pendingText: string | undefined;
  for await (const batch of textBatches) {
    const text = pendingText === undefined ? batch.replace(jsonpPattern, '') : pendingText + batch;
    yield text.slice(0, -maxJsonpEndLength);
    pendingText = text.slice(-maxJsonpEndLength);
  }
  yield (pendingText ?? '').trimEnd().replace(/\)\s?;?$/, '');
}

/**
 * Matches a line that starts with a bracket, as JSON does. A source with such a line is read as JSON, and the lines
 * before it are reported as damaged.
 */
const jsonLinePattern = /^[^\S\n\r\u2028\u2029]*[[{]/m;

function describeUnknownSource(text: string): string {
  const firstText = text.slice(0, 64 * 1024);
  if (hasInvalidBytes(firstText.split('\n', 1)[0] ?? '')) return notUtf8Problem;
  return 'neither JSON nor a table of ads: no line of column names contains a name such as "headline" or "body" (a table of your own), "ad_archive_id" (Meta), "creative_id" (Google), "first_shown_date" (TikTok) or "adUrl" (LinkedIn); "library formats" lists the formats';
}
