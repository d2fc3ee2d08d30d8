import { nearestFirst } from '../../api/nearest.ts';
import { dayOf, seenText } from '../../present/values.ts';
import type { Database } from '../database/database.ts';
import type { Records } from '../database/records.ts';
import type { RecordType, Tag } from './ads-and-pages.ts';
import type { FilterValue, FilterValues } from './search.ts';
import { conditionsOf, countHits, type Search } from './search.ts';
import { tagPrefix, tagToken } from './tokens.ts';

type Context = { database: Database; records: Pick<Records, 'read'> };

const maxNotes = 5;
/** Each takes a count of its own. */
const maxCounted = 5;

/** What a reader of a search's first page should know, so that no number is taken for what it is not. */
export function searchNotes(
  search: Search,
  { totalHits, countBy }: { totalHits: number; countBy?: string | undefined },
  { database, records }: Context,
): string[] {
  const values = tagValuesIn(database, records, search.recordType);
  const notes = [
    ...unknownValues(search, values).slice(0, maxNotes),
    ...(totalHits === 0 ? emptyTexts(search, database, values) : []),
    ...unknownRunning(search, countBy, database),
    ...withoutValue(search, database),
    ...otherKind(search, totalHits, database),
  ];
  return [...new Set(notes)].slice(0, maxNotes);
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
    const note = `No ${noun} in this library has ${tag.key} ${inQuotes(value)}.`;
    return tag.opaque ? note : `${note} ${existing(near, of)}`;
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

const existing = (near: string[], of: number | 'many') =>
  `Values there are${near.length === of ? ', nearest in spelling first' : `, nearest of ${of}`}: ${near.map(shortened).join(', ')}.`;

const maxValueLength = 60;
const shortened = (value: string) => (value.length > maxValueLength ? `${value.slice(0, maxValueLength)}…` : value);
const inQuotes = (value: string) => `"${shortened(value)}"`;

/** Texts that find nothing even by themselves. */
function emptyTexts({ recordType, asOf, filters }: Search, database: Database, values: TagValues): string[] {
  const alone = (some: FilterValues) => countHits(database, { recordType, asOf, filters: some });
  const notes: string[] = [];
  const { advertiser, bylines } = filters;
  const names = recordType.tags.find(({ key }) => key === 'advertiserExact');
  if (typeof advertiser === 'string' && names && alone({ advertiser }) === 0) {
    const { near, of } = values.near(names, advertiser);
    if (of !== 0) notes.push(`No advertiser's name has the words of ${inQuotes(advertiser)}. ${existing(near, of)}`);
  }
  if (bylines !== undefined && alone({ not: { missing: ['bylines'] } }) === 0)
    notes.push(`No ${nounOf(recordType)} in this library has a value for bylines.`);
  return notes;
}

/** Ads of which nobody knows whether they run, where a search asks for that: how many, and when they were last seen. */
function unknownRunning({ filters, ...search }: Search, countBy: string | undefined, database: Database): string[] {
  const { active, ...others } = filters;
  const keys = keysIn(filters.missing);
  const isAmong = countBy === 'active' || keys.includes('active') || 'active' in ((filters.not ?? {}) as FilterValues);
  if (active === undefined && !isAmong) return [];
  const { from, where, values } = conditionsOf({ ...search, filters: lacking('active', others) });
  const sql = `SELECT count(*) AS ads, count(ads."lastSeenAt") AS seen, min(ads."lastSeenAt") AS first, max(ads."lastSeenAt") AS last FROM ${from} WHERE ${where}`;
  const { ads = 0, seen = 0, first, last } = database.get<SeenRow>(sql, values) ?? {};
  if (ads === 0) return [];
  const dates = { first: dayOf(first) ?? '', last: dayOf(last) ?? '', ads: seen, isAll: seen === ads };
  const reason = `no endDate, ${seen > 0 ? seenText(dates) : 'and no date of when they were last seen'}.`;
  if (isAmong) return [`Unknown whether ${ads} of these ads ${ads === 1 ? 'runs' : 'run'}: ${reason}`];
  const more = ads === 1 ? '1 more ad matches the rest' : `${ads} more ads match the rest`;
  return [`${more}. Unknown whether ${ads === 1 ? 'it runs' : 'they run'}: ${reason} missing active finds them.`];
}

type SeenRow = { ads: number; seen: number; first: number | null; last: number | null };

/** The same filters for records without a value of a key. */
const lacking = (key: string, { missing, ...filters }: FilterValues): FilterValues => ({
  ...filters,
  missing: [...new Set([...keysIn(missing), key])],
});

/** Records that a filter leaves out, or `not` keeps, because they have no value to compare. */
function withoutValue(search: Search, database: Database): string[] {
  const { recordType, filters } = search;
  const { tags, measures } = recordType;
  const noun = nounOf(recordType);
  const each = (wanted: { key: string }[], endings: string[], noteOf: (key: string, found: number) => string) =>
    wanted.slice(0, maxCounted).flatMap(({ key }) => {
      const others = Object.entries(filters).filter(([one]) => !endings.some((ending) => one === key + ending));
      const left = lacking(key, Object.fromEntries(others));
      const found = countHits(database, { ...search, filters: left });
      return found === 0 ? [] : noteOf(key, found);
    });
  const have = (found: number) => (found === 1 ? `${noun} has` : `${noun}s have`);
  const inverted = Object.keys(filters.not ?? {});
  const isInverted = ({ key }: { key: string }) => inverted.some((one) => one.replace(/(From|To)$/, '') === key);
  return [
    ...each(
      tags.filter(({ key, all, opaque }) => key in filters && !all && !opaque),
      [''],
      (key, found) => `${found} more ${have(found)} no ${key} and ${found === 1 ? 'matches' : 'match'} the rest.`,
    ),
    ...each(
      measures.filter(({ key }) => `${key}From` in filters || `${key}To` in filters),
      ['From', 'To'],
      (key, found) =>
        `${found} more ${have(found)} no ${key}, so ${key}From and ${key}To leave ${found === 1 ? 'it' : 'them'} out; the filter missing with ${key} finds ${found === 1 ? 'it' : 'them'}.`,
    ),
    ...each([...tags.filter(({ all }) => !all), ...measures].filter(isInverted), [], (key, found) => {
      const them = found === 1 ? 'it' : 'them';
      return `${found} of these ${have(found)} no ${key}, so not keeps ${them}; missing with ${key} inside not leaves ${them} out.`;
    }),
  ];
}

/** `mediaKind` and `displayFormat` sound alike and say different things. */
function otherKind(search: Search, totalHits: number, database: Database): string[] {
  const { mediaKind, displayFormat, ...others } = search.filters;
  const only = [...keysIn(mediaKind), ...keysIn(displayFormat)];
  const [kind = ''] = only.map((one) => one.toLowerCase());
  if (search.recordType.name !== 'ads' || only.length !== 1 || !['video', 'image'].includes(kind)) return [];
  const other: FilterValues = mediaKind ? { displayFormat: [kind.toUpperCase()] } : { mediaKind: [kind] };
  const found = countHits(database, { ...search, filters: { ...others, ...other } });
  if (found === totalHits) return [];
  const [byKind, byFormat] = mediaKind ? [totalHits, found] : [found, totalHits];
  return [
    `mediaKind ${kind} finds ${byKind}, displayFormat ${kind.toUpperCase()} finds ${byFormat}: the first says what an ad's media hold, the second which format the advertiser chose.`,
  ];
}

type ValueCount = { value: string; total: number };

/** Values that get a number of their own. */
const maxCountedValues = 30;

/** More are not compared: those that begin alike, then others in alphabetical order. */
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
    const value = tag.of(JSON.parse(json)).find((one) => one && tagToken(tag, one) === token);
    return [value ?? decoded(token.slice(tagPrefix(tag.key).length))];
  }

  /** The commonest values of what a search finds, each with its number of records. */
  function counted(tag: Tag, search: Search): ValueCount[] {
    const prefix = tagPrefix(tag.key);
    const { from, where, values } = conditionsOf(search);
    const rows = database.all<{ term: string; total: number }>(
      `SELECT term, count(*) AS total FROM temp.${name}_term_records
       WHERE term >= ? AND term < ? AND doc IN (SELECT ${name}.number FROM ${from} WHERE ${where})
       GROUP BY term ORDER BY total DESC, term LIMIT ?`,
      [prefix, `${prefix}\u{10ffff}`, ...values, 10 * maxCountedValues],
    );
    return rows
      .filter(({ term }) => tag.countable?.(decoded(term.slice(prefix.length))) ?? true)
      .slice(0, maxCountedValues)
      .flatMap(({ term, total }) => written(tag, term).map((value) => ({ value, total })));
  }

  return {
    counted,
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

type Counts = {
  by: string;
  values: { value: string | boolean; total: number }[];
  /** Records without a value. */
  none: number;
};

/** How many of the records that a search finds have each value of a key, in one pass. */
export function countsBy(by: string, search: Search, database: Database, records: Pick<Records, 'read'>): Counts {
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
