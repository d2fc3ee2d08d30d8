import { nearestFirst } from '../../api/nearest.ts';
import type { Database } from '../database/database.ts';
import type { Records } from '../database/records.ts';
import type { RecordType, Tag } from './ads-and-pages.ts';
import { conditionsOf, countHits, type FilterValue, type FilterValues, type Search } from './search.ts';
import { tagPrefix, tagToken } from './tokens.ts';

type Stored = { database: Database; records: Pick<Records, 'read'> };

/** Also of each kind, because a note may take a count of its own. */
const maxNotes = 5;

/** Notes for the reader of a search's first page, so that no number is misunderstood. */
export const searchNotes = (search: Search, stored: Stored): string[] =>
  [...new Set([...unknownValues(search, stored), ...withoutValue(search, stored.database)])].slice(0, maxNotes);

const keysIn = (filter: FilterValue | undefined): string[] => [filter ?? []].flat().map(String);

/** Values that no record has: a typo, another spelling, or a true zero for any other filters. */
function unknownValues({ recordType, filters }: Search, stored: Stored): string[] {
  const { name, tags } = recordType;
  const inverted = (filters.not ?? {}) as FilterValues;
  const values = tagValuesIn(recordType, stored);
  const none = `No ${name === 'ads' ? 'ad' : 'page'} in this library has`;
  const noteOf = (tag: Tag, value: string): string => {
    const { near, of } = values.near(tag, value);
    if (of === 0) return `${none} a value for ${tag.key}.`;
    const note = `${none} ${tag.key} "${shortened(value)}".`;
    if (tag.opaque) return note;
    const amount = near.length === of ? ', nearest in spelling first' : `, nearest of ${of}`;
    return `${note} Values there are${amount}: ${near.map(shortened).join(', ')}.`;
  };
  return tags.flatMap((tag) => {
    const wanted = tag.all ? [] : [...keysIn(filters[tag.key]), ...keysIn(inverted[tag.key])];
    const unknown = wanted.filter((value) => values.rowWith(tagToken(tag, value)).length === 0);
    return unknown.slice(0, maxNotes).map((value) => noteOf(tag, value));
  });
}

const maxValueLength = 60;
const shortened = (value: string) => (value.length > maxValueLength ? `${value.slice(0, maxValueLength)}…` : value);

/** The same filters for records without a value of a key. */
const lacking = (key: string, { missing, ...filters }: FilterValues): FilterValues => ({
  ...filters,
  missing: [...new Set([...keysIn(missing), key])],
});

/** Records that a filter leaves out, or `not` keeps, because they have no value to compare. */
function withoutValue(search: Search, database: Database): string[] {
  const { recordType, filters } = search;
  const comparable = recordType.tags.flatMap(({ key, all, opaque }) => (all || opaque ? [] : key));
  const keys = [...comparable, ...recordType.measures.map(({ key }) => key), 'active'];
  const keyOf = (filter: string) => filter.replace(/(From|To)$/, '');
  /** How many lack a value of each key that some filters compare, with the others. */
  const counts = (given: object, others: (key: string) => FilterValues) =>
    keys
      .filter((key) => Object.keys(given).map(keyOf).includes(key))
      .slice(0, maxNotes)
      .map((key) => [key, countHits(database, { ...search, filters: lacking(key, others(key)) })] as const)
      .filter(([, found]) => found > 0);
  const without = (key: string) =>
    Object.fromEntries(Object.entries(filters).filter(([filter]) => keyOf(filter) !== key));
  return [
    ...counts(filters, without).map(
      ([key, found]) =>
        `Left out because they have no value for ${key}: ${found}. The filter missing with ${key} finds these.`,
    ),
    ...counts((filters.not ?? {}) as object, () => filters).map(
      ([key, found]) =>
        `Found although they have no value for ${key}: ${found}. The filter missing with ${key} inside not leaves these out.`,
    ),
  ];
}

/** Values that get a number of their own. */
const maxCounted = 30;
/** The most values that are compared: first those that begin alike, then others in alphabetical order. */
const maxCompared = 500;
const maxShown = 12;

/** The values that the records hold of a tag, read from the full-text index. */
function tagValuesIn({ name }: RecordType, { database, records }: Stored) {
  function rowWith(token: string): number[] {
    const sql = `SELECT rowid AS number FROM ${name}_text WHERE ${name}_text MATCH ? LIMIT 1`;
    return database.all<{ number: number }>(sql, [`{tags} : "${token}"`]).map(({ number }) => number);
  }

  /** Ends with the last character: no token that begins with `start` comes after it. */
  function tokensFrom(start: string, rest: string): string[] {
    const sql = `SELECT term FROM temp.${name}_terms WHERE term >= ? AND term < ? ${rest}`;
    return database.all<{ term: string }>(sql, [start, `${start}\u{10ffff}`]).map(({ term }) => term);
  }

  /** A value as the record writes it, because the index holds it in lower case. */
  function written(tag: Tag, token: string): string {
    const [json = '{}'] = records.read(name, rowWith(token));
    const value = tag.valuesOf(JSON.parse(json)).find((one) => one && tagToken(tag, one) === token);
    return value ?? decoded(token.slice(tagPrefix(tag.key).length));
  }

  return {
    rowWith,
    written,
    common: (tag: Tag) =>
      tokensFrom(tagPrefix(tag.key), `ORDER BY doc DESC, term LIMIT ${maxCounted}`).map((term) => written(tag, term)),
    /** Some values as records write them, those most like `value` first; `of` is how many there are, if not too many. */
    near(tag: Tag, value: string): { near: string[]; of: number | 'many' } {
      const prefix = tagPrefix(tag.key);
      const some = [tagToken(tag, value.slice(0, 2)), prefix].flatMap((start) =>
        tokensFrom(start, `LIMIT ${maxCompared}`),
      );
      const tokens = new Map(some.map((token) => [decoded(token.slice(prefix.length)), token]));
      const nearest = nearestFirst(value, [...tokens.keys()]).slice(0, maxShown);
      const near = nearest.map((one) => written(tag, tokens.get(one) ?? ''));
      return { near, of: tokens.size < maxCompared ? tokens.size : 'many' };
    },
  };
}

/** The commonest values of a tag in the whole library, as records write them. */
export function commonValues(key: string, recordType: RecordType, stored: Stored): string[] {
  const tag = recordType.tags.find((one) => one.key === key);
  return tag ? tagValuesIn(recordType, stored).common(tag) : [];
}

/**
 * Counts how many of the records that a search finds have each of the commonest values of a key, and how many have none.
 * `more` is the number of rarer values, which are not listed.
 */
export function countsBy(by: string, search: Search, stored: Stored) {
  const { database } = stored;
  const { recordType, filters } = search;
  const hits = (others: FilterValues) => countHits(database, { ...search, filters: others });
  const none = hits(lacking(by, filters));
  const tag = recordType.tags.find(({ key }) => key === by);
  if (tag === undefined) {
    const flags = [true, false].map((value) => ({ value, total: hits({ ...filters, [by]: value }) }));
    return { by, values: flags, none, more: 0 };
  }
  const { name } = recordType;
  const { from, where, values } = conditionsOf(search);
  const prefix = tagPrefix(tag.key);
  const rows = database.all<{ term: string; total: number; terms: number }>(
    `SELECT term, count(*) AS total, count(*) OVER () AS terms FROM (
       SELECT term, max(length(term)) FROM temp.${name}_term_records
       WHERE term >= ? AND term < ? AND doc IN (SELECT ${name}.number FROM ${from} WHERE ${where})
       GROUP BY doc${tag.nested ? '' : ', term'})
     GROUP BY term ORDER BY total DESC, term LIMIT ?`,
    [prefix, `${prefix}\u{10ffff}`, ...values, maxCounted],
  );
  const { written } = tagValuesIn(recordType, stored);
  const counted = rows.map(({ term, total }) => ({ value: written(tag, term), total }));
  const asFlags = counted.map(({ value, total }) => ({ value: value === 'true', total }));
  const more = (rows[0]?.terms ?? 0) - rows.length;
  return { by, values: tag.boolean ? asFlags : counted, none, more };
}

/** A token of the index may be cut inside an escape. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
