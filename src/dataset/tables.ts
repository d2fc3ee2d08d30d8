import { parseTime } from '../views/dates.ts';
import { type ApiField, adFields, type FieldNamesWith, pageFields } from '../views/fields.ts';
import { isVisibleText, readNumber } from '../views/view.ts';

/**
 * The column type of each API field that is stored in a table column: `numeric` for numbers and booleans, and `text`
 * for all other fields.
 */
type ApiColumnTypes<Fields> = {
  [Name in FieldNamesWith<Fields, { hasColumn: true }>]: Fields[Name] extends { type: 'number' | 'boolean' }
    ? 'numeric'
    : 'text';
};

/** Returns the column type of each API field that is stored in a table column, e.g. `numeric` for a number. */
const selectApiColumnTypes = <Fields extends Record<string, ApiField>>(fields: Fields) =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { type, hasColumn }]) =>
      hasColumn ? [[name, type === 'number' || type === 'boolean' ? 'numeric' : 'text']] : [],
    ),
  ) as ApiColumnTypes<Fields>;

/**
 * The tables of the dataset with their columns and column types. Dates are ISO texts, flags are 0 or 1, and missing
 * values are null. Texts are never empty.
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
 * SQL views of the `ads` table, each with the condition that selects its rows. The `current_ads` view contains the ads
 * that each search returned when it was last read completely. The `ads` table also contains ads that no search returns
 * any longer.
 */
export const sqlViews = {
  current_ads: 'id IN (SELECT adId FROM gathered JOIN gatherings ON gatherings.id = gatheringId WHERE newest = 1)',
} as const;

/**
 * Explanations of the columns that this server computes. The description of the `query_ads` tool and the method note of
 * exports show these explanations.
 */
const columnExplanations: { [Name in keyof typeof tables.ads]?: string } = {
  landing: 'without tracking parameters',
  utm: 'JSON: source, campaign …',
  daysRunning: 'startedAt to endDate if past, else lastSeenAt',
  active: '1, 0, null: unknown',
  activeWhenLastRead: 'on the last day its gathering saw',
  text: 'headline, body, cards',
  variant: 'group of similar texts',
  videoCount: 'null: no media came',
  videoSeconds: 'of the longest',
  hasPlaceholders: '1: {{…}} in a text',
  picture: 'hash',
  pictureGroup: 'group of similar pictures',
  pictureState: 'available, expired, none, failed',
};

type ColumnType = 'text' | 'numeric';
/** The name of a table. */
export type TableName = keyof typeof tables;
/** The name of a view. */
export type ViewName = keyof typeof sqlViews;
/** The value of a cell in a table or in a query result. */
export type Cell = string | number | null;

type CellOf<Type> = Type extends 'numeric' ? number | null : string | null;
/** A row of a table. Missing values are null. */
export type Row<Table extends TableName> = {
  -readonly [Name in keyof (typeof tables)[Table]]: CellOf<(typeof tables)[Table][Name]>;
};
/** A row of the `ads` table. Its `id` is never null. */
export type AdRow = Row<'ads'> & { id: string };
/** A row of the `pages` table. Its `pageId` is never null. */
export type PageRow = Row<'pages'> & { pageId: string };

/** The names of all tables. */
export const tableNames = Object.keys(tables) as TableName[];
/** The names of all views. */
export const viewNames = Object.keys(sqlViews) as ViewName[];
/** Returns the names of the columns of a table, in the order of the columns. */
export const getColumnNames = (table: TableName): string[] => Object.keys(tables[table]);

/**
 * Returns the columns of the `ads` table that this server computes, with their explanations. All other columns contain
 * API fields.
 */
export function listComputedColumns(): { name: string; meaning: string | undefined }[] {
  const names = Object.keys(tables.ads) as (keyof typeof tables.ads)[];
  return names.slice(names.indexOf('landingDomain')).map((name) => ({ name, meaning: columnExplanations[name] }));
}

/**
 * Converts the value of an API field to a text cell. Returns null for a text without visible characters or another
 * type, because the service may omit a field or send a type that the API document does not define.
 */
export const toTextCell = (fieldValue: unknown): string | null =>
  isVisibleText(fieldValue) ? truncateCellText(fieldValue) : null;

/**
 * The maximum length of a text cell, in characters. Real ads have shorter texts. Without this limit, a very long text
 * could exceed SQLite's size limit, and every statement that reads the text would fail.
 */
const maxTextChars = 50_000;

/** Shortens a text to the maximum length of a text cell. */
export const truncateCellText = (text: string): string => truncateToLength(text, maxTextChars);

/** Returns the approximate total size of table cells in characters. Each number or null counts as 8 characters. */
export const countCellChars = (cells: readonly Cell[]): number =>
  cells.reduce<number>((charCount, cell) => charCount + (typeof cell === 'string' ? cell.length : 8), 0);

/**
 * Shortens a text to `maxChars` characters and appends the number of omitted characters. Never splits a surrogate pair.
 * @param unreadChars number of characters that follow `text` in its source and were not read; they count as omitted
 */
export function truncateToLength(text: string, maxChars: number, unreadChars = 0): string {
  if (text.length <= maxChars && unreadChars === 0) return text;
  const clippedText = text.slice(0, maxChars).replace(/[\ud800-\udbff]$/, '');
  return `${clippedText}… (+${text.length - clippedText.length + unreadChars} chars)`;
}

/**
 * Returns a JSON text as a table cell, or null if the text is far longer than any object from the service. Such a text
 * cannot be shortened, because shortened JSON could not be parsed.
 */
export const toJsonCell = (json: string): string | null => (json.length <= maxJsonChars ? json : null);

const maxJsonChars = 500_000;

/** Converts an id to a text cell. A numeric id becomes a text. */
export const toIdCell = (id: unknown): string | null =>
  typeof id === 'number' && Number.isFinite(id) ? String(id) : toTextCell(id);

/** Converts the value of an API field to a number cell. Returns null unless the value is a finite number. */
export const toNumberCell = (fieldValue: unknown): number | null => readNumber(fieldValue) ?? null;

/** Converts a boolean to 0 or 1, because SQLite has no booleans. Returns null for any other type. */
export const toFlagCell = (fieldValue: unknown): number | null =>
  typeof fieldValue === 'boolean' ? Number(fieldValue) : null;

/** Converts a date to ISO text, e.g. `2026-06-01T00:00:00.000Z`, because ISO dates sort chronologically as text. */
export function toDateCell(date: unknown): string | null {
  const timeMs = parseTime(date);
  return timeMs === undefined ? null : formatIsoTime(timeMs);
}

/** Formats a time in milliseconds since the Unix epoch as an ISO date and time. */
export const formatIsoTime = (timeMs: number): string => new Date(timeMs).toISOString();

const maxMonthRows = 240;

/**
 * Builds the rows of the `months` table. There is one row per UTC month from `firstDate` to the latest API response,
 * but at most for the last 240 months. It is unknown which ads launched after that response.
 *
 * Each row contains the first and the last millisecond of its month. A month is marked as unfinished if it had not
 * ended when all stored searches were read.
 */
export function buildMonthRows(
  firstDate: string,
  launchCoverage: { completeUntil: number; partialUntil: number },
): Row<'months'>[] {
  const [startMonth = 0, endMonth = 0] = [new Date(firstDate), new Date(launchCoverage.partialUntil)].map(
    (date) => 12 * (date.getUTCFullYear() - 2000) + date.getUTCMonth(),
  );
  const rows: Row<'months'>[] = [];
  for (let monthNumber = Math.max(startMonth, endMonth - maxMonthRows + 1); monthNumber <= endMonth; monthNumber++) {
    const [firstMs, lastMs] = [Date.UTC(2000, monthNumber), Date.UTC(2000, monthNumber + 1) - 1];
    const unfinished = Number(lastMs >= launchCoverage.completeUntil);
    rows.push({
      month: formatIsoTime(firstMs).slice(0, 7),
      first: formatIsoTime(firstMs),
      last: formatIsoTime(lastMs),
      unfinished,
    });
  }
  return rows;
}

/**
 * Returns the distinct texts of a list without spaces around them. Of texts that differ only in case, returns the
 * first. Skips blank texts.
 */
export function readDistinctTexts(textList: unknown): string[] {
  if (!Array.isArray(textList)) return [];
  const texts = new Map<string, string>();
  for (const listItem of textList) {
    const text = toTextCell(listItem)?.trim();
    if (text !== undefined && !texts.has(text.toLowerCase())) texts.set(text.toLowerCase(), text);
  }
  return [...texts.values()];
}

/** Converts a list of texts to a JSON array in a table cell. Returns null if the list contains no text. */
function toListCell(textList: unknown): string | null {
  const texts = readDistinctTexts(textList);
  return texts.length > 0 ? JSON.stringify(texts) : null;
}

/**
 * Creates a function that converts the fields of an API object to table cells. Fields without a table column are
 * skipped.
 */
export function createCellReader<Fields extends Record<string, ApiField>>(
  fields: Fields,
): (apiObject: object) => ApiCells<Fields> {
  const cellReaders = Object.entries(fields).flatMap(([name, { type, hasColumn }]) =>
    hasColumn ? [{ name, toCell: cellConverters[type] }] : [],
  );
  return (apiObject) => {
    const row: Record<string, unknown> = {};
    for (const { name, toCell } of cellReaders) row[name] = toCell((apiObject as Record<string, unknown>)[name]);
    return row as ApiCells<Fields>;
  };
}

type ApiCells<Fields> = { [Name in keyof ApiColumnTypes<Fields>]: CellOf<ApiColumnTypes<Fields>[Name]> };

const cellConverters = {
  text: toTextCell,
  date: toDateCell,
  number: toNumberCell,
  boolean: toFlagCell,
  textList: toListCell,
  id: toIdCell,
};
