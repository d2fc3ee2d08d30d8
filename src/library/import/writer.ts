import type { Ad, ItemType, Page } from '../../api/schemas.ts';
import type { Database } from '../database/database.ts';
import { loadAdLanguageDetector, type RecordStore } from '../database/records.ts';
import {
  addHistory,
  addOlderVersionToHistory,
  copyMeasuredFields,
  fillMissingFields,
  findContradictoryResult,
  isOlderVersion,
} from './ad-versions.ts';
import type { ImportFormat, JsonObject } from './formats/import-format.ts';
import { addQuestionName } from './questions.ts';

/**
 * The outcome of writing a record:
 * - `new`: the library did not contain the record before this import run.
 * - `updated`: the record replaced a record from an earlier import run.
 * - `repeated`: another record of the same run has the same id.
 * - `older`: the library has a newer version of the ad, so the record was added to the ad's history.
 */
export type WriteOutcome = 'new' | 'updated' | 'repeated' | 'older';

/** Writes the ads and advertiser pages of one import into the database. */
export type RecordWriter = Awaited<ReturnType<typeof openRecordWriter>>;

interface WriterOptions {
  /** The number of the import run, i.e. of one execution of `library import`, which may import several files. */
  runNumber: number;
  /** The name of the saved search that returned the imported records. Undefined if the user named no search. */
  questionName?: string | undefined;
  /** Reports a problem with a value of the current record to the user. */
  reportProblem(error: Error): void;
}

interface WriterDependencies {
  database: Database;
  recordStore: RecordStore;
  now: () => number;
}

/**
 * Opens a writer for the records of one import run. Its methods return the row number of the written record, and the
 * outcome, e.g. whether the record is new.
 */
export async function openRecordWriter(
  { recordStore, now }: WriterDependencies,
  { runNumber, questionName, reportProblem }: WriterOptions,
) {
  const addLanguage = await loadAdLanguageDetector();
  const readStoredRecord = (itemType: ItemType, rowNumber: number): JsonObject | undefined => {
    const [json] = recordStore.readJson(itemType, [rowNumber]);
    return json === undefined ? undefined : (JSON.parse(json) as JsonObject);
  };
  return {
    putAd(ad: Ad, json: string, format: ImportFormat): { outcome: WriteOutcome; rowNumber: number } {
      const storedRow = recordStore.findRow('ads', ad.id);
      const storedAd = storedRow && readStoredRecord('ads', storedRow.number);
      const isRepeated = storedRow?.run === runNumber;
      if (format.addToStoredAd && !storedAd)
        throw new Error(
          `id: the archive has no ad ${ad.adArchiveId}; a table of shares only adds to ads, so import the table of ads first`,
        );
      let mergedAd = ad as JsonObject;
      let isOlder = false;
      if (storedAd && format.addToStoredAd) mergedAd = format.addToStoredAd(storedAd, ad, isRepeated);
      else if (storedAd) {
        const combinedAd = isRepeated ? undefined : format.combineWithEarlierRun?.(storedAd, ad, reportProblem);
        const isPartialRecord = isRepeated && format.combinePartialRecords !== undefined;
        isOlder = !isPartialRecord && combinedAd === undefined && isOlderVersion(ad, storedAd);
        // Several files of one run may describe the same ads, e.g. one file contains the texts and another the results.
        // Combine these partial records, so that the later one does not replace the earlier one.
        if (isPartialRecord) mergedAd = format.combinePartialRecords?.(storedAd, ad, reportProblem) ?? ad;
        else if (combinedAd) mergedAd = addHistory(combinedAd, storedAd, now());
        else {
          const contradiction = isRepeated ? findContradictoryResult(storedAd, ad) : undefined;
          if (contradiction) reportProblem(contradiction);
          const fillFields = isRepeated ? fillMissingFields : copyMeasuredFields;
          mergedAd = isOlder
            ? addOlderVersionToHistory(fillFields(storedAd, ad), ad, now())
            : addHistory(fillFields(ad, storedAd), storedAd, now());
        }
      }
      mergedAd = addQuestionName(mergedAd, storedAd, questionName);
      const adJson = mergedAd === (ad as JsonObject) ? json : JSON.stringify(mergedAd);
      const rowNumber = recordStore.putAd(addLanguage(mergedAd as Ad), adJson, runNumber);
      return { outcome: isRepeated ? 'repeated' : isOlder ? 'older' : storedRow ? 'updated' : 'new', rowNumber };
    },
    putPage(page: Page, json: string, format: ImportFormat): { outcome: WriteOutcome; rowNumber: number } {
      const storedRow = recordStore.findRow('pages', page.pageId);
      const isRepeated = storedRow?.run === runNumber;
      const storedPage =
        isRepeated && format.combinePartialRecords ? readStoredRecord('pages', storedRow.number) : undefined;
      const combinedPage = storedPage
        ? (format.combinePartialRecords?.(storedPage, page, reportProblem) as Page)
        : page;
      const pageJson = combinedPage === page ? json : JSON.stringify(combinedPage);
      const rowNumber = recordStore.putPage(combinedPage, pageJson, runNumber);
      // The run number `-runNumber` marks a page that this run created from an ad, with little information. The library
      // did not contain the page before the run, so the page counts as new.
      return {
        outcome: isRepeated ? 'repeated' : storedRow && storedRow.run !== -runNumber ? 'updated' : 'new',
        rowNumber,
      };
    },
  };
}
