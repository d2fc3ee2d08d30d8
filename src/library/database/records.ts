import { LRUCache } from 'lru-cache';
import type { Ad, ItemType, Page } from '../../api/schemas.ts';
import { loadLanguageDetector } from '../../views/language.ts';
import {
  collectTexts,
  listMeasureColumns,
  type RecordType,
  recordTypes,
  textColumns,
} from '../search/searchable-records.ts';
import { collectTagValues, type TagValue } from '../search/tags.ts';
import { tokenize } from '../search/tokens.ts';
import type { Database } from './database.ts';

/** Reads and writes the ads and pages of a library. */
export type RecordStore = ReturnType<typeof createRecordStore>;

/**
 * Records whose JSON is not in the database. The database holds only the columns, tags and words by which a search finds
 * them. Demo data uses this.
 */
export interface ExternalRecords {
  /** Returns the row number of a record, or undefined if there is no such record. */
  findRowNumber(itemType: ItemType, id: string): number | undefined;
  /** Returns a record as JSON, or undefined if there is no such record. */
  readJson(itemType: ItemType, rowNumber: number): string | undefined;
}

/**
 * Creates the store of ads and pages in a database. The database keeps each record as the JSON that was imported, and the
 * columns, tags and words by which a search finds the record.
 *
 * @param externalRecords Further records that can be found and read, but whose JSON the database does not store.
 */
export function createRecordStore(database: Database, externalRecords?: ExternalRecords) {
  const write = {
    ads: createRecordWriter(database, recordTypes.ads),
    pages: createRecordWriter(database, recordTypes.pages),
  };

  /**
   * Returns the row number of a record and the run of imports that wrote it last. Returns undefined if no record of the
   * database has this id. `run` is negative for a page that an ad of the run created.
   */
  const findRow = (itemType: ItemType, id: string) =>
    database.get<{ number: number; run: number | null }>(`SELECT number, run FROM ${itemType} WHERE id = ?`, [
      toStoredId(itemType, id),
    ]);

  /** Returns the row number of a record, or undefined if no record has this id. */
  const findRowNumber = (itemType: ItemType, id: string): number | undefined =>
    findRow(itemType, id)?.number ?? externalRecords?.findRowNumber(itemType, toStoredId(itemType, id));

  /** Returns records as JSON, in the order of their row numbers in the argument. */
  function readJson(itemType: ItemType, rowNumbers: number[]): string[] {
    const sql = `SELECT number, json FROM ${itemType}_json WHERE number IN (SELECT value FROM json_each(?))`;
    const rows = database.all<{ number: number; json: Uint8Array }>(sql, [JSON.stringify(rowNumbers)]);
    const jsonByRow = new Map(rows.map(({ number, json }) => [number, Buffer.from(json.buffer).toString()]));
    return rowNumbers.flatMap(
      (rowNumber) => jsonByRow.get(rowNumber) ?? externalRecords?.readJson(itemType, rowNumber) ?? [],
    );
  }

  /** Writes a page, and returns its row number. It replaces a page with the same id. */
  function putPage(page: Page, json = JSON.stringify(page), run: number | null = null): number {
    return write.pages(page.pageId, findRowNumber('pages', page.pageId), page, json, run);
  }

  /**
   * Writes an ad, and creates the page of its advertiser if the library has no such page. Returns the row number of the
   * ad. It replaces an ad with the same id.
   */
  function putAd(ad: Ad, json = JSON.stringify(ad), run: number | null = null): number {
    const rowNumber = write.ads(toStoredId('ads', ad.id), findRowNumber('ads', ad.id), ad, json, run);
    if (ad.pageId && findRowNumber('pages', ad.pageId) === undefined)
      putPage(createPageFromAd(ad, ad.pageId), undefined, run && -run);
    return rowNumber;
  }

  return { findRow, findRowNumber, readJson, putPage, putAd };
}

/** Returns a function that writes a record of one type with its columns, words, tags and JSON. */
function createRecordWriter(database: Database, { name, measures, getTexts, tags }: RecordType) {
  const columns = listMeasureColumns(measures).map((column) => `"${column}"`);
  // Not an upsert: SQLite runs an upsert in a savepoint, and FTS5 flushes its buffer at each savepoint. An import would
  // take twice as long.
  const insert = `INSERT INTO ${name} (id, run, ${columns.join(', ')}) VALUES (?, ?${', ?'.repeat(columns.length)})`;
  const insertText = `INSERT OR REPLACE INTO ${name}_text (rowid, ${textColumns.join(', ')}) VALUES (?${', ?'.repeat(textColumns.length)})`;
  const update = `UPDATE ${name} SET run = ?, ${columns.map((column) => `${column} = ?`).join(', ')} WHERE number = ?`;

  const writeTags = createTagWriter(database, name);

  return (id: string, existingRow: number | undefined, item: unknown, json: string, run: number | null): number => {
    const values = measures.flatMap(({ getValue, getLowerBound, isDate }) => {
      const value = getValue(item) ?? null;
      if (getLowerBound) return [value, getLowerBound(item) ?? null];
      return [value !== null && isDate ? value - database.dateOrigin : value];
    });
    // A record that is replaced keeps its row number. With a new number, the record could appear twice while somebody
    // pages through a search.
    const rowNumber = existingRow ?? database.run(insert, [id, run, ...values]).rowid;
    if (existingRow !== undefined) database.run(update, [run, ...values, existingRow]);
    database.run(insertText, [rowNumber, ...textColumns.map((column) => toUtf8(tokenize(getTexts[column](item))))]);
    const tagList = writeTags(rowNumber, existingRow !== undefined, collectTagValues({ tags }, item));
    const insertJson = `INSERT OR REPLACE INTO ${name}_json (number, json, tags) VALUES (?, ?, ?)`;
    database.run(insertJson, [rowNumber, toUtf8(json), tagList]);
    return rowNumber;
  };
}

/** Returns a function that writes the tags of records of one type. */
function createTagWriter(database: Database, itemType: ItemType) {
  const cachedNumbers = new LRUCache<string, number>({ max: 20_000 });
  database.afterRollback(() => cachedNumbers.clear());

  /** Returns the row number of a tag value, and stores the value first if no record had it before. */
  function getTagNumber({ key, value, spelling }: TagValue): number {
    const cacheKey = `${key} ${value}`;
    const selectNumber = `SELECT number FROM ${itemType}_tag_values WHERE key = ? AND value = ?`;
    const insertValue = `INSERT INTO ${itemType}_tag_values (key, value, spelling) VALUES (?, ?, ?)`;
    const number =
      cachedNumbers.get(cacheKey) ??
      database.get<{ number: number }>(selectNumber, [key, value])?.number ??
      database.run(insertValue, [key, value, spelling]).rowid;
    cachedNumbers.set(cacheKey, number);
    return number;
  }

  // A record of the demo stores no list of its tags, so any tag may be one of its tags.
  const selectTagList = `SELECT coalesce((SELECT tags FROM ${itemType}_json WHERE number = ?), json_group_array(number)) AS tags
    FROM ${itemType}_tag_values`;
  const deleteTags = `DELETE FROM ${itemType}_tags WHERE record = ? AND tag IN (SELECT abs(value) FROM json_each(?))`;
  // OR IGNORE avoids a savepoint. SQLite opens a savepoint for a statement that may fail after its first row.
  const insertTags = `INSERT OR IGNORE INTO ${itemType}_tags (tag, record, isCounted)
    SELECT abs(value), ?, value > 0 FROM json_each(?)`;

  /**
   * Replaces the tags of a record. Returns their list as JSON: the number of each tag value, negative for values that
   * counts leave out.
   */
  return (record: number, isReplacement: boolean, values: readonly TagValue[]): string => {
    const tagList = JSON.stringify(
      values.map((value) => (value.isCounted ? getTagNumber(value) : -getTagNumber(value))),
    );
    if (isReplacement) {
      const previousTagList = database.get<{ tags: string }>(selectTagList, [record])?.tags ?? '[]';
      database.run(deleteTags, [record, previousTagList]);
    }
    database.run(insertTags, [record, tagList]);
    return tagList;
  };
}

const toUtf8 = (text: string) => Buffer.from(text);

/** Returns an id as the database stores it. Ad ids are UUIDs, which are the same in upper and lower case. */
const toStoredId = (itemType: ItemType, id: string) => (itemType === 'ads' ? id.toLowerCase() : id);

/** Returns a page with the facts that an ad states about its advertiser. An imported record of the page replaces it. */
function createPageFromAd(ad: Ad, pageId: string): Page {
  return {
    pageId,
    pageName: ad.page?.pageName ?? ad.website?.siteDomain ?? pageId,
    sourcePageExternalId: ad.sourcePageExternalId,
    adsAmount: ad.page?.adsAmount,
    countries: ad.countries,
    detailsEstimated: true,
  };
}

/**
 * Returns a function that adds the detected language to an ad without `languages`. The result is only indexed: the stored
 * record stays as it was imported.
 */
export async function loadAdLanguageDetector(): Promise<(ad: Ad) => Ad> {
  const detectLanguage = await loadLanguageDetector();
  return (ad) => {
    if (collectTexts(ad.languages).length > 0) return ad;
    const cardTexts = (ad.cards ?? []).flatMap(({ title, body }) => [title, body]);
    const adTexts = new Set([ad.headline, ad.body, ...cardTexts].filter((text) => typeof text === 'string'));
    const language = detectLanguage([...adTexts].join('\n') || null);
    return language === null ? ad : { ...ad, languages: [language] };
  };
}
