import { nearestFirst } from '../api/nearest.ts';
import { conditionsOf, type Search } from './conditions.ts';
import type { Database } from './database.ts';
import type { FilterValues } from './read-filters.ts';
import type { RecordType, Tag } from './record-type.ts';
import type { Records } from './records.ts';
import { countHits } from './search.ts';
import { tagPrefix, tagToken } from './tag-tokens.ts';

/** The values that the records hold of a tag, read from the full-text index. */
export type TagValues = {
  has(tag: Tag, value: string): boolean;
  /** Some values as records write them, those most like `value` first; `of` is how many there are, if not too many. */
  near(tag: Tag, value: string): { values: string[]; of: number | 'many' };
  /** The commonest values of what a search finds, each with its number of records. */
  counted(tag: Tag, search: Search): ValueCount[];
};

export type ValueCount = { value: string; total: number };

/** Values that get a number of their own. */
const maxCounted = 30;

/** More are not compared: those that begin alike, then others in alphabetical order. */
const maxCompared = 500;
const maxShown = 12;

export function tagValuesIn(database: Database, records: Pick<Records, 'read'>, { name }: RecordType): TagValues {
  const table = `${name}_text`;
  const rowWith = (token: string) =>
    database.get<{ number: number }>(`SELECT rowid AS number FROM ${table} WHERE ${table} MATCH ? LIMIT 1`, [
      `{tags} : "${token}"`,
    ])?.number;

  /** Ends with the last character: no token that begins with `prefix` comes after it. */
  const tokensFrom = (prefix: string) =>
    database
      .all<{ term: string }>(`SELECT term FROM temp.${name}_terms WHERE term >= ? AND term < ? LIMIT ?`, [
        prefix,
        `${prefix}\u{10ffff}`,
        maxCompared,
      ])
      .map(({ term }) => term);

  /** A value as the record writes it: the index holds it in lower case. */
  function written(tag: Tag, token: string): string[] {
    const number = rowWith(token);
    const [json] = number === undefined ? [] : records.read(name, [number]);
    if (json === undefined) return [];
    const value = tag.of(JSON.parse(json)).find((one) => one && tagToken(tag, one) === token);
    return [value ?? decoded(token.slice(tagPrefix(tag.key).length))];
  }

  function counted(tag: Tag, search: Search): ValueCount[] {
    const prefix = tagPrefix(tag.key);
    const { from, where, values } = conditionsOf(search);
    const rows = database.all<{ term: string; total: number }>(
      `SELECT term, count(*) AS total FROM temp.${name}_term_records
       WHERE term >= ? AND term < ? AND doc IN (SELECT ${name}.number FROM ${from} WHERE ${where})
       GROUP BY term ORDER BY total DESC, term LIMIT ?`,
      [prefix, `${prefix}\u{10ffff}`, ...values, 10 * maxCounted],
    );
    return rows
      .filter(({ term }) => tag.countable?.(decoded(term.slice(prefix.length))) ?? true)
      .slice(0, maxCounted)
      .flatMap(({ term, total }) => written(tag, term).map((value) => ({ value, total })));
  }

  return {
    counted,
    has: (tag, value) => rowWith(tagToken(tag, value)) !== undefined,
    near(tag, value) {
      const prefix = tagPrefix(tag.key);
      const alike = tokensFrom(tagToken(tag, value.slice(0, 2)));
      const tokens = new Map(
        [...alike, ...tokensFrom(prefix)].map((token) => [decoded(token.slice(prefix.length)), token]),
      );
      const nearest = nearestFirst(value, [...tokens.keys()]).slice(0, maxShown);
      const values = nearest.flatMap((one) => written(tag, tokens.get(one) ?? ''));
      return { values, of: tokens.size < maxCompared ? tokens.size : 'many' };
    },
  };
}

export type Counts = {
  by: string;
  values: { value: string | boolean; total: number }[];
  /** Records without a value. */
  none: number;
};

/** How many of the records that a search finds have each value of a key, in one pass. */
export function countsBy(by: string, search: Search, database: Database, records: Pick<Records, 'read'>): Counts {
  const { recordType, filters } = search;
  const { missing = [] } = filters;
  const hits = (more: FilterValues) => countHits(database, { ...search, filters: { ...filters, ...more } });
  const none = hits({ missing: [...new Set([missing, by].flat() as string[])] });
  const tag = recordType.tags.find(({ key }) => key === by);
  if (tag === undefined) {
    const values = [true, false].map((value) => ({ value, total: hits({ [by]: value }) }));
    return { by, values, none };
  }
  const values = tagValuesIn(database, records, recordType).counted(tag, search);
  if (!tag.boolean) return { by, values, none };
  return { by, values: values.map(({ value, total }) => ({ value: value === 'true', total })), none };
}

/** A token of the index may be cut inside an escape. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
