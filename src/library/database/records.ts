import type { Ad, ItemType, Page } from '../../api/schemas.ts';
import { loadLanguageDetector } from '../../views/language.ts';
import { columnsOf, type RecordType, recordTypes, textColumns, textsIn } from '../search/ads-and-pages.ts';
import { tagTokens, tokenize } from '../search/tokens.ts';
import type { Database } from './database.ts';

export type Records = ReturnType<typeof recordsIn>;

/** Stored ads and pages: the JSON of each as it came, and the columns by which it is found. */
export function recordsIn(database: Database) {
  const write = { ads: writerOf(database, recordTypes.ads), pages: writerOf(database, recordTypes.pages) };

  const find = (kind: ItemType, id: string): number | undefined =>
    database.get<{ number: number }>(`SELECT number FROM ${kind} WHERE id = ?`, [storedId(kind, id)])?.number;

  /** JSON texts in the order of `numbers`. */
  function read(kind: ItemType, numbers: number[]): string[] {
    const sql = `SELECT number, json FROM ${kind}_json WHERE number IN (SELECT value FROM json_each(?))`;
    const rows = database.all<{ number: number; json: Uint8Array }>(sql, [JSON.stringify(numbers)]);
    const texts = new Map(rows.map(({ number, json }) => [number, Buffer.from(json.buffer).toString()]));
    return numbers.flatMap((number) => texts.get(number) ?? []);
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
  const insertText = `INSERT OR REPLACE INTO ${name}_text (rowid, ${textColumns.join(', ')}, tags) VALUES (?${', ?'.repeat(textColumns.length + 1)})`;
  const update = `UPDATE ${name} SET ${columns.map((column) => `${column} = ?`).join(', ')} WHERE number = ?`;

  return (id: string, stored: number | undefined, item: unknown, json: string): void => {
    const values = measures.flatMap(({ value, low }) =>
      low ? [value(item) ?? null, low(item) ?? null] : [value(item) ?? null],
    );
    // A known record keeps its number: with a new one it could appear twice while somebody pages through a search.
    const number = stored ?? database.run(insert, [id, ...values]).rowid;
    if (stored !== undefined) database.run(update, [...values, stored]);
    database.run(`INSERT OR REPLACE INTO ${name}_json (number, json) VALUES (?, ?)`, [number, utf8(json)]);
    database.run(insertText, [
      number,
      ...textColumns.map((column) => utf8(tokenize(texts[column](item)))),
      utf8(tagTokens(rest, item)),
    ]);
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
