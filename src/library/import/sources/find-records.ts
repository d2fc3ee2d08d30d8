import { isObject } from '../../../views/view.ts';
import type { FormatDetector } from '../formats/formats.ts';
import { readPandasTable } from './pandas.ts';
import { createResultPage, observeWrapper, type ResultPage } from './result-pages.ts';

/** A value with its path in the JSON document. */
export interface LocatedValue {
  /** The path to the value, e.g. `data[3]`. */
  path: string;
  value: unknown;
}

/** The maximum number of lists and objects that may surround a record. */
export const maxWrapperDepth = 16;

/** Keys of lists in which every item should be an ad or a page. Other items are reported as problems. */
export const recordListKeys = ['data', 'items'];

/**
 * Finds the records in a value. The value may be a record, or a structure of lists and objects that contains records at
 * any depth, such as the response of a service. If a list contains records, its other items are returned as well, so
 * that the import reports them.
 * @param enclosingPage the page of results around the value, if there is one
 * @returns the records, and the pages of results around them. If no value is certainly a record, `isCertain` is false and `records` has the values that were
 * probably meant to be records
 */
export function findRecords(
  value: unknown,
  path: string,
  detector: FormatDetector,
  enclosingPage?: ResultPage,
): { records: LocatedValue[]; isCertain: boolean; pages: ResultPage[] } {
  const search: RecordSearch = { detector, pages: [] };
  const records = collectRecords(
    { path, value: readPandasTable(value) ?? value },
    { depth: 0, page: enclosingPage },
    search,
  );
  if (records.length === 0 && isStreamedPart(value)) return { records: [], isCertain: true, pages: search.pages };
  return records.length > 0
    ? { records, isCertain: true, pages: search.pages }
    : { records: guessRecords(value, path, 0), isCertain: false, pages: search.pages };
}

/**
 * Returns true for a part of a GraphQL response that contains no records. Meta's website sends a response as several
 * lines: the first has the ads, and the others have a label and a path, or only say that the response is complete.
 */
const isStreamedPart = (value: unknown): boolean =>
  isObject(value) &&
  ('label' in value || 'extensions' in value) &&
  Object.keys(value).every((key) => partKeys.has(key));

const partKeys = new Set(['label', 'path', 'data', 'extensions', 'hasNext']);

interface RecordSearch {
  detector: FormatDetector;
  /** The result pages that were found around the records. */
  pages: ResultPage[];
}

/** Where a value was found: the number of lists and objects around it, and the result page that contains it. */
interface Surroundings {
  depth: number;
  page: ResultPage | undefined;
}

function collectRecords(
  { path, value }: LocatedValue,
  { depth, page }: Surroundings,
  search: RecordSearch,
): LocatedValue[] {
  if (search.detector.isUnambiguousRecord(value)) {
    if (page) page.hasList = true;
    return [{ path, value }];
  }
  if (depth >= maxWrapperDepth) return [];
  if (Array.isArray(value)) {
    const recordsByItem = value.map((item, index) =>
      collectRecords({ path: `${path}[${index}]`, value: item }, { depth: depth + 1, page }, search),
    );
    if (!recordsByItem.some((records) => records.length > 0)) return [];
    return recordsByItem.flatMap((records, index) =>
      records.length > 0 ? records : guessRecords(value[index], `${path}[${index}]`, depth + 1),
    );
  }
  if (!isObject(value)) return [];
  const resultPage = page ?? createResultPage();
  if (!page) search.pages.push(resultPage);
  observeWrapper(resultPage, value);
  return Object.entries(value).flatMap(([key, child]) =>
    typeof child === 'object' && child !== null
      ? collectRecords({ path: joinPath(path, key), value: child }, { depth: depth + 1, page: resultPage }, search)
      : [],
  );
}

/**
 * Returns the values that were probably meant to be records: the items of lists, or the value itself if it contains no
 * list.
 */
function guessRecords(value: unknown, path: string, depth: number): LocatedValue[] {
  // A list of values inside another list, such as a row of a table, is reported once and not once for each value.
  const isRow =
    depth > 0 && Array.isArray(value) && value.length > 0 && !value.some((item) => typeof item === 'object');
  if (depth < maxWrapperDepth && Array.isArray(value) && !isRow)
    return value.flatMap((item, index) => guessRecords(item, `${path}[${index}]`, depth + 1));
  if (depth < maxWrapperDepth && isObject(value) && !('id' in value) && !('pageId' in value)) {
    const listKeys = recordListKeys.filter((key) => Array.isArray(value[key]));
    if (listKeys.length > 0) return listKeys.flatMap((key) => guessRecords(value[key], joinPath(path, key), depth + 1));
  }
  return [{ path, value }];
}

/** Appends a key to a path, e.g. `data` and `ads` become `data.ads`. */
export const joinPath = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`);
