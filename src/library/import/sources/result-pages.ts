import { isObject } from '../../../views/view.ts';
import { normalizeKey } from '../formats/source-record.ts';

/**
 * A response page of an ad library's API or of a scraper: an object with a list of records, which may say that more
 * results follow.
 */
export interface ResultPage {
  /** True if the page has a list of records. The list may be empty. */
  hasRecordList: boolean;
  /** True if the page says that more results follow, e.g. with `paging.next` or `has_more`. */
  hasNextPage: boolean;
  /** The error in the page, e.g. an expired access token. A service may return an error together with records. */
  error: string | undefined;
}

export const createResultPage = (): ResultPage => ({ hasRecordList: false, hasNextPage: false, error: undefined });

/**
 * Updates a response page with the information in an object around the records: whether more results follow, and any
 * error.
 */
export function updateResultPage(resultPage: ResultPage, wrapper: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(wrapper)) {
    const key = normalizeKey(name);
    if (Array.isArray(value) && value.length === 0 && emptyListKeys.has(key)) resultPage.hasRecordList = true;
    if (nextPageKeys.has(key) && (value === true || (typeof value === 'string' && value !== '')))
      resultPage.hasNextPage = true;
    if (lastPageKeys.has(key) && value === false) resultPage.hasNextPage = true;
    // A cursor means that more results follow. Exception: in GraphQL, each item has a cursor next to its `node`.
    if (key === 'cursor' && typeof value === 'string' && value !== '' && !('node' in wrapper))
      resultPage.hasNextPage = true;
    if (pagingKeys.has(key) && isObject(value) && (hasNextLink(value) || hasMoreByCount(value)))
      resultPage.hasNextPage = true;
    if (errorKeys.has(key)) resultPage.error ??= describeError(value);
  }
}

/**
 * Keys with the list of records in responses of ad libraries. If the list is empty, the response is a page without
 * results.
 */
const emptyListKeys = new Set(['data', 'items', 'ads', 'edges', 'elements', 'results', 'adcreatives']);
const nextPageKeys = new Set([
  'hasmore',
  'hasnextpage',
  'nextpagetoken',
  'paginationtoken',
  'forwardcursor',
  'nextcursor',
]);
/** Keys whose value is false if more results follow. */
const lastPageKeys = new Set(['islastpage', 'isresultcomplete']);
const pagingKeys = new Set(['paging', 'pagination', 'serpapipagination']);
const errorKeys = new Set(['error', 'errors']);

/** Returns true for `{ next: … }`, and for LinkedIn's `{ links: [{ rel: 'next', … }] }`. */
const hasNextLink = ({ next, links }: Record<string, unknown>): boolean =>
  Boolean(next) || (Array.isArray(links) && links.some((link) => isObject(link) && link.rel === 'next'));

/** Returns true if LinkedIn's counts `{ start, count, total }` show that the page ends before the last record. */
const hasMoreByCount = ({ start, count, total }: Record<string, unknown>): boolean =>
  typeof start === 'number' && typeof count === 'number' && typeof total === 'number' && start + count < total;

/** Describes an error of a service. Returns undefined for `{ code: 'ok' }`, which TikTok adds to each response. */
function describeError(errorValue: unknown): string | undefined {
  if (typeof errorValue === 'string') return errorValue || undefined;
  if (Array.isArray(errorValue)) return errorValue.length > 0 ? describeError(errorValue[0]) : undefined;
  if (!isObject(errorValue) || Object.keys(errorValue).length === 0) return undefined;
  const { code, message } = errorValue;
  if (code === 'ok' || (code === 0 && !message)) return undefined;
  return (
    [code, message].filter((part) => typeof part === 'string' || typeof part === 'number').join(' ') || 'no reason'
  );
}
