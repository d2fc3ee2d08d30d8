import { parseTime } from '../views/dates.ts';
import { adFields, type NamesWith, pageFields, type SentField } from '../views/fields.ts';
import { readNumber } from '../views/view.ts';

type SentColumns<Fields> = {
  [Name in NamesWith<Fields, { column: true }>]: Fields[Name] extends { is: 'number' | 'flag' } ? 'numeric' : 'text';
};

const sentColumns = <Fields extends Record<string, SentField>>(fields: Fields) =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { is, column }]) =>
      column ? [[name, is === 'number' || is === 'flag' ? 'numeric' : 'text']] : [],
    ),
  ) as SentColumns<Fields>;

/** Dates are ISO text, flags 0 or 1; what is missing is null, never an empty text. */
export const tables = {
  ads: {
    id: 'text',
    pageId: 'text',
    pageName: 'text',
    ...sentColumns(adFields),
    landingDomain: 'text',
    landing: 'text',
    utm: 'text',
    daysRunning: 'numeric',
    active: 'numeric',
    firstLine: 'text',
    startedMonth: 'text',
    text: 'text',
    language: 'text',
    variant: 'text',
    cardCount: 'numeric',
    videoCount: 'numeric',
    imageCount: 'numeric',
    videoSeconds: 'numeric',
    picture: 'text',
    pictureGroup: 'text',
    firstGatheredAt: 'text',
    gatheredAt: 'text',
    json: 'text',
  },
  ad_countries: { id: 'text', country: 'text' },
  ad_platforms: { id: 'text', platform: 'text' },
  ad_cards: { id: 'text', number: 'numeric', title: 'text', body: 'text', url: 'text' },
  ad_versions: { id: 'text', gatheredAt: 'text', json: 'text' },
  pages: { pageId: 'text', ...sentColumns(pageFields), firstGatheredAt: 'text', gatheredAt: 'text', json: 'text' },
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
  },
  gathered: { gatheringId: 'text', adId: 'text' },
  labels: { adId: 'text', label: 'text', value: 'text', labelledAt: 'text' },
  months: { month: 'text', first: 'text', last: 'text', unfinished: 'numeric' },
} as const satisfies Record<string, Record<string, ColumnType>>;

/**
 * Views over the tables. An ad in `current_ads` was listed by the newest complete gathering of a question. The table
 * `ads` also holds ads that are no longer listed, as they were when they were read last.
 */
export const views = {
  current_ads: `SELECT ads.* FROM ads WHERE id IN (
    SELECT adId FROM gathered JOIN gatherings ON gatherings.id = gatheringId WHERE newest = 1)`,
} as const;

const meanings: { [Name in keyof typeof tables.ads]?: string } = {
  landing: 'page without tracking parameters',
  utm: 'JSON: source, campaign …',
  daysRunning: 'startedAt to endDate if past, else to lastSeenAt; same day: 0',
  active: '1, 0, null: unknown',
  firstLine: 'of body, else of a card',
  text: 'headline, body and cards, each once',
  language: 'null: unsure',
  variant: 'same for nearly the same copy of a page',
  videoCount: 'null: no media came',
  videoSeconds: 'of the longest',
  picture: 'hash once fetched',
  pictureGroup: 'same for nearly the same picture',
};

type ColumnType = 'text' | 'numeric';
export type TableName = keyof typeof tables;
export type Cell = string | number | null;

type CellOf<Type> = Type extends 'numeric' ? number | null : string | null;
export type Row<Table extends TableName> = {
  -readonly [Name in keyof (typeof tables)[Table]]: CellOf<(typeof tables)[Table][Name]>;
};
export type AdRow = Row<'ads'> & { id: string };
export type PageRow = Row<'pages'> & { pageId: string };

export const tableNames = Object.keys(tables) as TableName[];
export const viewNames = Object.keys(views);
export const getColumnNames = (table: TableName): string[] => Object.keys(tables[table]);

/** The columns of `ads` that the API does not name, and what they hold: the one place where that is described. */
export function describeColumns(): { name: string; meaning: string | undefined }[] {
  const names = Object.keys(tables.ads) as (keyof typeof tables.ads)[];
  return names.slice(names.indexOf('landingDomain')).map((name) => ({ name, meaning: meanings[name] }));
}

/** Any field of the service may be missing or of another type than its document says: then the cell is null. */
export const toTextCell = (value: unknown): string | null =>
  typeof value === 'string' && value.trim() !== '' ? clipText(value) : null;

/** No copy is this long. A row larger than SQL reads at once would make every statement fail that meets it. */
const maxText = 50_000;

export const clipText = (text: string): string => clip(text, maxText);

/** In characters, as far as memory and messages care. */
export const measureCells = (cells: readonly Cell[]): number =>
  cells.reduce<number>((size, cell) => size + (typeof cell === 'string' ? cell.length : 8), 0);

/** The first characters, none of them cut in two, and how many are missing, with those `beyond` that were not read. */
export function clip(text: string, max: number, beyond = 0): string {
  if (text.length <= max && beyond === 0) return text;
  const kept = text.slice(0, max).replace(/[\ud800-\udbff]$/, '');
  return `${kept}… (+${text.length - kept.length + beyond} chars)`;
}

/** Null where it is far larger than any that a service sends, because half of an object is useless. */
export const toJsonCell = (json: string): string | null => (json.length <= maxJson ? json : null);

const maxJson = 500_000;

export const toIdCell = (value: unknown): string | null =>
  typeof value === 'number' && Number.isFinite(value) ? String(value) : toTextCell(value);

export const toNumberCell = (value: unknown): number | null => readNumber(value) ?? null;

export const toFlagCell = (value: unknown): number | null => (typeof value === 'boolean' ? Number(value) : null);

/** `2026-06-01T00:00:00.000Z`, whatever the service writes, so that dates compare as texts do. */
export function toDateCell(value: unknown): string | null {
  const time = parseTime(value);
  return time === undefined ? null : formatIsoTime(time);
}

export const formatIsoTime = (time: number): string => new Date(time).toISOString();

const maxMonths = 240;

/**
 * Returns the months (UTC) from the first launch to the last answer, at most the last 240, each with its first and last
 * millisecond. Later months are unknown and have no row. A month is unfinished if it had not ended when all of the
 * dataset's questions were read.
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

/** Returns the filled texts of a list, each once. Texts that differ in upper and lower case alone count as one. */
export function readTexts(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  const texts = new Map<string, string>();
  for (const text of value)
    if (toTextCell(text) !== null && !texts.has(text.toLowerCase())) texts.set(text.toLowerCase(), text);
  return [...texts.values()];
}

function toListCell(value: unknown): string | null {
  const texts = readTexts(value);
  return texts.length > 0 ? JSON.stringify(texts) : null;
}

export function createCellReader<Fields extends Record<string, SentField>>(
  fields: Fields,
): (sent: object) => SentCells<Fields> {
  const cells = Object.entries(fields).flatMap(([name, { is, column }]) =>
    column ? [{ name, cellOf: cellsOf[is] }] : [],
  );
  return (sent) => {
    const row: Record<string, unknown> = {};
    for (const { name, cellOf } of cells) row[name] = cellOf((sent as Record<string, unknown>)[name]);
    return row as SentCells<Fields>;
  };
}

type SentCells<Fields> = { [Name in keyof SentColumns<Fields>]: CellOf<SentColumns<Fields>[Name]> };

const cellsOf = {
  text: toTextCell,
  date: toDateCell,
  number: toNumberCell,
  flag: toFlagCell,
  words: toListCell,
  id: toIdCell,
};
