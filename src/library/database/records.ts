import { LRUCache } from 'lru-cache';
import type { Ad, ItemType, Page } from '../../api/schemas.ts';
import { createLruOptions } from '../../lru-options.ts';
import { loadLanguageDetector } from '../../views/language.ts';
import {
  collectTexts,
  listMeasureColumns,
  type RecordType,
  recordTypes,
  textColumns,
} from '../search/searchable-records.ts';
import { collectTagValues, type TagValue } from '../search/tags.ts';
import { tokenizeTexts } from '../search/tokens.ts';
import type { Database } from './database.ts';

/** The store of ads and advertiser pages (records) in a library, with methods that read and write records. */
export type RecordStore = ReturnType<typeof createRecordStore>;

/**
 * A source of records whose JSON is generated on demand. The database contains only the data that searches need, so
 * that the file with the demo data stays small.
 */
export interface GeneratedRecords {
  /** Returns the row number of a record, or undefined if there is no such record. */
  findRowNumber(itemType: ItemType, id: string): number | undefined;
  /** Returns a record as JSON, or undefined if there is no such record. */
  readJson(itemType: ItemType, rowNumber: number): string | undefined;
}

/**
 * Creates the store of ads and advertiser pages in a database. For each record, the database contains the imported
 * JSON, and the columns, tags and words by which searches find the record.
 *
 * @param generatedRecords a source of records whose JSON is not stored in the database
 */
export function createRecordStore(database: Database, generatedRecords?: GeneratedRecords) {
  const recordWriters = {
    ads: createRecordWriter(database, recordTypes.ads),
    pages: createRecordWriter(database, recordTypes.pages),
  };

  /**
   * Returns the row number of a record (`number`), and the number of the import that last wrote the record (`run`). The
   * import number is negative for an advertiser page that was created from an ad. Returns undefined if the database has
   * no such record.
   */
  const findRow = (itemType: ItemType, id: string) =>
    database.get<{ number: number; run: number | null }>(`SELECT number, run FROM ${itemType} WHERE id = ?`, [
      toStoredId(itemType, id),
    ]);

  /** Returns the row number of a record, or undefined if there is no such record. */
  const findRowNumber = (itemType: ItemType, id: string): number | undefined =>
    findRow(itemType, id)?.number ?? generatedRecords?.findRowNumber(itemType, toStoredId(itemType, id));

  /** Returns the JSON of the records with the given row numbers, in the same order. */
  function readJson(itemType: ItemType, rowNumbers: number[]): string[] {
    const selectJsonSql = `SELECT number, json FROM ${itemType}_json WHERE number IN (SELECT value FROM json_each(?))`;
    const rows = database.all<{ number: number; json: Uint8Array }>(selectJsonSql, [JSON.stringify(rowNumbers)]);
    const jsonByRowNumber = new Map(rows.map(({ number, json }) => [number, Buffer.from(json.buffer).toString()]));
    return rowNumbers.flatMap(
      (rowNumber) => jsonByRowNumber.get(rowNumber) ?? generatedRecords?.readJson(itemType, rowNumber) ?? [],
    );
  }

  /**
   * Caches what the library knows about advertiser pages, by page id. Most ads add no country and no name to their page
   * and then need no query.
   */
  const knownPages = new LRUCache<string, { countries: Set<string>; hasName: boolean }>(createLruOptions(5000));
  database.afterRollback(() => knownPages.clear());

  /** Inserts an advertiser page, or replaces the page with the same id. Returns the row number of the page. */
  function putPage(page: Page, json = JSON.stringify(page), runNumber: number | null = null): number {
    knownPages.delete(page.pageId);
    return recordWriters.pages(page.pageId, findRowNumber('pages', page.pageId), page, json, runNumber);
  }

  /**
   * Creates the advertiser page of an ad if the library has no such page. If the page was created from another ad, adds
   * the countries of this ad, and the name of the advertiser if the page has none.
   */
  function updatePageFromAd(ad: Ad, pageId: string, runNumber: number | null): void {
    const countries = collectTexts(ad.countries);
    const pageName = ad.page?.pageName;
    const knownPage = knownPages.get(pageId);
    if (knownPage && countries.every((country) => knownPage.countries.has(country)) && (knownPage.hasName || !pageName))
      return;
    const rowNumber = findRowNumber('pages', pageId);
    if (rowNumber === undefined) putPage(createPageFromAd(ad, pageId), undefined, runNumber && -runNumber);
    else {
      const page = JSON.parse(readJson('pages', [rowNumber])[0] ?? '{}') as Page;
      const pageCountries = collectTexts(page.countries);
      const allCountries = [...new Set([...pageCountries, ...countries])];
      const pageRun = findRow('pages', pageId)?.run ?? null;
      // An imported page stays unchanged. It may have `detailsEstimated: true`, too.
      const isCreatedFromAd = pageRun !== null && pageRun < 0;
      // A page that was created from an ad without the name of the advertiser may have its id as its name.
      const hasName = !isCreatedFromAd || page.pageName !== pageId;
      const newName = hasName || !pageName ? undefined : pageName;
      const hasNewCountry = allCountries.length > pageCountries.length;
      if (isCreatedFromAd && (newName !== undefined || hasNewCountry)) {
        const newFields = { ...(newName && { pageName: newName }), ...(hasNewCountry && { countries: allCountries }) };
        putPage({ ...page, ...newFields }, undefined, pageRun);
      }
      knownPages.set(pageId, { countries: new Set(allCountries), hasName: hasName || newName !== undefined });
    }
  }

  /**
   * Inserts an ad, or replaces the ad with the same id. Returns the row number of the ad. If the library does not have
   * the advertiser's page, creates the page from the ad.
   */
  function putAd(ad: Ad, json = JSON.stringify(ad), runNumber: number | null = null): number {
    const rowNumber = recordWriters.ads(toStoredId('ads', ad.id), findRowNumber('ads', ad.id), ad, json, runNumber);
    if (ad.pageId) updatePageFromAd(ad, ad.pageId, runNumber);
    return rowNumber;
  }

  return { findRow, findRowNumber, readJson, putPage, putAd };
}

/** Creates a function that writes the columns, words, tags and JSON of a record to the tables of its type. */
function createRecordWriter(database: Database, { itemType, measures, getTexts, tagFilters }: RecordType) {
  const columns = listMeasureColumns(measures).map((column) => `"${column}"`);
  // Do not use an upsert. SQLite runs an upsert in a savepoint (a nested transaction), which flushes the buffer of the
  // full-text index. An import would therefore take twice as long.
  const insertSql = `INSERT INTO ${itemType} (id, run, ${columns.join(', ')}) VALUES (?, ?${', ?'.repeat(columns.length)})`;
  const insertTextSql = `INSERT OR REPLACE INTO ${itemType}_text (rowid, ${textColumns.join(', ')}) VALUES (?${', ?'.repeat(textColumns.length)})`;
  const updateSql = `UPDATE ${itemType} SET run = ?, ${columns.map((column) => `${column} = ?`).join(', ')} WHERE number = ?`;

  const writeTags = createTagWriter(database, itemType);

  return (
    id: string,
    existingRowNumber: number | undefined,
    record: unknown,
    json: string,
    runNumber: number | null,
  ): number => {
    const columnValues = measures.flatMap(({ getValue, getLowerBound, isDate }) => {
      const normalizedValue = getValue(record) ?? null;
      if (getLowerBound) return [normalizedValue, getLowerBound(record) ?? null];
      return [normalizedValue !== null && isDate ? normalizedValue - database.dateOriginMs : normalizedValue];
    });
    // When a record is replaced, it keeps its row number. With a new number, the record could appear twice while a user
    // pages through search results.
    const rowNumber = existingRowNumber ?? database.run(insertSql, [id, runNumber, ...columnValues]).rowid;
    if (existingRowNumber !== undefined) database.run(updateSql, [runNumber, ...columnValues, existingRowNumber]);
    database.run(insertTextSql, [
      rowNumber,
      ...textColumns.map((column) => toUtf8(tokenizeTexts(getTexts[column](record)))),
    ]);
    const tagRowNumbersJson = writeTags(
      rowNumber,
      existingRowNumber !== undefined,
      collectTagValues({ tagFilters }, record),
    );
    const insertJsonSql = `INSERT OR REPLACE INTO ${itemType}_json (number, json, tags) VALUES (?, ?, ?)`;
    database.run(insertJsonSql, [rowNumber, toUtf8(json), tagRowNumbersJson]);
    return rowNumber;
  };
}

/**
 * Creates a function that writes the tags of a record, that is, the values by which a search can filter, e.g.
 * countries.
 */
function createTagWriter(database: Database, itemType: ItemType) {
  const rowNumberByTagValue = new LRUCache<string, number>(createLruOptions(20_000));
  database.afterRollback(() => rowNumberByTagValue.clear());

  /** Returns the row number of a tag value, e.g. of the country `DE`. Stores a new value first. */
  function getTagValueRowNumber({ key, normalizedValue, spelling }: TagValue): number {
    const cacheKey = `${key} ${normalizedValue}`;
    const selectNumberSql = `SELECT number FROM ${itemType}_tag_values WHERE key = ? AND value = ?`;
    const insertValueSql = `INSERT INTO ${itemType}_tag_values (key, value, spelling) VALUES (?, ?, ?)`;
    const rowNumber =
      rowNumberByTagValue.get(cacheKey) ??
      database.get<{ number: number }>(selectNumberSql, [key, normalizedValue])?.number ??
      database.run(insertValueSql, [key, normalizedValue, spelling]).rowid;
    rowNumberByTagValue.set(cacheKey, rowNumber);
    return rowNumber;
  }

  // Demo records have no stored list of tags. Select all existing tags for them, so that the next statement deletes
  // every tag of the record.
  const selectTagRowNumbersSql = `SELECT coalesce((SELECT tags FROM ${itemType}_json WHERE number = ?), json_group_array(number)) AS tags
    FROM ${itemType}_tag_values`;
  const deleteTagsSql = `DELETE FROM ${itemType}_tags WHERE record = ? AND tag IN (SELECT abs(value) FROM json_each(?))`;
  // `OR IGNORE` avoids the savepoint (a nested transaction) that SQLite opens for any statement that may fail after its
  // first row.
  const insertTagsSql = `INSERT OR IGNORE INTO ${itemType}_tags (tag, record, isCounted)
    SELECT abs(value), ?, value > 0 FROM json_each(?)`;

  /**
   * Replaces the tags of a record. Returns the row numbers of its tags as JSON, e.g. `[17,-4]`. A negative number means
   * that searches find the record by this tag, but counts by tag ignore the record.
   */
  return (rowNumber: number, isReplacement: boolean, tagValues: readonly TagValue[]): string => {
    const tagRowNumbersJson = JSON.stringify(
      tagValues.map((tagValue) =>
        tagValue.isCounted ? getTagValueRowNumber(tagValue) : -getTagValueRowNumber(tagValue),
      ),
    );
    if (isReplacement) {
      const previousTagRowNumbersJson =
        database.get<{ tags: string }>(selectTagRowNumbersSql, [rowNumber])?.tags ?? '[]';
      database.run(deleteTagsSql, [rowNumber, previousTagRowNumbersJson]);
    }
    database.run(insertTagsSql, [rowNumber, tagRowNumbersJson]);
    return tagRowNumbersJson;
  };
}

const toUtf8 = (text: string) => Buffer.from(text);

/**
 * Returns an id in the form in which the database stores it. Ad ids are UUIDs, in which case does not matter, so they
 * are stored in lower case.
 */
const toStoredId = (itemType: ItemType, id: string) => (itemType === 'ads' ? id.toLowerCase() : id);

/** Creates an advertiser page from the fields of an ad. If the real page is imported later, it replaces this page. */
function createPageFromAd(ad: Ad, pageId: string): Page {
  return {
    pageId,
    pageName: ad.page?.pageName ?? ad.website?.siteDomain ?? pageId,
    sourcePageExternalId: ad.sourcePageExternalId,
    adLibrary: ad.adLibrary,
    adsAmount: ad.page?.adsAmount,
    countries: ad.countries,
    detailsEstimated: true,
  };
}

/**
 * Loads a function that detects the language of an ad without `languages` from its texts, and returns the ad with this
 * language. Use the returned ad only for the search index, because the stored record must stay as imported.
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
