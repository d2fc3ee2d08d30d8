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
  const { recordType, filters } = search;
  const { not, ...own } = filters;
  const values = tagValuesIn(database, records, recordType);
  const notes = [
    ...[own, (not ?? {}) as FilterValues]
      .flatMap((some) => unknownValues(recordType, some, values))
      .slice(0, maxNotes)
      .map(([tag, value]) => unknownNote(recordType, tag, value, values)),
    ...withoutTag(search, database),
    ...(totalHits === 0 ? emptyTexts(search, database, values) : []),
    ...unknownRunning(search, countBy, database),
    ...leftOut(search, database),
    ...keptByNot(search, database),
    ...otherKind(search, totalHits, database),
  ];
  return [...new Set(notes)].slice(0, maxNotes);
}

const nounOf = ({ name }: RecordType) => (name === 'ads' ? 'ad' : 'page');

/** Values that no record has: a typo, another spelling, or a true zero for any other filters. */
function unknownValues(recordType: RecordType, filters: FilterValues, values: TagValues): [Tag, string][] {
  return recordType.tags
    .filter(({ key, all }) => key in filters && !all)
    .flatMap((tag) => {
      const given = [filters[tag.key] as FilterValue].flat().map(String);
      return given.filter((value) => !values.has(tag, value)).map((value): [Tag, string] => [tag, value]);
    });
}

function unknownNote(recordType: RecordType, tag: Tag, value: string, values: TagValues): string {
  const noun = nounOf(recordType);
  const { values: near, of } = values.near(tag, value);
  if (of === 0) return `No ${noun} in this library has a value for ${tag.key}.`;
  const note = `No ${noun} in this library has ${tag.key} ${inQuotes(value)}.`;
  return tag.opaque ? note : `${note} ${existing(near, of)}`;
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
    const { values: near, of } = values.near(names, advertiser);
    if (of !== 0) notes.push(`No advertiser's name has the words of ${inQuotes(advertiser)}. ${existing(near, of)}`);
  }
  if (bylines !== undefined && alone({ not: { missing: ['bylines'] } }) === 0)
    notes.push(`No ${nounOf(recordType)} in this library has a value for bylines.`);
  return notes;
}

/** Records that a search would find but for a tag of which they have no value. */
function withoutTag(search: Search, database: Database): string[] {
  const { recordType, filters } = search;
  const given = recordType.tags.filter(({ key, all, opaque }) => key in filters && !all && !opaque);
  return given.slice(0, maxCounted).flatMap(({ key }) => {
    const { [key]: _, ...others } = filters;
    const without = countWithout(key, { ...search, filters: others }, database);
    if (without === 0) return [];
    return `${without} more ${have(without, recordType)} no ${key} and ${without === 1 ? 'matches' : 'match'} the rest.`;
  });
}

/** Ads of which nobody knows whether they run, where a search asks for that: how many, and when they were last seen. */
function unknownRunning({ filters, ...search }: Search, countBy: string | undefined, database: Database): string[] {
  const { active, missing = [], ...others } = filters;
  const keys = [missing].flat() as string[];
  const isAmong = countBy === 'active' || keys.includes('active') || 'active' in ((filters.not ?? {}) as FilterValues);
  if (active === undefined && !isAmong) return [];
  const unknown = { ...others, missing: [...new Set([...keys, 'active'])] };
  const { from, where, values } = conditionsOf({ ...search, filters: unknown });
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

/** Records that bounds leave out because they have no value to compare. */
function leftOut(search: Search, database: Database): string[] {
  const { recordType, filters } = search;
  const bounded = recordType.measures.filter(({ key }) => `${key}From` in filters || `${key}To` in filters);
  return bounded.slice(0, maxCounted).flatMap(({ key }) => {
    const { [`${key}From`]: _, [`${key}To`]: __, ...others } = filters;
    const without = countWithout(key, { ...search, filters: others }, database);
    if (without === 0) return [];
    const ads = key === 'adsAmount' ? adsOfThose({ ...search, filters: others }, database) : '';
    return `${without} more ${have(without, recordType)} no ${key}: its bounds leave them out, and missing ${key} finds them.${ads}`;
  });
}

/** Pages whose ads are looked for, each by itself. */
const maxPages = 200;

/** Whether the library holds ads of the pages of which nobody stated how many they have. */
function adsOfThose({ filters, ...search }: Search, database: Database): string {
  const missing = [...new Set([filters.missing ?? [], 'adsAmount'].flat() as string[])];
  const { from, where, values } = conditionsOf({ ...search, filters: { ...filters, missing } });
  const pages = database.all<{ id: string }>(`SELECT pages.id FROM ${from} WHERE ${where} LIMIT ?`, [
    ...values,
    maxPages + 1,
  ]);
  if (pages.length > maxPages) return '';
  const hasAds = (id: string) =>
    database.get('SELECT 1 FROM ads_text WHERE ads_text MATCH ? LIMIT 1', [
      `{tags} : "${tagToken({ key: 'pageId', opaque: true }, id)}"`,
    ]);
  const having = pages.filter(({ id }) => hasAds(id) !== undefined).length;
  return having === 0 ? ' This library has no ad of theirs.' : ` This library has ads of ${having} of them.`;
}

/** Of what a search finds, the records without a value of a key. */
function countWithout(key: string, search: Search, database: Database): number {
  const missing = [...new Set([search.filters.missing ?? [], key].flat() as string[])];
  return countHits(database, { ...search, filters: { ...search.filters, missing } });
}

const have = (count: number, recordType: RecordType) =>
  count === 1 ? `${nounOf(recordType)} has` : `${nounOf(recordType)}s have`;

/** Records that `not` keeps because they have no value that could match. */
function keptByNot(search: Search, database: Database): string[] {
  const { recordType, filters } = search;
  const inverted = Object.keys(filters.not ?? {});
  const keys = [...recordType.tags.filter(({ all }) => !all), ...recordType.measures]
    .map(({ key }) => key)
    .filter((key) => inverted.some((one) => one.replace(/(From|To)$/, '') === key));
  return keys.slice(0, maxCounted).flatMap((key) => {
    const kept = countWithout(key, search, database);
    if (kept === 0) return [];
    return `${kept} of these ${have(kept, recordType)} no ${key}, and not keeps them; not with missing ${key} leaves them out.`;
  });
}

const formats: Record<string, string> = { video: 'VIDEO', image: 'IMAGE' };

/** `mediaKind` and `displayFormat` sound alike and say different things. */
function otherKind(search: Search, totalHits: number, database: Database): string[] {
  const { mediaKind, displayFormat, ...others } = search.filters;
  const only = [mediaKind ?? [], displayFormat ?? []].flat();
  if (search.recordType.name !== 'ads' || only.length !== 1) return [];
  const kind = String(only[0]).toLowerCase();
  const format = formats[kind];
  if (format === undefined) return [];
  const isKind = mediaKind !== undefined;
  const other: FilterValues = isKind ? { displayFormat: [format] } : { mediaKind: [kind] };
  const found = countHits(database, { ...search, filters: { ...others, ...other } });
  if (found === totalHits) return [];
  const [byKind, byFormat] = isKind ? [totalHits, found] : [found, totalHits];
  return [
    `mediaKind ${kind} finds ${byKind}, displayFormat ${format} finds ${byFormat}: the first says what an ad's media hold, the second which format the advertiser chose.`,
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
    near(tag: Tag, value: string): { values: string[]; of: number | 'many' } {
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

type Counts = {
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
