import type { Ad, Page } from '../../api/schemas.ts';
import type { Database } from '../database/database.ts';
import { loadAdLanguageDetector, type RecordStore } from '../database/records.ts';
import type { ImportFormat, JsonObject } from './formats/import-format.ts';
import { addQuestion } from './questions.ts';
import { addHistory, fillMissingFields, isOlderReading } from './readings.ts';

/**
 * What happened to a record. `updated`: the record replaced a record that the library contained before this run of
 * imports. `repeated`: another record of this run had the same id. `older`: the library has a newer reading of the ad, and
 * the record was added to its history.
 */
export type WriteOutcome = 'new' | 'updated' | 'repeated' | 'older';

/** Stores the records of one import. */
export type RecordWriter = Awaited<ReturnType<typeof openRecordWriter>>;

interface WriterOptions {
  /** The number of the run of imports, which may read several files. */
  run: number;
  /** The name of the question that the ads answer. */
  question?: string | undefined;
}

interface WriterTarget {
  database: Database;
  records: RecordStore;
  now: () => number;
}

/**
 * Opens a writer for the records of one import. For each record, the writer returns what happened to the record and the
 * number of its row.
 */
export async function openRecordWriter({ records, now }: WriterTarget, { run, question }: WriterOptions) {
  const addLanguage = await loadAdLanguageDetector();
  const readStored = (kind: 'ads' | 'pages', rowNumber: number): JsonObject | undefined => {
    const [json] = records.readJson(kind, [rowNumber]);
    return json === undefined ? undefined : (JSON.parse(json) as JsonObject);
  };
  return {
    putAd(ad: Ad, json: string, format: ImportFormat): { outcome: WriteOutcome; rowNumber: number } {
      const row = records.findRow('ads', ad.id);
      const stored = row && readStored('ads', row.number);
      const isRepeated = row?.run === run;
      let written = ad as JsonObject;
      let isOlder = false;
      if (stored) {
        const isPart = isRepeated && format.combineParts !== undefined;
        isOlder = !isPart && isOlderReading(ad, stored);
        const [newer, older] = isOlder ? [stored, ad] : [ad, stored];
        // Files of one run may describe the same ads, one with texts and another with results.
        if (isPart) written = format.combineParts?.(stored, ad) ?? ad;
        else written = addHistory(isRepeated ? fillMissingFields(newer, older) : newer, older, now());
      }
      written = addQuestion(written, stored, question);
      const adJson = written === (ad as JsonObject) ? json : JSON.stringify(written);
      const rowNumber = records.putAd(addLanguage(written as Ad), adJson, run);
      return { outcome: isRepeated ? 'repeated' : isOlder ? 'older' : row ? 'updated' : 'new', rowNumber };
    },
    putPage(page: Page, json: string, format: ImportFormat): { outcome: WriteOutcome; rowNumber: number } {
      const row = records.findRow('pages', page.pageId);
      const isRepeated = row?.run === run;
      const stored = isRepeated && format.combineParts ? readStored('pages', row.number) : undefined;
      const combined = stored ? (format.combineParts?.(stored, page) as Page) : page;
      const pageJson = combined === page ? json : JSON.stringify(combined);
      const rowNumber = records.putPage(combined, pageJson, run);
      // A page that an ad of this run has created is not yet a record of the run.
      return { outcome: isRepeated ? 'repeated' : row && row.run !== -run ? 'updated' : 'new', rowNumber };
    },
  };
}
