import { formatCount, formatNumber } from './numbers.ts';
import { joinNonEmpty, quote } from './safe-text.ts';
import { truncateLine } from './tokens.ts';
import type { Fields } from './view.ts';

export interface ListFrame {
  /** `totalHits`, if the service sends it. */
  total?: number | undefined;
  /** The day of the answer, `2026-11-20`, to which "running" and "days ago" refer. */
  asOf?: string | undefined;
  /** How many items the service sent, if not all are shown. */
  sentCount?: number | undefined;
  /** The number of the first item shown, if it is not 1. */
  firstNumber?: number | undefined;
  cursor?: string | null | undefined;
  /** What the page behind the cursor costs, in words: `free`, `10 credits`; undefined where nothing tells. */
  price?: string | undefined;
  hasMore?: boolean | undefined;
  /** `{app_url}/ads/<id>`, if every item's link has this form. */
  appUrlPattern?: string | undefined;
}

export interface FramedList extends ListFrame {
  noun: string;
  shown: number;
  notes?: (string | false | undefined)[];
  body: string;
}

export function frameList({ noun, shown, notes = [], body, ...frame }: FramedList): string {
  const { total, sentCount, firstNumber = 1, hasMore, appUrlPattern } = frame;
  const end = footer(frame, sentCount !== undefined && firstNumber + shown <= sentCount);
  if (shown === 0) return `No ${noun}s${hasMore ? ' on this page' : ' found'}.${end}`;
  const cutShort =
    sentCount !== undefined && sentCount > shown
      ? positionText({ noun, from: firstNumber, shown, of: sentCount })
      : formatCount(shown, noun);
  const head = [total === undefined ? cutShort : `${cutShort}, ${formatNumber(total)} found in all`, ...notes];
  if (appUrlPattern) head.push(`In the app: "${appUrlPattern}"`);
  return `${joinNonEmpty(head, '. ')}.\n${body}${end}`;
}

/** `12 of 50 ads shown`, `13 to 24 of 50 ads shown`, `ad 25 of 50 shown`. */
function positionText({ noun, from, shown, of }: { noun: string; from: number; shown: number; of: number }): string {
  if (from === 1) return `${shown} of ${of} ${noun}s shown`;
  return shown === 1 ? `${noun} ${from} of ${of} shown` : `${from} to ${from + shown - 1} of ${of} ${noun}s shown`;
}

/** `DE`: the form of a country for `codes`. */
export const countryPattern = /^[A-Z]{2}$/;

export const formatDuplicates = (number: number): string => formatCount(number, 'copy', 'copies');

function footer({ cursor, price, hasMore }: ListFrame, isCut: boolean): string {
  if (!cursor) return hasMore ? '\n\nThere are more, but the service gave no cursor.' : '';
  const costs = price === undefined ? '' : price === 'free' ? ' is free' : ` costs ${price}`;
  const next = price === undefined ? 'More' : `Next page: ${price},`;
  return `\n\n${isCut ? `The rest of this page${costs}` : next} with cursor:\n${cursor}`;
}

/** `https://app/ads/<id>`, if every item's `appUrl` is the same address followed by its id. */
export function findAppUrlPattern(items: readonly object[], idName: 'id' | 'pageId'): string | undefined {
  let pattern: string | undefined;
  for (const item of items as readonly Fields[]) {
    const { appUrl, [idName]: id } = item;
    if (typeof appUrl !== 'string' || typeof id !== 'string' || id === '' || !appUrl.endsWith(id)) return;
    const start = appUrl.slice(0, -id.length);
    if (!plainAddress.test(start) || (pattern ?? start) !== start) return;
    pattern = start;
  }
  return pattern && `${pattern}<id>`;
}

const plainAddress = /^https?:\/\/[\w.:/-]{1,100}$/;

const maxNotes = 5;
const noteTokens = 120;

/**
 * What a service says about its list in `notes`, as the local library does. Third-party text, made safe and bounded. A
 * page that continues after a cut does not repeat the notes.
 */
export function readServiceNotes(raw: unknown): { notes?: string[] } {
  const { notes } = raw as { notes?: unknown };
  if (!Array.isArray(notes)) return {};
  const read = notes
    .slice(0, maxNotes)
    .filter((note) => typeof note === 'string')
    .map((note) => truncateLine(note, noteTokens))
    .filter((note) => note !== '');
  return read.length > 0 ? { notes: read } : {};
}

/** The notes as lines before the list, because they explain its numbers. */
export const formatServiceNotes = ({ notes = [] }: { notes?: readonly string[] | undefined }): string[] =>
  notes.map((note) => `The service notes: ${quote(note)}`);

/** As `Map.groupBy`, which Node 20 lacks. */
export function groupBy<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
