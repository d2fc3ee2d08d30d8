import type { Ad, ItemType, Page } from '../../api/schemas.ts';
import type { Database } from '../database/database.ts';
import { loadAdLanguageDetector, type RecordStore } from '../database/records.ts';

/**
 * What happened to a record. `updated`: the record replaced a record that the library contained before this import.
 * `repeated`: the record replaced an earlier record of this import with the same id.
 */
export type WriteOutcome = 'new' | 'updated' | 'repeated';

/** Stores the records of one import. */
export type RecordWriter = Awaited<ReturnType<typeof openRecordWriter>>;

/** Opens a writer for the records of one import. For each record, the writer returns what happened to the record. */
export async function openRecordWriter({ database, records }: { database: Database; records: RecordStore }) {
  const addLanguage = await loadAdLanguageDetector();
  const writtenNumbers = {
    ads: new WrittenNumbers(database, 'ads'),
    pages: new WrittenNumbers(database, 'pages'),
  };
  const putRecord = (kind: ItemType, id: string, put: () => void): WriteOutcome => {
    const previousNumber = records.findRowNumber(kind, id);
    put();
    const number = previousNumber ?? records.findRowNumber(kind, id);
    const isRepeated = number !== undefined && writtenNumbers[kind].add(number);
    if (isRepeated) return 'repeated';
    return previousNumber !== undefined && writtenNumbers[kind].isOlderThanImport(previousNumber) ? 'updated' : 'new';
  };
  return {
    putAd: (ad: Ad, json: string) => putRecord('ads', ad.id, () => records.putAd(addLanguage(ad), json)),
    putPage: (page: Page, json: string) => putRecord('pages', page.pageId, () => records.putPage(page, json)),
  };
}

/**
 * The numbers of the records that an import has written. Each number takes one bit of memory, because an import may
 * write millions of records.
 */
class WrittenNumbers {
  /** The highest number in the library at the start of the import. */
  readonly #highestOldNumber: number;
  #bits = new Uint8Array(1024);

  constructor(database: Database, kind: ItemType) {
    this.#highestOldNumber =
      database.get<{ number: number | null }>(`SELECT max(number) AS number FROM ${kind}`)?.number ?? 0;
  }

  /** Returns true if the library contained the record before the import. */
  isOlderThanImport(number: number): boolean {
    return number <= this.#highestOldNumber;
  }

  /** Adds a number. Returns true if the number was already added. */
  add(number: number): boolean {
    const [byteIndex, bitMask] = [number >> 3, 1 << (number & 7)];
    if (byteIndex >= this.#bits.length) {
      const largerBits = new Uint8Array(2 * byteIndex);
      largerBits.set(this.#bits);
      this.#bits = largerBits;
    }
    const byte = this.#bits[byteIndex] ?? 0;
    this.#bits[byteIndex] = byte | bitMask;
    return (byte & bitMask) !== 0;
  }
}
