import { nearestFirst } from '../../api/nearest.ts';
import type { Database } from '../database/database.ts';
import type { RecordType, Tag } from './ads-and-pages.ts';
import { conditionsOf, countHits, type FilterValue, type FilterValues, type Search } from './search.ts';
import { comparableValue } from './tags.ts';

/** The most notes of an answer, and of each kind of note, because a note may take a count of its own. */
const maxNotes = 5;

/** Returns notes for the reader of a search's first page, so that no number is misunderstood. */
export const searchNotes = (search: Search, database: Database): string[] =>
  [...new Set([...unknownValues(search, database), ...withoutValue(search, database)])].slice(0, maxNotes);

const keysIn = (filter: FilterValue | undefined): string[] => [filter ?? []].flat().map(String);

/** Returns a note for each value that no record has: a typo, another spelling, or a true zero for any other filters. */
function unknownValues({ recordType, filters }: Search, database: Database): string[] {
  const { name, tags } = recordType;
  const inverted = (filters.not ?? {}) as FilterValues;
  const values = tagValuesIn(recordType, database);
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
    const unknown = wanted.filter((value) => !values.has(tag, value));
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

/** The most values that get a number of their own. */
const maxCounted = 30;
/** The most values that are compared: first those that begin alike, then others in alphabetical order. */
const maxCompared = 500;
const maxShown = 12;

/** The values of tags, as the records of a library have them. */
function tagValuesIn({ name }: RecordType, database: Database) {
  const values = `SELECT value, spelling FROM ${name}_tag_values AS stored`;
  // A value stays stored when the last record that had it is replaced.
  const isUsed = (condition: string) =>
    `EXISTS (SELECT 1 FROM ${name}_tags WHERE tag = stored.number AND ${condition})`;
  const spellings = (sql: string, given: (string | number)[]) =>
    database.all<{ value: string; spelling: string }>(sql, given);

  return {
    has: (tag: Tag, value: string): boolean =>
      database.all(`${values} WHERE key = ? AND value = ? AND ${isUsed('1')}`, [tag.key, comparableValue(tag, value)])
        .length > 0,
    common: (tag: Tag): string[] =>
      spellings(
        `SELECT value, spelling FROM (
           SELECT value, spelling,
             (SELECT count(*) FROM ${name}_tags WHERE tag = stored.number AND isCounted) AS records
           FROM ${name}_tag_values AS stored WHERE key = ?)
         WHERE records > 0 ORDER BY records DESC, value LIMIT ${maxCounted}`,
        [tag.key],
      ).map(({ spelling }) => spelling),
    /** Returns the values most like `value`, and how many values there are, unless there are too many to compare. */
    near(tag: Tag, value: string): { near: string[]; of: number | 'many' } {
      const start = comparableValue(tag, value.slice(0, 2));
      const some = [start, ''].flatMap((from) =>
        spellings(
          `${values} WHERE key = ? AND value >= ? AND value < ? AND ${isUsed('isCounted')} ORDER BY value LIMIT ?`,
          [tag.key, from, `${from}\u{10ffff}`, maxCompared],
        ),
      );
      const written = new Map(some.map(({ value, spelling }) => [value, spelling]));
      const nearest = nearestFirst(value, [...written.keys()]).slice(0, maxShown);
      const near = nearest.map((one) => written.get(one) ?? one);
      return { near, of: written.size < maxCompared ? written.size : 'many' };
    },
  };
}

/** Returns the commonest values of a tag in the whole library, as records write them. */
export function commonValues(key: string, recordType: RecordType, database: Database): string[] {
  const tag = recordType.tags.find((one) => one.key === key);
  return tag ? tagValuesIn(recordType, database).common(tag) : [];
}

/**
 * Counts the records of a search for each of the commonest values of a key, and those without a value. The number of a
 * value is what the search finds with the value as a further filter. `more` is the number of rarer values, which are
 * not listed.
 */
export function countsBy(by: string, search: Search, database: Database) {
  const { recordType, filters } = search;
  const hits = (others: FilterValues) => countHits(database, { ...search, filters: others });
  const none = hits(lacking(by, filters));
  const tag = recordType.tags.find(({ key }) => key === by);
  if (tag === undefined) {
    const flags = [true, false].map((value) => ({ value, total: hits({ ...filters, [by]: value }) }));
    return { by, values: flags, none, more: 0 };
  }
  const { name } = recordType;
  const { from, where, values } = conditionsOf(database, search);
  // The plus makes SQLite read the records of each value instead of looking up each found record for each value.
  const rows = database.all<{ value: string; total: number; valueCount: number }>(
    `WITH found AS MATERIALIZED (SELECT ${name}.number FROM ${from} WHERE ${where})
     SELECT spelling AS value, count(*) AS total, count(*) OVER () AS valueCount
     FROM ${name}_tag_values AS stored JOIN ${name}_tags ON tag = stored.number
     WHERE key = ? AND +record IN (SELECT number FROM found)
     GROUP BY tag HAVING max(isCounted) ORDER BY total DESC, stored.value LIMIT ?`,
    [...values, tag.key, maxCounted],
  );
  const counted = rows.map(({ value, total }) => ({ value, total }));
  const asFlags = counted.map(({ value, total }) => ({ value: value === 'true', total }));
  const more = (rows[0]?.valueCount ?? 0) - rows.length;
  return { by, values: tag.boolean ? asFlags : counted, none, more };
}
