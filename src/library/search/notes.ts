import { nearestFirst } from '../../api/nearest.ts';
import type { Database } from '../database/database.ts';
import type { Records } from '../database/records.ts';
import type { RecordType, Tag } from './ads-and-pages.ts';
import { conditionsOf, countHits, type FilterValue, type FilterValues, type Search } from './search.ts';
import { tagPrefix, tagToken } from './tokens.ts';

type Context = { database: Database; records: Pick<Records, 'read'> };

const maxNotes = 5;
/** Each takes a count of its own. */
const maxCounted = 5;

/** Notes for the reader of a search's first page, so that no number is misunderstood. */
export function searchNotes(search: Search, { database, records }: Context): string[] {
  const unknown = unknownValues(search, tagValuesIn(database, records, search.recordType));
  return [...new Set([...unknown, ...withoutValue(search, database)])].slice(0, maxNotes);
}

const nounOf = ({ name }: RecordType) => (name === 'ads' ? 'ad' : 'page');
const keysIn = (filter: FilterValue | undefined): string[] => [filter ?? []].flat().map(String);

/** Values that no record has: a typo, another spelling, or a true zero for any other filters. */
function unknownValues({ recordType, filters }: Search, values: TagValues): string[] {
  const inverted = (filters.not ?? {}) as FilterValues;
  const noun = nounOf(recordType);
  const noteOf = (tag: Tag, value: string): string => {
    const { near, of } = values.near(tag, value);
    if (of === 0) return `No ${noun} in this library has a value for ${tag.key}.`;
    const note = `No ${noun} in this library has ${tag.key} "${shortened(value)}".`;
    if (tag.opaque) return note;
    const amount = near.length === of ? ', nearest in spelling first' : `, nearest of ${of}`;
    return `${note} Values there are${amount}: ${near.map(shortened).join(', ')}.`;
  };
  return recordType.tags
    .filter(({ all }) => !all)
    .flatMap((tag) =>
      [...keysIn(filters[tag.key]), ...keysIn(inverted[tag.key])]
        .filter((value) => !values.has(tag, value))
        .slice(0, maxNotes)
        .map((value) => noteOf(tag, value)),
    );
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
  /** The keys of these filters by which records are compared. */
  const used = (some: object) => new Set(Object.keys(some).map((filter) => filter.replace(/(From|To)$/, '')));
  const count = (
    given: object,
    others: (key: string) => FilterValues,
    noteOf: (key: string, found: number) => string,
  ) =>
    keys
      .filter((key) => used(given).has(key))
      .slice(0, maxCounted)
      .flatMap((key) => {
        const found = countHits(database, { ...search, filters: lacking(key, others(key)) });
        return found === 0 ? [] : noteOf(key, found);
      });
  const without = (key: string) =>
    Object.fromEntries(Object.entries(filters).filter(([filter]) => !used({ [filter]: 0 }).has(key)));
  const leftOut = (key: string, found: number) =>
    `Left out because they have no value for ${key}: ${found}. The filter missing with ${key} finds these.`;
  const kept = (key: string, found: number) =>
    `Found although they have no value for ${key}: ${found}. The filter missing with ${key} inside not leaves these out.`;
  return [...count(filters, without, leftOut), ...count((filters.not ?? {}) as object, () => filters, kept)];
}

type ValueCount = { value: string; total: number };

/** Values that get a number of their own. */
const maxCountedValues = 30;

/** The most values that are compared: first those that begin alike, then others in alphabetical order. */
const maxCompared = 500;
const maxShown = 12;

type TagValues = ReturnType<typeof tagValuesIn>;

/** The values that the records hold of a tag, read from the full-text index. */
function tagValuesIn(database: Database, records: Pick<Records, 'read'>, { name }: RecordType) {
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
    const value = tag.valuesOf(JSON.parse(json)).find((one) => one && tagToken(tag, one) === token);
    return [value ?? decoded(token.slice(tagPrefix(tag.key).length))];
  }

  /** The commonest values of what a search finds, each with its number of records. */
  function counted(tag: Tag, search: Search): ValueCount[] {
    const prefix = tagPrefix(tag.key);
    const { from, where, values } = conditionsOf(search);
    const rows = database.all<{ term: string; total: number }>(
      `SELECT term, count(*) AS total FROM (
         SELECT term, max(length(term)) FROM temp.${name}_term_records
         WHERE term >= ? AND term < ? AND doc IN (SELECT ${name}.number FROM ${from} WHERE ${where})
         GROUP BY doc${tag.nested ? '' : ', term'})
       GROUP BY term ORDER BY total DESC, term LIMIT ?`,
      [prefix, `${prefix}\u{10ffff}`, ...values, maxCountedValues],
    );
    return rows.flatMap(({ term, total }) => written(tag, term).map((value) => ({ value, total })));
  }

  return {
    counted,
    /** The commonest values in the whole library. */
    common(tag: Tag): string[] {
      const prefix = tagPrefix(tag.key);
      const sql = `SELECT term FROM temp.${name}_terms WHERE term >= ? AND term < ? ORDER BY doc DESC, term LIMIT ?`;
      const terms = database.all<{ term: string }>(sql, [prefix, `${prefix}\u{10ffff}`, maxCountedValues]);
      return terms.flatMap(({ term }) => written(tag, term));
    },
    has: (tag: Tag, value: string): boolean => rowWith(tagToken(tag, value)) !== undefined,
    /** Some values as records write them, those most like `value` first; `of` is how many there are, if not too many. */
    near(tag: Tag, value: string): { near: string[]; of: number | 'many' } {
      const prefix = tagPrefix(tag.key);
      const alike = tokensFrom(tagToken(tag, value.slice(0, 2)));
      const tokens = new Map(
        [...alike, ...tokensFrom(prefix)].map((token) => [decoded(token.slice(prefix.length)), token]),
      );
      const nearest = nearestFirst(value, [...tokens.keys()]).slice(0, maxShown);
      const near = nearest.flatMap((one) => written(tag, tokens.get(one) ?? ''));
      return { near, of: tokens.size < maxCompared ? tokens.size : 'many' };
    },
  };
}

/** The commonest values of a tag in the whole library, as records write them. */
export function commonValues(key: string, recordType: RecordType, { database, records }: Context): string[] {
  const tag = recordType.tags.find((one) => one.key === key);
  return tag ? tagValuesIn(database, records, recordType).common(tag) : [];
}

/** How many of the records that a search finds have each value of a key, in one pass, and how many have none. */
export function countsBy(by: string, search: Search, database: Database, records: Pick<Records, 'read'>) {
  const { recordType, filters } = search;
  const hits = (others: FilterValues) => countHits(database, { ...search, filters: others });
  const none = hits(lacking(by, filters));
  const tag = recordType.tags.find(({ key }) => key === by);
  if (tag === undefined)
    return { by, values: [true, false].map((value) => ({ value, total: hits({ ...filters, [by]: value }) })), none };
  const values = tagValuesIn(database, records, recordType).counted(tag, search);
  const isTrue = ({ value, total }: ValueCount) => ({ value: value === 'true', total });
  return { by, values: tag.boolean ? values.map(isTrue) : values, none };
}

/** A token of the index may be cut inside an escape. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
