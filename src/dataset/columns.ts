import { adFields, type NamesWith, pageFields, type SentField } from '../present/fields.ts';

type SentColumns<Fields> = {
  [Name in NamesWith<Fields, { column: true }>]: Fields[Name] extends { is: 'number' | 'flag' } ? 'numeric' : 'text';
};

const sentColumns = <Fields extends Record<string, SentField>>(fields: Fields) =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { is, column }]) =>
      column ? [[name, is === 'number' || is === 'flag' ? 'numeric' : 'text']] : [],
    ),
  ) as SentColumns<Fields>;

/**
 * The tables that SQL sees, by the API's own names, each with its columns in order. Dates are ISO text, flags 0 or 1;
 * what is missing is null, never an empty text.
 */
export const tables = {
  ads: {
    id: 'text',
    pageId: 'text',
    pageName: 'text',
    ...sentColumns(adFields),
    landingDomain: 'text',
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
    firstGatheredAt: 'text',
    gatheredAt: 'text',
    json: 'text',
  },
  ad_countries: { id: 'text', country: 'text' },
  ad_platforms: { id: 'text', platform: 'text' },
  ad_cards: { id: 'text', number: 'numeric', title: 'text', body: 'text', url: 'text' },
  ad_versions: { id: 'text', gatheredAt: 'text', json: 'text' },
  pages: {
    pageId: 'text',
    ...sentColumns(pageFields),
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
  },
  gathered: { gatheringId: 'text', adId: 'text' },
} as const satisfies Record<string, Record<string, ColumnType>>;

/** What columns of `ads` hold where their name does not say it. */
const meanings: { [Name in keyof typeof tables.ads]?: string } = {
  landingDomain: 'host that its link opens',
  daysRunning: 'startedAt to endDate if past, else to lastSeenAt; same day: 0',
  active: '1, 0, null: unknown',
  firstLine: "body's first line, else a card's",
  text: 'headline, body and cards, each once',
  language: 'detected; null of templates and little text',
  variant: 'same for nearly the same copy of a page',
  videoCount: 'null: no media came',
  imageCount: 'likewise',
};

export type ColumnType = 'text' | 'numeric';
export type TableName = keyof typeof tables;
export type Cell = string | number | null;

type CellOf<Type> = Type extends 'numeric' ? number | null : string | null;
export type Row<Table extends TableName> = {
  -readonly [Name in keyof (typeof tables)[Table]]: CellOf<(typeof tables)[Table][Name]>;
};
export type AdRow = Row<'ads'> & { id: string };
export type PageRow = Row<'pages'> & { pageId: string };

export const tableNames = Object.keys(tables) as TableName[];
export const columnsOf = (table: TableName): string[] => Object.keys(tables[table]);

/** The columns of `ads` that the API does not name, and what they hold: the one place where that is described. */
export function describedColumns(): { name: string; meaning: string | undefined }[] {
  const names = Object.keys(tables.ads) as (keyof typeof tables.ads)[];
  return names.slice(names.indexOf('landingDomain')).map((name) => ({ name, meaning: meanings[name] }));
}
