import { formatCount, formatNumber } from './numbers.ts';
import { joinNonEmpty, quote } from './safe-text.ts';
import { truncateLine } from './tokens.ts';
import type { UntypedFields } from './view.ts';

/** The information that surrounds the items of a list: the number of items, the date, and how to get the next page. */
export interface ListFrame {
  /** The total number of matching items (`totalHits`), if the service reports it. */
  totalHits?: number | undefined;
  /** The day of the result, e.g. `2026-11-20`. Relative dates, such as "3 days ago", refer to this day. */
  asOf?: string | undefined;
  /** The number of items that the service sent. Set only if the list shows fewer items. */
  receivedCount?: number | undefined;
  /**
   * The number of the first item in the list. The default is 1. The number is higher if an earlier result already
   * showed the first items of the same page.
   */
  firstNumber?: number | undefined;
  cursor?: string | null | undefined;
  /** The price of the next page as text, e.g. `free` or `10 credits`. Undefined if the price is unknown. */
  priceText?: string | undefined;
  /**
   * How long the rest of a page that was cut to fit stays free, in milliseconds. Undefined if the page is not cached.
   */
  remainingFreeMs?: number | undefined;
  hasMore?: boolean | undefined;
  /**
   * The URL of an item in the web app of the service, with `<id>` as a placeholder for the id of the item, e.g.
   * `https://app.example/ads/<id>`.
   */
  appUrlPattern?: string | undefined;
}

/** A list to format: the text of its items, and the information that surrounds the items. */
export interface FramedList extends ListFrame {
  noun: string;
  shownCount: number;
  notes?: (string | false | undefined)[];
  itemTexts: string;
}

/**
 * Formats a list as text. The first line contains the number of items, and the last lines explain how to get the next
 * page.
 */
export function formatFramedList({ noun, shownCount, notes = [], itemTexts, ...frame }: FramedList): string {
  const { totalHits, receivedCount, firstNumber = 1, hasMore, appUrlPattern } = frame;
  const footer = formatFooter(frame, receivedCount !== undefined && firstNumber + shownCount <= receivedCount);
  if (shownCount === 0) {
    if (hasMore) return `No ${noun}s on this page.${footer}`;
    return totalHits
      ? `No ${noun}s on this page. The service counts ${formatCount(totalHits, noun)} in all.${footer}`
      : `No ${noun}s found.${footer}`;
  }
  const countText =
    receivedCount !== undefined && receivedCount > shownCount
      ? formatShownRange({ noun, firstNumber, shownCount, totalCount: receivedCount })
      : formatCount(shownCount, noun);
  const firstLineParts = [
    totalHits === undefined ? countText : `${countText}, ${formatNumber(totalHits)} found in all`,
    ...notes,
  ];
  if (appUrlPattern) firstLineParts.push(`In the app: "${appUrlPattern}"`);
  return `${joinNonEmpty(firstLineParts, '. ')}.\n${itemTexts}${footer}`;
}

/**
 * Formats the items of a page that a result shows as a range, e.g. `12 of 50 ads shown`, `13 to 24 of 50 ads shown`
 * or `ad 25 of 50 shown`.
 */
function formatShownRange({
  noun,
  firstNumber,
  shownCount,
  totalCount,
}: {
  noun: string;
  firstNumber: number;
  shownCount: number;
  totalCount: number;
}): string {
  if (firstNumber === 1) return `${shownCount} of ${totalCount} ${noun}s shown`;
  return shownCount === 1
    ? `${noun} ${firstNumber} of ${totalCount} shown`
    : `${firstNumber} to ${firstNumber + shownCount - 1} of ${totalCount} ${noun}s shown`;
}

/** Matches a country code, such as `DE`. `quoteUnlessCodes` shows matching codes without quotation marks. */
export const countryPattern = /^[A-Z]{2}$/;

/** Formats the number of duplicates of an ad, e.g. `3 copies`. */
export const formatDuplicates = (duplicateCount: number): string => formatCount(duplicateCount, 'copy', 'copies');

function formatFooter({ cursor, priceText, remainingFreeMs, hasMore }: ListFrame, isCut: boolean): string {
  if (!cursor) return hasMore ? '\n\nThere are more, but the service gave no cursor.' : '';
  const freeText = remainingFreeMs === undefined ? ' is free' : ` is free for ${formatMinutes(remainingFreeMs)}`;
  const costText = priceText === undefined ? '' : priceText === 'free' ? freeText : ` costs ${priceText}`;
  const nextPageText = priceText === undefined ? 'More' : `Next page: ${priceText},`;
  return `\n\n${isCut ? `The rest of this page${costText}` : nextPageText} with cursor:\n${cursor}`;
}

const minuteMs = 60_000;

/** Formats a duration in whole minutes, rounded down, e.g. `15 minutes`. */
const formatMinutes = (durationMs: number): string =>
  durationMs < minuteMs ? 'less than a minute' : formatCount(Math.floor(durationMs / minuteMs), 'minute');

/**
 * Finds the pattern of the `appUrl` of all items, e.g. `https://app.example/ads/<id>`. Returns undefined unless every
 * `appUrl` consists of the same prefix and the id of the item. `idFieldName` is the name of the field that contains the
 * id.
 */
export function findAppUrlPattern(items: readonly object[], idFieldName: 'id' | 'pageId'): string | undefined {
  let pattern: string | undefined;
  for (const item of items as readonly UntypedFields[]) {
    const { appUrl, [idFieldName]: id } = item;
    if (typeof appUrl !== 'string' || typeof id !== 'string' || id === '' || !appUrl.endsWith(id)) return;
    const start = appUrl.slice(0, -id.length);
    if (!safeUrlPattern.test(start) || (pattern ?? start) !== start) return;
    pattern = start;
  }
  return pattern && `${pattern}<id>`;
}

/**
 * Matches a URL that consists only of safe characters, so that a result may contain the URL without quotation marks.
 */
const safeUrlPattern = /^https?:\/\/[\w.:/-]{1,100}$/;

/** The maximum number of notes of the service in one result. */
export const maxNotes = 5;
const maxNoteTokens = 120;

/**
 * Reads the notes that a local library (a server for imported ads) adds to a list. The notes are untrusted text, so
 * this function sanitizes and shortens them.
 */
export function readServiceNotes(apiResponse: unknown): { notes?: string[] } {
  const { notes } = apiResponse as { notes?: unknown };
  if (!Array.isArray(notes)) return {};
  const cleanNotes = notes
    .slice(0, maxNotes)
    .filter((note) => typeof note === 'string')
    .map((note) => truncateLine(note, maxNoteTokens))
    .filter((note) => note !== '');
  return cleanNotes.length > 0 ? { notes: cleanNotes } : {};
}

/**
 * Formats the notes of the service as lines of text. The lines appear above the list, because they explain its numbers.
 */
export const formatServiceNotes = ({ notes = [] }: { notes?: readonly string[] | undefined }): string[] =>
  notes.map((note) => `The service notes: ${quote(note)}`);
