import { parseTime } from '../views/dates.ts';
import { adFields, type NamesWith, pageFields, type SentField } from '../views/fields.ts';
import { readNumber } from '../views/view.ts';

/** The types of the columns for the fields that the service sends. */
type SentColumns<Fields> = {
  [Name in NamesWith<Fields, { column: true }>]: Fields[Name] extends { type: 'number' | 'flag' } ? 'numeric' : 'text';
};

/** Returns the columns for the fields that the service sends. */
const selectSentColumns = <Fields extends Record<string, SentField>>(fields: Fields) =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { type, column }]) =>
      column ? [[name, type === 'number' || type === 'flag' ? 'numeric' : 'text']] : [],
    ),
  ) as SentColumns<Fields>;

/**
 * The tables of the dataset and the types of their columns. Dates are ISO text, flags are 0 or 1, and missing values
 * are null, never an empty text.
 */
export const tables = {
  ads: {
    id: 'text',
    pageId: 'text',
    pageName: 'text',
    ...selectSentColumns(adFields),
    landingDomain: 'text',
    landing: 'text',
    utm: 'text',
    daysRunning: 'numeric',
    active: 'numeric',
    activeWhenLastRead: 'numeric',
    firstLine: 'text',
    startedMonth: 'text',
    text: 'text',
    language: 'text',
    variant: 'text',
    hasPlaceholders: 'numeric',
    cardCount: 'numeric',
    videoCount: 'numeric',
    imageCount: 'numeric',
    videoSeconds: 'numeric',
    picture: 'text',
    pictureGroup: 'text',
    pictureState: 'text',
    payer: 'text',
    beneficiary: 'text',
    publicUrl: 'text',
    firstGatheredAt: 'text',
    gatheredAt: 'text',
    json: 'text',
  },
  ad_countries: { id: 'text', country: 'text' },
  ad_platforms: { id: 'text', platform: 'text' },
  ad_reach: { id: 'text', country: 'text', age: 'text', gender: 'text', reach: 'numeric' },
  ad_cards: { id: 'text', number: 'numeric', title: 'text', body: 'text', url: 'text' },
  ad_versions: { id: 'text', gatheredAt: 'text', json: 'text' },
  pages: {
    pageId: 'text',
    ...selectSentColumns(pageFields),
    firstGatheredAt: 'text',
    gatheredAt: 'text',
    json: 'text',
  },
  gatherings: {
    id: 'text',
    filters: 'text',
    collectionId: 'text',
    found: 'numeric',
    read: 'numeric',
    charged: 'numeric',
    complete: 'numeric',
    gatheredAt: 'text',
    newest: 'numeric',
    lastSeenFrom: 'text',
    lastSeenTo: 'text',
  },
  gathered: { gatheringId: 'text', adId: 'text' },
  labels: { adId: 'text', label: 'text', value: 'text', labelledAt: 'text' },
  months: { month: 'text', first: 'text', last: 'text', unfinished: 'numeric' },
} as const satisfies Record<string, Record<string, ColumnType>>;

/**
 * Views over the tables. `current_ads` holds the ads that the newest complete gathering of a question listed. The table
 * `ads` also holds ads that are no longer listed, with their last known values.
 */
export const views = {
  current_ads: `SELECT ads.* FROM ads WHERE id IN (
    SELECT adId FROM gathered JOIN gatherings ON gatherings.id = gatheringId WHERE newest = 1)`,
} as const;

/** The meaning of derived columns. The texts are part of the description of `query_ads` and of the note in exports. */
const meanings: { [Name in keyof typeof tables.ads]?: string } = {
  landing: 'without tracking parameters',
  utm: 'JSON: source, campaign …',
  daysRunning: 'startedAt to endDate if past, else lastSeenAt',
  active: '1, 0, null: unknown',
  activeWhenLastRead: 'on the last day its gathering saw',
  text: 'headline, body, cards',
  variant: 'same for nearly the same copy',
  videoCount: 'null: no media came',
  videoSeconds: 'of the longest',
  hasPlaceholders: '1: {{…}} in a text',
  picture: 'hash',
  pictureGroup: 'same for nearly the same picture',
  pictureState: 'available, expired, none, failed',
};

type ColumnType = 'text' | 'numeric';
/** The name of a table. */
export type TableName = keyof typeof tables;
/** A cell of a table or of a result. */
export type Cell = string | number | null;

type CellOf<Type> = Type extends 'numeric' ? number | null : string | null;
/** A row of a table. */
export type Row<Table extends TableName> = {
  -readonly [Name in keyof (typeof tables)[Table]]: CellOf<(typeof tables)[Table][Name]>;
};
/** A row of `ads`. Its id is never null. */
export type AdRow = Row<'ads'> & { id: string };
/** A row of `pages`. Its id is never null. */
export type PageRow = Row<'pages'> & { pageId: string };

/** The names of all tables. */
export const tableNames = Object.keys(tables) as TableName[];
/** The names of all views. */
export const viewNames = Object.keys(views);
/** Returns the names of a table's columns in order. */
export const getColumnNames = (table: TableName): string[] => Object.keys(tables[table]);

/** Returns the columns of `ads` that the API does not name, with their meanings. No other place describes them. */
export function describeColumns(): { name: string; meaning: string | undefined }[] {
  const names = Object.keys(tables.ads) as (keyof typeof tables.ads)[];
  return names.slice(names.indexOf('landingDomain')).map((name) => ({ name, meaning: meanings[name] }));
}

/**
 * Returns a text as a cell. Returns null for an empty text and for any other type, because a field of the service may
 * be missing or have another type than the API document says.
 */
export const toTextCell = (value: unknown): string | null =>
  typeof value === 'string' && value.trim() !== '' ? clipText(value) : null;

/**
 * The most characters of a text. No real ad text is as long. A larger row than SQL accepts would make every statement
 * fail that reads the row.
 */
const maxTextChars = 50_000;

/** Cuts a text to the length that a cell may have. */
export const clipText = (text: string): string => clip(text, maxTextChars);

/** Returns the approximate size of cells in characters. Numbers and null count as 8. */
export const measureCells = (cells: readonly Cell[]): number =>
  cells.reduce<number>((size, cell) => size + (typeof cell === 'string' ? cell.length : 8), 0);

/**
 * Returns the first `max` characters of a text and the number of missing ones. No surrogate pair is cut in two.
 * @param beyond the number of further characters that were not read
 */
export function clip(text: string, max: number, beyond = 0): string {
  if (text.length <= max && beyond === 0) return text;
  const start = text.slice(0, max).replace(/[\ud800-\udbff]$/, '');
  return `${start}… (+${text.length - start.length + beyond} chars)`;
}

/**
 * Returns JSON as a cell. Returns null for JSON that is far larger than any object of a service, because half an object
 * is useless.
 */
export const toJsonCell = (json: string): string | null => (json.length <= maxJsonChars ? json : null);

const maxJsonChars = 500_000;

/** Returns an id as a cell. Numbers become text. */
export const toIdCell = (value: unknown): string | null =>
  typeof value === 'number' && Number.isFinite(value) ? String(value) : toTextCell(value);

/** Returns a finite number as a cell, and null for any other value. */
export const toNumberCell = (value: unknown): number | null => readNumber(value) ?? null;

/** Returns a boolean as 0 or 1, and null for any other value. */
export const toFlagCell = (value: unknown): number | null => (typeof value === 'boolean' ? Number(value) : null);

/**
 * Returns a date as `2026-06-01T00:00:00.000Z`, whatever format the service uses. In this form, dates compare like
 * texts.
 */
export function toDateCell(value: unknown): string | null {
  const time = parseTime(value);
  return time === undefined ? null : formatIsoTime(time);
}

/** Formats milliseconds since the epoch as an ISO date and time. */
export const formatIsoTime = (time: number): string => new Date(time).toISOString();

const maxMonths = 240;

/**
 * Builds the rows of `months`: the months in UTC from the first launch to the last answer, at most the last 240, each
 * with its first and last millisecond. Later months are unknown and have no row. A month is unfinished if it had not
 * ended when all questions of the dataset were read.
 */
export function buildMonthRows(from: string, knownUntil: { complete: number; partial: number }): Row<'months'>[] {
  const [start = 0, end = 0] = [new Date(from), new Date(knownUntil.partial)].map(
    (date) => 12 * (date.getUTCFullYear() - 2000) + date.getUTCMonth(),
  );
  const rows: Row<'months'>[] = [];
  for (let number = Math.max(start, end - maxMonths + 1); number <= end; number++) {
    const [first, last] = [Date.UTC(2000, number), Date.UTC(2000, number + 1) - 1];
    const unfinished = Number(last >= knownUntil.complete);
    rows.push({
      month: formatIsoTime(first).slice(0, 7),
      first: formatIsoTime(first),
      last: formatIsoTime(last),
      unfinished,
    });
  }
  return rows;
}

/** Returns the non-empty texts of a list, each once. Texts that differ only in upper and lower case count as one. */
export function readTexts(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  const texts = new Map<string, string>();
  for (const text of value)
    if (toTextCell(text) !== null && !texts.has(text.toLowerCase())) texts.set(text.toLowerCase(), text);
  return [...texts.values()];
}

/** Returns a list of texts as JSON, and null for an empty list. */
function toListCell(value: unknown): string | null {
  const texts = readTexts(value);
  return texts.length > 0 ? JSON.stringify(texts) : null;
}

/** Returns a function that reads the columns of an object which the service sent. */
export function createCellReader<Fields extends Record<string, SentField>>(
  fields: Fields,
): (sent: object) => SentCells<Fields> {
  const cells = Object.entries(fields).flatMap(([name, { type, column }]) =>
    column ? [{ name, cellOf: cellConverters[type] }] : [],
  );
  return (sent) => {
    const row: Record<string, unknown> = {};
    for (const { name, cellOf } of cells) row[name] = cellOf((sent as Record<string, unknown>)[name]);
    return row as SentCells<Fields>;
  };
}

type SentCells<Fields> = { [Name in keyof SentColumns<Fields>]: CellOf<SentColumns<Fields>[Name]> };

const cellConverters = {
  text: toTextCell,
  date: toDateCell,
  number: toNumberCell,
  flag: toFlagCell,
  words: toListCell,
  id: toIdCell,
};
