import type { ItemType } from '../api/schemas.ts';

/**
 * What the two types of record are, and how each can be searched.
 *
 * A measure is a number (dates are Unix milliseconds) that can be filtered by bounds and sorted by. Where the API gives a
 * range (`adSpendMin`, `adSpendMax`), `low` is its lower end: a record matches bounds that overlap its range. Each has a
 * column and an index, which migrations.ts must make. A tag is a set of values; a filter matches any of the values it
 * lists. A text is searched by its words.
 */
export type Measure<Item = unknown> = {
  key: string;
  about: string;
  note?: string;
  date?: boolean;
  value(item: Item): number | null | undefined;
  low?(item: Item): number | null | undefined;
  /** Its value at a time, in Unix milliseconds, where that is not the column's. */
  sql?(asOf: number): string;
};

export type Tag<Item = unknown> = {
  key: string;
  about: string;
  /** What a model reads beside the key. */
  note?: string;
  /** The only values, or with `open` the common ones. */
  values?: string[];
  open?: boolean;
  /** No record has two values. */
  single?: boolean;
  boolean?: boolean;
  /** A record matches if it has all of the values listed, not any. */
  all?: boolean;
  /** Values that depend on the time, so that the index cannot hold them. */
  timed?: readonly string[];
  /** Which of its values are worth a number of their own; all without it. */
  countable?(value: string): boolean;
  /** Values are ids: they differ in case, and none is suggested in place of one that no record has. */
  opaque?: boolean;
  example?: unknown;
  of(item: Item): (string | null | undefined)[];
};

/** The columns of the full-text index besides the tags. */
export const textColumns = ['copy', 'advertiser', 'bylines'] as const;
export type TextColumn = (typeof textColumns)[number];
type Texts = (string | null | undefined)[];

export type TextFilter = { key: string; about: string; columns: TextColumn[]; fields?: string[]; example?: string };

export type RecordType<Item = unknown> = {
  name: ItemType;
  texts: { copy(item: Item): Texts; advertiser(item: Item): Texts; bylines(item: Item): Texts };
  textFilters: TextFilter[];
  tags: Tag<Item>[];
  measures: Measure<Item>[];
};

export const flag = (value: boolean | null | undefined) => [value == null ? null : String(value)];

/** Lists of texts in fields that the API does not name. */
export const textsIn = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).filter((one) => typeof one === 'string');

type Parts<Item> = Pick<RecordType<Item>, 'tags' | 'measures'>;

/** The tag that finds records by what they lack: `others` are further fields than tags and measures. */
export function missing<Item>(
  { tags, measures }: Parts<Item>,
  others: Record<string, (item: Item) => unknown> = {},
  timed: readonly string[] = [],
): Tag<Item> {
  const has = new Map<string, (item: Item) => boolean>([
    ...Object.entries(others).map(([key, of]) => [key, (item: Item) => isFilled(of(item))] as const),
    ...tags.map(({ key, of }) => [key, (item: Item) => of(item).some(isFilled)] as const),
    ...measures.map(({ key, value, low }) => [key, (item: Item) => (value(item) ?? low?.(item)) != null] as const),
  ]);
  return {
    key: 'missing',
    about: 'keys without a value; a record lacks all that are listed',
    note: 'no value in any of them',
    values: [...has.keys(), ...timed],
    all: true,
    timed,
    of: (item) => [...has].flatMap(([key, hasValue]) => (hasValue(item) ? [] : key)),
  };
}

const isFilled = (value: unknown) => (typeof value === 'string' ? value.trim() !== '' : value != null);
