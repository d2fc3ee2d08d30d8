import { isObject } from '../../../views/view.ts';
import type { FormatDetector } from '../formats/formats.ts';
import { readPandasTable } from './pandas.ts';
import {
  addRecordToPage,
  createResultPage,
  isEmptyResponse,
  isRequestKey,
  type ResultPage,
  updateResultPage,
} from './result-pages.ts';

/** A value in a JSON document, and its path. */
export interface LocatedValue {
  /** The path to the value in the document, e.g. `data[3]`. */
  path: string;
  value: unknown;
}

/**
 * The maximum number of nested lists and objects around a record. Services wrap their records in several objects, e.g.
 * `{"data": {"ads": [...]}}`.
 */
export const maxWrapperDepth = 16;

/**
 * Keys of lists in which every item should be an ad or an advertiser page. The import reports any other item as a
 * problem.
 */
export const recordListKeys = ['data', 'items'];

/**
 * Finds the records in a JSON value. The value may be a record, or a structure of lists and objects that contains
 * records at any depth, such as the response of a service. If a list contains records, also returns its other items, so
 * that the import can report them.
 * @param enclosingPage the result page (API response) that contains the value, if any
 * @returns the records, and the result pages that contain them. If no value is certainly a record, `areRecordsCertain`
 * is false, and `records` has the values that were probably meant to be records
 */
export function findRecords(
  value: unknown,
  path: string,
  formatDetector: FormatDetector,
  enclosingPage?: ResultPage,
): { records: LocatedValue[]; areRecordsCertain: boolean; resultPages: ResultPage[] } {
  const searchState: RecordSearchState = { formatDetector, resultPages: [] };
  const records = collectRecords(
    { path, value: readPandasTable(value) ?? value },
    { depth: 0, resultPage: enclosingPage },
    searchState,
  );
  for (const page of searchState.resultPages) page.isEmptyResponse = isEmptyResponse(value, page);
  if (records.length === 0 && isGraphQlChunkWithoutRecords(value))
    return { records: [], areRecordsCertain: true, resultPages: searchState.resultPages };
  return records.length > 0
    ? { records, areRecordsCertain: true, resultPages: searchState.resultPages }
    : { records: guessRecords(value, path, 0), areRecordsCertain: false, resultPages: searchState.resultPages };
}

/**
 * Returns true for a line of a streamed GraphQL response that contains no records. Meta's website sends a response in
 * several lines, of which the first contains the ads. The other lines only have labels, or say that the response is
 * complete.
 */
const isGraphQlChunkWithoutRecords = (value: unknown): boolean =>
  isObject(value) &&
  ('label' in value || 'extensions' in value) &&
  Object.keys(value).every((key) => graphQlChunkKeys.has(key));

const graphQlChunkKeys = new Set(['label', 'path', 'data', 'extensions', 'hasNext']);

interface RecordSearchState {
  formatDetector: FormatDetector;
  /** The result pages (API responses) that contain the records. */
  resultPages: ResultPage[];
}

/**
 * The position of a value in its document: the number of lists and objects around the value, and the result page (API
 * response) that contains it.
 */
interface ValueContext {
  depth: number;
  resultPage: ResultPage | undefined;
}

function collectRecords(
  { path, value }: LocatedValue,
  { depth, resultPage: enclosingPage }: ValueContext,
  searchState: RecordSearchState,
): LocatedValue[] {
  if (searchState.formatDetector.isUnambiguousRecord(value)) {
    if (enclosingPage) addRecordToPage(enclosingPage, value);
    return [{ path, value }];
  }
  if (depth >= maxWrapperDepth) return [];
  if (Array.isArray(value)) {
    const recordsByItem = value.map((item, index) =>
      collectRecords(
        { path: `${path}[${index}]`, value: item },
        { depth: depth + 1, resultPage: enclosingPage },
        searchState,
      ),
    );
    if (!recordsByItem.some((records) => records.length > 0)) return [];
    return recordsByItem.flatMap((records, index) =>
      records.length > 0 ? records : guessRecords(value[index], `${path}[${index}]`, depth + 1),
    );
  }
  if (!isObject(value)) return [];
  const resultPage = enclosingPage ?? createResultPage();
  if (!enclosingPage) searchState.resultPages.push(resultPage);
  updateResultPage(resultPage, value, path);
  return Object.entries(value).flatMap(([key, child]) =>
    typeof child === 'object' && child !== null && !isRequestKey(key)
      ? collectRecords({ path: joinPath(path, key), value: child }, { depth: depth + 1, resultPage }, searchState)
      : [],
  );
}

/**
 * Returns the values that were probably meant to be records, so that the import report can name them. These are the
 * items of lists, or the value itself if it contains no list.
 */
function guessRecords(value: unknown, path: string, depth: number): LocatedValue[] {
  // A list of plain values inside another list is probably a row of a table. Report the whole row, and not each value
  // in it.
  const isTableRow =
    depth > 0 && Array.isArray(value) && value.length > 0 && !value.some((listItem) => typeof listItem === 'object');
  if (depth < maxWrapperDepth && Array.isArray(value) && !isTableRow)
    return value.flatMap((item, index) => guessRecords(item, `${path}[${index}]`, depth + 1));
  if (depth < maxWrapperDepth && isObject(value) && !('id' in value) && !('pageId' in value)) {
    const listKeys = recordListKeys.filter((key) => Array.isArray(value[key]));
    if (listKeys.length > 0) return listKeys.flatMap((key) => guessRecords(value[key], joinPath(path, key), depth + 1));
  }
  return [{ path, value }];
}

/** Appends a key to a path, e.g. `ads` to `data`, which results in `data.ads`. */
export const joinPath = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`);
