import type { ItemType } from '../api/item-type.ts';
import type { Ad, Page } from '../api/schemas.ts';
import type { Database } from './database.ts';
import { tagTokens } from './search.ts';
import { type Shelf, shelves } from './shelves.ts';
import { indexText } from './words.ts';

/** Ads and pages as they are kept: each one's JSON as it came, and beside it what it is found by. */
export type Records = {
  /** Writes an ad, in the place of one with the same id; makes its page when none of that id is known. */
  putAd(ad: Ad, json?: string): void;
  putPage(page: Page, json?: string): void;
  /** Row number by id, or undefined. */
  find(kind: ItemType, id: string): number | undefined;
  /** JSON texts in the order of `numbers`. */
  read(kind: ItemType, numbers: number[]): string[];
};

export function recordsIn(database: Database): Records {
  const write = { ads: writerOf(database, shelves.ads), pages: writerOf(database, shelves.pages) };
  const find: Records['find'] = (kind, id) =>
    database.get<{ number: number }>(`SELECT number FROM ${kind} WHERE id = ?`, [storedId(kind, id)])?.number;
  const putPage: Records['putPage'] = (page, json = JSON.stringify(page)) =>
    write.pages(page.pageId, find('pages', page.pageId), page, json);

  return {
    find,
    putPage,
    putAd(ad, json = JSON.stringify(ad)) {
      write.ads(storedId('ads', ad.id), find('ads', ad.id), ad, json);
      if (ad.pageId && find('pages', ad.pageId) === undefined) putPage(pageOf(ad, ad.pageId));
    },
    read(kind, numbers) {
      const sql = `SELECT number, json FROM ${kind}_json WHERE number IN (SELECT value FROM json_each(?))`;
      const rows = database.all<{ number: number; json: Uint8Array }>(sql, [JSON.stringify(numbers)]);
      const texts = new Map(rows.map(({ number, json }) => [number, Buffer.from(json.buffer).toString()]));
      return numbers.flatMap((number) => texts.get(number) ?? []);
    },
  };
}

function writerOf(database: Database, { name, measures, copy, advertiser, ...rest }: Shelf) {
  const columns = measures.flatMap(({ key, low }) => (low ? [`"${key}"`, `"${key}Low"`] : [`"${key}"`]));
  // Two plain statements and no upsert: SQLite runs an upsert under a savepoint, and at each savepoint FTS5 writes out
  // all it has gathered, which doubles the work of an import.
  const insert = `INSERT INTO ${name} (id, ${columns.join(', ')}) VALUES (?${', ?'.repeat(columns.length)})`;
  const update = `UPDATE ${name} SET ${columns.map((column) => `${column} = ?`).join(', ')} WHERE number = ?`;

  return (id: string, known: number | undefined, item: unknown, json: string): void => {
    const values = measures.flatMap(({ value, low }) =>
      low ? [value(item) ?? null, low(item) ?? null] : [value(item) ?? null],
    );
    // A known record keeps its number: a new one would let it appear twice in a search that is being paged through.
    const number = known ?? database.run(insert, [id, ...values]).rowid;
    if (known !== undefined) database.run(update, [...values, known]);
    database.run(`INSERT OR REPLACE INTO ${name}_json (number, json) VALUES (?, ?)`, [number, utf8(json)]);
    database.run(`INSERT OR REPLACE INTO ${name}_text (rowid, copy, advertiser, tags) VALUES (?, ?, ?, ?)`, [
      number,
      utf8(indexText(copy(item))),
      indexText([advertiser(item)]),
      utf8(tagTokens(rest, item)),
    ]);
  };
}

const utf8 = (text: string) => Buffer.from(text);

/** Ad ids are UUIDs, which are the same in either case. */
const storedId = (kind: ItemType, id: string) => (kind === 'ads' ? id.toLowerCase() : id);

/** What an ad tells of its page: enough to be read and listed until a record of the page itself comes. */
function pageOf(ad: Ad, pageId: string): Page {
  return {
    pageId,
    pageName: ad.page?.pageName ?? ad.website?.siteDomain ?? pageId,
    sourcePageExternalId: ad.sourcePageExternalId,
    adsAmount: ad.page?.adsAmount,
    countries: ad.countries,
    detailsEstimated: true,
  };
}
