import { isObject } from '../../../views/view.ts';
import type { FormatDetector } from '../formats/formats.ts';
import { readPandasTable } from './pandas.ts';
import {
  addRecordToPage,
  createResultPage,
  isEmptyAnswer,
  isRequestKey,
  type ResultPage,
  updateResultPage,
} from './result-pages.ts';

/** A value in a JSON document, with its path. */
export interface LocatedValue {
  /** The path to the value, e.g. `data[3]`. */
  path: string;
  value: unknown;
}

/**
 * The maximum number of nested lists and objects around a record. Services wrap their records, e.g. in `{"data":
 * {"ads": [...]}}`.
 */
export const maxWrapperDepth = 16;

/** Keys of lists in which every item should be an ad or a page. Other items are reported as problems. */
export const recordListKeys = ['data', 'items'];

/**
 * Finds the records in a value. The value may be a record, or a structure of lists and objects that contains records at
 * any depth, such as the response of a service. If a list contains records, its other items are returned as well, so
 * that the import reports them.
 * @param enclosingPage the response page that contains the value, if there is one
 * @returns the records, and the response pages that contain them. If no value is certainly a record,
 * `areRecordsCertain` is false, and `records` has the values that were probably meant to be records
 */
export function findRecords(
  value: unknown,
  path: string,
  detector: FormatDetector,
  enclosingPage?: ResultPage,
): { records: LocatedValue[]; areRecordsCertain: boolean; resultPages: ResultPage[] } {
  const search: RecordSearchState = { detector, resultPages: [] };
  const records = collectRecords(
    { path, value: readPandasTable(value) ?? value },
    { depth: 0, resultPage: enclosingPage },
    search,
  );
  for (const page of search.resultPages) page.isEmptyAnswer = isEmptyAnswer(value, page);
  if (records.length === 0 && isGraphQlChunkWithoutRecords(value))
    return { records: [], areRecordsCertain: true, resultPages: search.resultPages };
  return records.length > 0
    ? { records, areRecordsCertain: true, resultPages: search.resultPages }
    : { records: guessRecords(value, path, 0), areRecordsCertain: false, resultPages: search.resultPages };
}

/**
 * Returns true for a line of a streamed GraphQL response without records. Meta's website sends a response as several
 * lines. The first line contains the ads. The others contain a label and a path, or only say that the response is
 * complete.
 */
const isGraphQlChunkWithoutRecords = (value: unknown): boolean =>
  isObject(value) &&
  ('label' in value || 'extensions' in value) &&
  Object.keys(value).every((key) => graphQlChunkKeys.has(key));

const graphQlChunkKeys = new Set(['label', 'path', 'data', 'extensions', 'hasNext']);

interface RecordSearchState {
  detector: FormatDetector;
  /** The response pages that contain the records. */
  resultPages: ResultPage[];
}

/**
 * Where a value is in its document: the number of lists and objects around it, and the response page that contains it.
 */
interface ValueSurroundings {
  depth: number;
  resultPage: ResultPage | undefined;
}

function collectRecords(
  { path, value }: LocatedValue,
  { depth, resultPage: enclosingPage }: ValueSurroundings,
  search: RecordSearchState,
): LocatedValue[] {
  if (search.detector.isUnambiguousRecord(value)) {
    if (enclosingPage) addRecordToPage(enclosingPage, value);
    return [{ path, value }];
  }
  if (depth >= maxWrapperDepth) return [];
  if (Array.isArray(value)) {
    const recordsByItem = value.map((item, index) =>
      collectRecords(
        { path: `${path}[${index}]`, value: item },
        { depth: depth + 1, resultPage: enclosingPage },
        search,
      ),
    );
    if (!recordsByItem.some((records) => records.length > 0)) return [];
    return recordsByItem.flatMap((records, index) =>
      records.length > 0 ? records : guessRecords(value[index], `${path}[${index}]`, depth + 1),
    );
  }
  if (!isObject(value)) return [];
  const resultPage = enclosingPage ?? createResultPage();
  if (!enclosingPage) search.resultPages.push(resultPage);
  updateResultPage(resultPage, value, path);
  return Object.entries(value).flatMap(([key, child]) =>
    typeof child === 'object' && child !== null && !isRequestKey(key)
      ? collectRecords({ path: joinPath(path, key), value: child }, { depth: depth + 1, resultPage }, search)
      : [],
  );
}

/**
 * Returns the values that were probably meant to be records, so that the report can name them: the items of lists, or
 * the value itself if it contains no list.
 */
function guessRecords(value: unknown, path: string, depth: number): LocatedValue[] {
  // A list of plain values in another list is probably a row of a table. Report the row once, and not each of its
  // values.
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

/** Appends a key to a path, e.g. `data` and `ads` become `data.ads`. */
export const joinPath = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`);
