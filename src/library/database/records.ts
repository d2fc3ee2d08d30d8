import { LRUCache } from 'lru-cache';
import type { Ad, ItemType, Page } from '../../api/schemas.ts';
import { loadLanguageDetector } from '../../views/language.ts';
import { columnsOf, type RecordType, recordTypes, textColumns, textsIn } from '../search/ads-and-pages.ts';
import { type TagValue, tagValuesOf } from '../search/tags.ts';
import { tokenize } from '../search/tokens.ts';
import type { Database } from './database.ts';

export type Records = ReturnType<typeof recordsIn>;

/** Records of which the database holds only the columns, tags and words by which they are found. */
export interface OtherRecords {
  /** Returns the number of a record that the database knows under another id. */
  find(kind: ItemType, id: string): number | undefined;
  /** Returns a record as JSON. */
  json(kind: ItemType, number: number): string | undefined;
}

/** Stored ads and pages: the JSON of each as it came, and the columns by which it is found. */
export function recordsIn(database: Database, others?: OtherRecords) {
  const write = { ads: writerOf(database, recordTypes.ads), pages: writerOf(database, recordTypes.pages) };

  const find = (kind: ItemType, id: string): number | undefined =>
    database.get<{ number: number }>(`SELECT number FROM ${kind} WHERE id = ?`, [storedId(kind, id)])?.number ??
    others?.find(kind, storedId(kind, id));

  /** Returns JSON texts in the order of `numbers`. */
  function read(kind: ItemType, numbers: number[]): string[] {
    const sql = `SELECT number, json FROM ${kind}_json WHERE number IN (SELECT value FROM json_each(?))`;
    const rows = database.all<{ number: number; json: Uint8Array }>(sql, [JSON.stringify(numbers)]);
    const texts = new Map(rows.map(({ number, json }) => [number, Buffer.from(json.buffer).toString()]));
    return numbers.flatMap((number) => texts.get(number) ?? others?.json(kind, number) ?? []);
  }

  function putPage(page: Page, json = JSON.stringify(page)): boolean {
    const number = find('pages', page.pageId);
    write.pages(page.pageId, number, page, json);
    return number !== undefined;
  }

  /** Writes an ad, and creates its page if there is none. @returns whether it replaced one with the same id */
  function putAd(ad: Ad, json = JSON.stringify(ad)): boolean {
    const number = find('ads', ad.id);
    write.ads(storedId('ads', ad.id), number, ad, json);
    if (ad.pageId && find('pages', ad.pageId) === undefined) putPage(pageFromAd(ad, ad.pageId));
    return number !== undefined;
  }

  return { find, read, putPage, putAd };
}

function writerOf(database: Database, { name, measures, texts, ...rest }: RecordType) {
  const columns = columnsOf(measures).map((column) => `"${column}"`);
  // Not an upsert: SQLite runs one in a savepoint, and at each savepoint FTS5 flushes its buffer, which would double the
  // work of an import.
  const insert = `INSERT INTO ${name} (id, ${columns.join(', ')}) VALUES (?${', ?'.repeat(columns.length)})`;
  const insertText = `INSERT OR REPLACE INTO ${name}_text (rowid, ${textColumns.join(', ')}) VALUES (?${', ?'.repeat(textColumns.length)})`;
  const update = `UPDATE ${name} SET ${columns.map((column) => `${column} = ?`).join(', ')} WHERE number = ?`;

  const writeTags = tagWriterOf(database, name);

  return (id: string, stored: number | undefined, item: unknown, json: string): void => {
    const values = measures.flatMap(({ value, low, date }) => {
      const high = value(item) ?? null;
      return low ? [high, low(item) ?? null] : [high !== null && date ? high - database.dateOrigin : high];
    });
    // A known record keeps its number: with a new one it could appear twice while somebody pages through a search.
    const number = stored ?? database.run(insert, [id, ...values]).rowid;
    if (stored !== undefined) database.run(update, [...values, stored]);
    database.run(insertText, [number, ...textColumns.map((column) => utf8(tokenize(texts[column](item))))]);
    const tags = writeTags(number, stored !== undefined, tagValuesOf(rest, item));
    database.run(`INSERT OR REPLACE INTO ${name}_json (number, json, tags) VALUES (?, ?, ?)`, [
      number,
      utf8(json),
      tags,
    ]);
  };
}

/** Writes the tags of records of one type. */
function tagWriterOf(database: Database, name: ItemType) {
  const numbers = new LRUCache<string, number>({ max: 20_000 });
  database.afterRollback(() => numbers.clear());

  function numberOf({ key, value, spelling }: TagValue): number {
    const cacheKey = `${key} ${value}`;
    const ofValue = `SELECT number FROM ${name}_tag_values WHERE key = ? AND value = ?`;
    const number =
      numbers.get(cacheKey) ??
      database.get<{ number: number }>(ofValue, [key, value])?.number ??
      database.run(`INSERT INTO ${name}_tag_values (key, value, spelling) VALUES (?, ?, ?)`, [key, value, spelling])
        .rowid;
    numbers.set(cacheKey, number);
    return number;
  }

  // A record of the demo has no list of its tags.
  const written = `SELECT coalesce((SELECT tags FROM ${name}_json WHERE number = ?), json_group_array(number)) AS tags
    FROM ${name}_tag_values`;
  const remove = `DELETE FROM ${name}_tags WHERE record = ? AND tag IN (SELECT abs(value) FROM json_each(?))`;
  // OR IGNORE, because SQLite runs a statement that may fail after its first row in a savepoint, too.
  const insert = `INSERT OR IGNORE INTO ${name}_tags (tag, record, isCounted)
    SELECT abs(value), ?, value > 0 FROM json_each(?)`;

  /** Returns the list of the tags, as JSON: their numbers, negative for values that are not counted. */
  return (record: number, isKnown: boolean, values: readonly TagValue[]): string => {
    const tags = JSON.stringify(values.map((value) => (value.isCounted ? numberOf(value) : -numberOf(value))));
    if (isKnown) database.run(remove, [record, database.get<{ tags: string }>(written, [record])?.tags ?? '[]']);
    database.run(insert, [record, tags]);
    return tags;
  };
}

const utf8 = (text: string) => Buffer.from(text);

/** Ad ids are UUIDs, which ignore case. */
const storedId = (kind: ItemType, id: string) => (kind === 'ads' ? id.toLowerCase() : id);

/** A page made from what an ad says about it, until a record of the page itself is imported. */
function pageFromAd(ad: Ad, pageId: string): Page {
  return {
    pageId,
    pageName: ad.page?.pageName ?? ad.website?.siteDomain ?? pageId,
    sourcePageExternalId: ad.sourcePageExternalId,
    adsAmount: ad.page?.adsAmount,
    countries: ad.countries,
    detailsEstimated: true,
  };
}

/** Adds the language of the copy to an ad that names none, for the index alone: the stored record stays as it is. */
export async function loadAdLanguage(): Promise<(ad: Ad) => Ad> {
  const detect = await loadLanguageDetector();
  return (ad) => {
    if (textsIn(ad.languages).length > 0) return ad;
    const cards = (ad.cards ?? []).flatMap(({ title, body }) => [title, body]);
    const copy = new Set([ad.headline, ad.body, ...cards].filter((text) => typeof text === 'string'));
    const language = detect([...copy].join('\n') || null);
    return language === null ? ad : { ...ad, languages: [language] };
  };
}
