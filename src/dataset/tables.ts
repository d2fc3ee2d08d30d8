import { parseTime } from '../views/dates.ts';
import { type ApiField, adFields, type NamesWith, pageFields } from '../views/fields.ts';
import { readNumber } from '../views/view.ts';

/** The column type of each API field that is a table column: `numeric` for numbers and flags, `text` for all others. */
type ApiColumnTypes<Fields> = {
  [Name in NamesWith<Fields, { column: true }>]: Fields[Name] extends { type: 'number' | 'flag' } ? 'numeric' : 'text';
};

/** Returns the column type of each API field that is a table column, e.g. `numeric` for a number. */
const selectApiColumnTypes = <Fields extends Record<string, ApiField>>(fields: Fields) =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { type, column }]) =>
      column ? [[name, type === 'number' || type === 'flag' ? 'numeric' : 'text']] : [],
    ),
  ) as ApiColumnTypes<Fields>;

/**
 * The tables of the dataset and their column types. Dates are ISO texts, flags are 0 or 1, and missing values are null.
 * Texts are never empty.
 */
export const tables = {
  ads: {
    id: 'text',
    pageId: 'text',
    pageName: 'text',
    ...selectApiColumnTypes(adFields),
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
    ...selectApiColumnTypes(pageFields),
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
 * SQL views of the table `ads`, each with the condition that selects its rows. `current_ads` contains the ads that each
 * search returned when it was last read completely. `ads` also contains ads that no search returns any longer.
 */
export const views = {
  current_ads: 'id IN (SELECT adId FROM gathered JOIN gatherings ON gatherings.id = gatheringId WHERE newest = 1)',
} as const;

/**
 * Explanations of the columns that this server computes. The description of `query_ads` and the method note of exports
 * show them.
 */
const columnMeanings: { [Name in keyof typeof tables.ads]?: string } = {
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
/** The name of a view. */
export type ViewName = keyof typeof views;
/** A cell of a table or of a query result. */
export type Cell = string | number | null;

type CellOf<Type> = Type extends 'numeric' ? number | null : string | null;
/** A row of a table, with null for missing values. */
export type Row<Table extends TableName> = {
  -readonly [Name in keyof (typeof tables)[Table]]: CellOf<(typeof tables)[Table][Name]>;
};
/** A row of `ads`. Its `id` is never null. */
export type AdRow = Row<'ads'> & { id: string };
/** A row of `pages`. Its `pageId` is never null. */
export type PageRow = Row<'pages'> & { pageId: string };

/** The names of all tables. */
export const tableNames = Object.keys(tables) as TableName[];
/** The names of all views. */
export const viewNames = Object.keys(views) as ViewName[];
/** Returns the names of a table's columns in order. */
export const getColumnNames = (table: TableName): string[] => Object.keys(tables[table]);

/** Returns the computed columns of `ads`, i.e. those that are not API fields, with their explanations. */
export function describeComputedColumns(): { name: string; meaning: string | undefined }[] {
  const names = Object.keys(tables.ads) as (keyof typeof tables.ads)[];
  return names.slice(names.indexOf('landingDomain')).map((name) => ({ name, meaning: columnMeanings[name] }));
}

/**
 * Converts a value to a text cell. Returns null for an empty text or another type, because the service may omit a field
 * or send another type than the API document defines.
 */
export const toTextCell = (value: unknown): string | null =>
  typeof value === 'string' && value.trim() !== '' ? clipText(value) : null;

/**
 * Maximum length of a text cell, in characters. Texts of real ads are shorter. Without this limit, a very long text
 * would exceed SQLite's limits, and every statement that reads it would fail.
 */
const maxTextChars = 50_000;

/** Cuts a text to the maximum length of a text cell. */
export const clipText = (text: string): string => clipToLength(text, maxTextChars);

/** Returns the approximate size of cells in characters. Numbers and nulls count as 8 characters. */
export const countCellChars = (cells: readonly Cell[]): number =>
  cells.reduce<number>((charCount, cell) => charCount + (typeof cell === 'string' ? cell.length : 8), 0);

/**
 * Cuts a text to `maxChars` characters and appends how many characters are missing. Never splits a surrogate pair.
 * @param unreadChars number of characters after `text` that were not read
 */
export function clipToLength(text: string, maxChars: number, unreadChars = 0): string {
  if (text.length <= maxChars && unreadChars === 0) return text;
  const clippedText = text.slice(0, maxChars).replace(/[\ud800-\udbff]$/, '');
  return `${clippedText}… (+${text.length - clippedText.length + unreadChars} chars)`;
}

/**
 * Converts JSON to a cell. Returns null for JSON that is far longer than any object from a service, because shortened
 * JSON could not be parsed.
 */
export const toJsonCell = (json: string): string | null => (json.length <= maxJsonChars ? json : null);

const maxJsonChars = 500_000;

/** Converts an id to a text cell, even if the id is a number. */
export const toIdCell = (value: unknown): string | null =>
  typeof value === 'number' && Number.isFinite(value) ? String(value) : toTextCell(value);

/** Converts a finite number to a cell. Returns null for any other value. */
export const toNumberCell = (value: unknown): number | null => readNumber(value) ?? null;

/** Converts a boolean to 0 or 1. Returns null for any other value. */
export const toFlagCell = (value: unknown): number | null => (typeof value === 'boolean' ? Number(value) : null);

/** Converts a date of any format to ISO text, e.g. `2026-06-01T00:00:00.000Z`. ISO dates sort correctly as text. */
export function toDateCell(value: unknown): string | null {
  const time = parseTime(value);
  return time === undefined ? null : formatIsoTime(time);
}

/** Formats milliseconds since the Unix epoch as an ISO date and time. */
export const formatIsoTime = (time: number): string => new Date(time).toISOString();

const maxMonthRows = 240;

/**
 * Builds the rows of the table `months`. There is one row per UTC month from `firstDate` to the latest API response,
 * but at most for the last 240 months. It is unknown which ads launched after that response.
 *
 * Each row contains the first and the last millisecond of its month. A month is marked as unfinished if it had not
 * ended when all stored searches were read.
 */
export function buildMonthRows(
  firstDate: string,
  knownUntil: { completeUntil: number; partialUntil: number },
): Row<'months'>[] {
  const [start = 0, end = 0] = [new Date(firstDate), new Date(knownUntil.partialUntil)].map(
    (date) => 12 * (date.getUTCFullYear() - 2000) + date.getUTCMonth(),
  );
  const rows: Row<'months'>[] = [];
  for (let number = Math.max(start, end - maxMonthRows + 1); number <= end; number++) {
    const [first, last] = [Date.UTC(2000, number), Date.UTC(2000, number + 1) - 1];
    const unfinished = Number(last >= knownUntil.completeUntil);
    rows.push({
      month: formatIsoTime(first).slice(0, 7),
      first: formatIsoTime(first),
      last: formatIsoTime(last),
      unfinished,
    });
  }
  return rows;
}

/** Returns the non-empty texts of a list without duplicates, ignoring case. */
export function readDistinctTexts(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  const texts = new Map<string, string>();
  for (const text of value)
    if (toTextCell(text) !== null && !texts.has(text.toLowerCase())) texts.set(text.toLowerCase(), text);
  return [...texts.values()];
}

/** Converts a list of texts to JSON. Returns null for an empty list. */
function toListCell(value: unknown): string | null {
  const texts = readDistinctTexts(value);
  return texts.length > 0 ? JSON.stringify(texts) : null;
}

/** Creates a function that converts the API fields of an object to table cells. */
export function createCellReader<Fields extends Record<string, ApiField>>(
  fields: Fields,
): (apiObject: object) => ApiCells<Fields> {
  const cellReaders = Object.entries(fields).flatMap(([name, { type, column }]) =>
    column ? [{ name, toCell: cellConverters[type] }] : [],
  );
  return (object) => {
    const row: Record<string, unknown> = {};
    for (const { name, toCell } of cellReaders) row[name] = toCell((object as Record<string, unknown>)[name]);
    return row as ApiCells<Fields>;
  };
}

type ApiCells<Fields> = { [Name in keyof ApiColumnTypes<Fields>]: CellOf<ApiColumnTypes<Fields>[Name]> };

const cellConverters = {
  text: toTextCell,
  date: toDateCell,
  number: toNumberCell,
  flag: toFlagCell,
  words: toListCell,
  id: toIdCell,
};
