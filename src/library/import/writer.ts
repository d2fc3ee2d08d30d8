import type { Ad, ItemType, Page } from '../../api/schemas.ts';
import type { Database } from '../database/database.ts';
import { loadAdLanguageDetector, type RecordStore } from '../database/records.ts';

/** `updated`: the library had the record before this import. `repeated`: an earlier record of this import had the id. */
export type WriteOutcome = 'new' | 'updated' | 'repeated';

export type RecordWriter = Awaited<ReturnType<typeof openRecordWriter>>;

/** Stores the records of one import, and tells which ids are new in the library and in the import. */
export async function openRecordWriter({ database, records }: { database: Database; records: RecordStore }) {
  const withLanguage = await loadAdLanguageDetector();
  const kinds = { ads: new SeenNumbers(database, 'ads'), pages: new SeenNumbers(database, 'pages') };
  const outcomeOf = (kind: ItemType, id: string, put: () => void): WriteOutcome => {
    const before = records.findRowNumber(kind, id);
    put();
    const number = before ?? records.findRowNumber(kind, id);
    const isRepeated = number !== undefined && kinds[kind].add(number);
    if (isRepeated) return 'repeated';
    return before !== undefined && kinds[kind].isOld(before) ? 'updated' : 'new';
  };
  return {
    putAd: (ad: Ad, json: string) => outcomeOf('ads', ad.id, () => records.putAd(withLanguage(ad), json)),
    putPage: (page: Page, json: string) => outcomeOf('pages', page.pageId, () => records.putPage(page, json)),
  };
}

/** The numbers of the records that an import wrote: one bit for each, because an import may have millions. */
class SeenNumbers {
  readonly #newest: number;
  #bits = new Uint8Array(1024);

  constructor(database: Database, kind: ItemType) {
    this.#newest = database.get<{ number: number | null }>(`SELECT max(number) AS number FROM ${kind}`)?.number ?? 0;
  }

  /** True for a record that was in the library before the import. */
  isOld(number: number): boolean {
    return number <= this.#newest;
  }

  /** Adds a number. @returns whether it was there before */
  add(number: number): boolean {
    const [place, bit] = [number >> 3, 1 << (number & 7)];
    if (place >= this.#bits.length) {
      const bits = new Uint8Array(2 * place);
      bits.set(this.#bits);
      this.#bits = bits;
    }
    const byte = this.#bits[place] ?? 0;
    this.#bits[place] = byte | bit;
    return (byte & bit) !== 0;
  }
}
