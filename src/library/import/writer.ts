import type { Ad, Page } from '../../api/schemas.ts';
import type { Database } from '../database/database.ts';
import { loadAdLanguageDetector, type RecordStore } from '../database/records.ts';
import type { ImportFormat, JsonObject } from './formats/import-format.ts';
import { addQuestion } from './questions.ts';
import { addHistory, fillMissingFields, isOlderReading } from './readings.ts';

/**
 * The outcome of writing a record:
 * - `updated`: it replaced a record from an earlier import run.
 * - `repeated`: another record of the same run has the same id.
 * - `older`: the library has a newer version of the ad, so the record was added to the ad's history.
 */
export type WriteOutcome = 'new' | 'updated' | 'repeated' | 'older';

/** Stores the ads and advertiser pages of one import. */
export type RecordWriter = Awaited<ReturnType<typeof openRecordWriter>>;

interface WriterOptions {
  /** The number of the import run, which may include several files. */
  run: number;
  /** The name of the search whose results are imported. */
  question?: string | undefined;
}

interface WriterTarget {
  database: Database;
  records: RecordStore;
  now: () => number;
}

/** Opens a writer for the records of one import. For each record, it returns the outcome and the row number. */
export async function openRecordWriter({ records, now }: WriterTarget, { run, question }: WriterOptions) {
  const addLanguage = await loadAdLanguageDetector();
  const readStoredRecord = (kind: 'ads' | 'pages', rowNumber: number): JsonObject | undefined => {
    const [json] = records.readJson(kind, [rowNumber]);
    return json === undefined ? undefined : (JSON.parse(json) as JsonObject);
  };
  return {
    putAd(ad: Ad, json: string, format: ImportFormat): { outcome: WriteOutcome; rowNumber: number } {
      const row = records.findRow('ads', ad.id);
      const storedAd = row && readStoredRecord('ads', row.number);
      const isRepeated = row?.run === run;
      if (format.addToAd && !storedAd)
        throw new Error(
          `id: the archive has no ad ${ad.adArchiveId}; a table of shares only adds to ads, so import the table of ads first`,
        );
      let mergedAd = ad as JsonObject;
      let isOlder = false;
      if (storedAd && format.addToAd) mergedAd = format.addToAd(storedAd, ad, isRepeated);
      else if (storedAd) {
        const isPartialRecord = isRepeated && format.combineParts !== undefined;
        isOlder = !isPartialRecord && isOlderReading(ad, storedAd);
        const [newer, older] = isOlder ? [storedAd, ad] : [ad, storedAd];
        // The files of one run may describe the same ads, e.g. one file with texts and one with results.
        if (isPartialRecord) mergedAd = format.combineParts?.(storedAd, ad) ?? ad;
        else mergedAd = addHistory(isRepeated ? fillMissingFields(newer, older) : newer, older, now());
      }
      mergedAd = addQuestion(mergedAd, storedAd, question);
      const adJson = mergedAd === (ad as JsonObject) ? json : JSON.stringify(mergedAd);
      const rowNumber = records.putAd(addLanguage(mergedAd as Ad), adJson, run);
      return { outcome: isRepeated ? 'repeated' : isOlder ? 'older' : row ? 'updated' : 'new', rowNumber };
    },
    putPage(page: Page, json: string, format: ImportFormat): { outcome: WriteOutcome; rowNumber: number } {
      const row = records.findRow('pages', page.pageId);
      const isRepeated = row?.run === run;
      const storedPage = isRepeated && format.combineParts ? readStoredRecord('pages', row.number) : undefined;
      const combined = storedPage ? (format.combineParts?.(storedPage, page) as Page) : page;
      const pageJson = combined === page ? json : JSON.stringify(combined);
      const rowNumber = records.putPage(combined, pageJson, run);
      // A page that was only created from an ad of this run does not count as stored, so the record is new.
      return { outcome: isRepeated ? 'repeated' : row && row.run !== -run ? 'updated' : 'new', rowNumber };
    },
  };
}
