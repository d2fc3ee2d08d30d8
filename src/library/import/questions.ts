import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { Ad } from '../../api/schemas.ts';
import { parseTime } from '../../views/dates.ts';
import type { Database } from '../database/database.ts';
import { loadAdLanguageDetector, type RecordStore } from '../database/records.ts';
import { collectTexts } from '../search/searchable-records.ts';
import { normalizeTagValue } from '../search/tags.ts';
import { addHistory } from './ad-versions.ts';
import type { JsonObject } from './formats/import-format.ts';

/*
 * A "question" is a saved search: the user runs the same search repeatedly, e.g. every week, and imports each download
 * under the same name. Each ad lists the names of its saved searches in `questions`. If the newest complete download
 * does not contain an ad any more, the ad is "gone": the name is removed from the ad, and the ad counts as ended.
 */

/**
 * Normalizes the name of a saved search for comparison, in the same way as the `question` filter. Differences in case
 * and in the Unicode form of letters do not matter.
 */
const normalizeQuestionName = (questionName: string): string => normalizeTagValue({}, questionName);

/**
 * Adds the name of a saved search (its "question") to the ad's list `questions`, after the names from the stored ad.
 * Names that are equal after normalization count as the same search, and the first spelling is kept. Returns `ad` itself
 * if there are no names.
 */
export function addQuestionName(
  ad: JsonObject,
  storedAd: JsonObject | undefined,
  questionName: string | undefined,
): JsonObject {
  const questionNames = [
    ...collectTexts(storedAd?.questions),
    ...collectTexts(ad.questions),
    questionName ?? [],
  ].flat();
  const normalizedNames = questionNames.map(normalizeQuestionName);
  const questions = questionNames.filter((_, index) => normalizedNames.indexOf(normalizedNames[index] ?? '') === index);
  return questions.length > 0 ? { ...ad, questions } : ad;
}

/**
 * The maximum duration of a database transaction, in milliseconds. It is short, because the server can handle other
 * requests only between two transactions.
 */
const maxTransactionMs = 50;

interface QuestionDependencies {
  database: Database;
  recordStore: RecordStore;
  now: () => number;
}

/**
 * Marks ads as gone if an earlier import of the same saved search (`questionName`) contained them, and the import run
 * `runNumber` did not. Call this function only after the import of a complete download. After a partial download, it
 * would mark ads as gone that are still running.
 *
 * The end date of a gone ad is the day when it was last seen. If that day is unknown, it is the day of the last import
 * that contained the ad.
 *
 * @returns the number of ads that the search still lists, and the number of ads that are gone
 */
export async function completeQuestion(
  { database, recordStore, now }: QuestionDependencies,
  { runNumber, questionName }: { runNumber: number; questionName: string },
): Promise<{ listedCount: number; goneCount: number }> {
  const addLanguage = await loadAdLanguageDetector();
  const rows = database.all<{ number: number; run: number | null }>(
    `SELECT ads.number, ads.run FROM ads_tags
      JOIN ads_tag_values ON ads_tag_values.number = ads_tags.tag JOIN ads ON ads.number = ads_tags.record
      WHERE ads_tag_values.key = 'question' AND ads_tag_values.value = ?`,
    [normalizeQuestionName(questionName)],
  );
  const goneRows = rows.filter((row) => row.run !== runNumber);
  for (let index = 0; index < goneRows.length; await yieldToEventLoop()) {
    const transactionEndsAt = performance.now() + maxTransactionMs;
    database.transaction(() => {
      for (; index < goneRows.length && performance.now() < transactionEndsAt; index++) {
        const row = goneRows[index];
        const [json] = row ? recordStore.readJson('ads', [row.number]) : [];
        if (!row || json === undefined) continue;
        const ad = JSON.parse(json) as JsonObject;
        const goneAd = removeQuestionName(ad, {
          questionName,
          lastListedAtMs: readRunStart(database, row.run),
          nowMs: now(),
        });
        recordStore.putAd(addLanguage(goneAd as Ad), JSON.stringify(goneAd), row.run);
      }
    });
  }
  return { listedCount: rows.length - goneRows.length, goneCount: goneRows.length };
}

const readRunStart = (database: Database, runNumber: number | null): number | undefined =>
  database.get<{ startedAt: number }>('SELECT startedAt FROM import_runs WHERE number = ?', [runNumber])?.startedAt;

/**
 * Removes the name of a saved search (`questionName`) from an ad that the search no longer finds. If no other saved
 * search finds the ad, also marks the ad as gone and sets its end date.
 */
function removeQuestionName(
  ad: JsonObject,
  { questionName, lastListedAtMs, nowMs }: { questionName: string; lastListedAtMs: number | undefined; nowMs: number },
): JsonObject {
  const normalizedName = normalizeQuestionName(questionName);
  const questions = collectTexts(ad.questions).filter(
    (otherName) => normalizeQuestionName(otherName) !== normalizedName,
  );
  const { questions: _, ...fields } = ad;
  const adWithoutName = questions.length > 0 ? { ...fields, questions } : fields;
  // If another saved search finds the ad, the ad is still running.
  if (questions.length > 0) return adWithoutName;
  const goneAd: JsonObject = { ...adWithoutName, goneAt: new Date(nowMs).toISOString(), isActive: false };
  const endDateMs = parseTime(ad.endDate);
  if (endDateMs !== undefined && endDateMs <= nowMs) return goneAd;
  // A service may state the end of the current day as `lastSeenAt`. With an end date in the future, the ad would count as
  // running.
  const lastSeenAtMs = Math.min(parseTime(ad.lastSeenAt) ?? lastListedAtMs ?? nowMs, nowMs);
  return addHistory({ ...goneAd, endDate: new Date(lastSeenAtMs).toISOString() }, ad, nowMs);
}
