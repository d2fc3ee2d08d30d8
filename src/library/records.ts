import type { Ad, Page } from '../api/schemas.ts';
import type { Database } from './database.ts';
import { tagTokens } from './search.ts';
import { adShelf, pageShelf, type Shelf } from './shelves.ts';
import { indexText } from './words.ts';

/** Ads and pages as they are kept: each one's JSON as it came, and beside it what it is found by. */
export type Records = {
  /** Writes an ad, in the place of one with the same id; makes its page when none of that id is known. */
  putAd(ad: Ad, json?: string): void;
  putPage(page: Page, json?: string): void;
  /** Row number by id, or undefined. */
  find(kind: 'ads' | 'pages', id: string): number | undefined;
  /** JSON texts in the order of `numbers`. */
  read(kind: 'ads' | 'pages', numbers: number[]): string[];
};

type Entry = { shelf: Shelf<never>; item: Ad | Page; id: string; json: string; derived: boolean };

export function recordsIn(database: Database): Records {
  function put({ shelf, item, id, json, derived }: Entry): void {
    const { name } = shelf;
    const record = item as never;
    const columns = shelf.measures.flatMap(({ key, low }) => (low ? [key, `${key}Low`] : [key]));
    const values = shelf.measures.flatMap(({ value, low }) =>
      low ? [value(record) ?? null, low(record) ?? null] : [value(record) ?? null],
    );
    // An update in place: a new row number would let the record appear twice in a search that is being paged through.
    const names = columns.map((column) => `"${column}"`);
    const number = database.get<{ number: number }>(
      `INSERT INTO ${name} (id, derived, ${names.join(', ')}) VALUES (?, ?${', ?'.repeat(names.length)})
       ON CONFLICT (id) DO UPDATE SET derived = excluded.derived, ${names.map((column) => `${column} = excluded.${column}`).join(', ')}
       RETURNING number`,
      [id, derived ? 1 : 0, ...values],
    )?.number as number;
    database.run(`INSERT OR REPLACE INTO ${name}_json (number, json) VALUES (?, ?)`, [number, utf8(json)]);
    database.run(`INSERT OR REPLACE INTO ${name}_text (rowid, copy, advertiser, tags) VALUES (?, ?, ?, ?)`, [
      number,
      utf8(indexText(shelf.copy(record))),
      indexText([shelf.advertiser(record)]),
      utf8(tagTokens(shelf, record)),
    ]);
  }

  const find: Records['find'] = (kind, id) =>
    database.get<{ number: number }>(`SELECT number FROM ${kind} WHERE id = ?`, [storedId(kind, id)])?.number;

  return {
    find,
    putAd(ad, json = JSON.stringify(ad)) {
      put({ shelf: adShelf as Shelf<never>, item: ad, id: storedId('ads', ad.id), json, derived: false });
      const page = ad.pageId && find('pages', ad.pageId) === undefined ? pageOf(ad, ad.pageId) : undefined;
      if (page)
        put({
          shelf: pageShelf as Shelf<never>,
          item: page,
          id: page.pageId,
          json: JSON.stringify(page),
          derived: true,
        });
    },
    putPage(page, json = JSON.stringify(page)) {
      put({ shelf: pageShelf as Shelf<never>, item: page, id: page.pageId, json, derived: false });
    },
    read(kind, numbers) {
      const texts = new Map(
        numbers.length
          ? database
              .all<{ number: number; json: Uint8Array }>(
                `SELECT number, json FROM ${kind}_json WHERE number IN (SELECT value FROM json_each(?))`,
                [JSON.stringify(numbers)],
              )
              .map(({ number, json }) => [number, Buffer.from(json.buffer).toString()])
          : [],
      );
      return numbers.flatMap((number) => texts.get(number) ?? []);
    },
  };
}

const utf8 = (text: string) => Buffer.from(text);

/** Ad ids are UUIDs, which are the same in either case. */
const storedId = (kind: 'ads' | 'pages', id: string) => (kind === 'ads' ? id.toLowerCase() : id);

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
