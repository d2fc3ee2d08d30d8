import { hash } from 'node:crypto';
import { isObject } from '../../../views/view.ts';
import { normalizeKey } from '../formats/source-record.ts';

/**
 * A page of search results from the API of an ad library or from a scraper: an object around a list of records. Its
 * properties tell whether the search has other pages, so that an import can detect missing pages.
 */
export interface ResultPage {
  /** True if the page has a list of records. The list may be empty. */
  hasRecordList: boolean;
  recordCount: number;
  /** True if the page says that more results follow, e.g. with `paging.next` or `has_more`. */
  hasNextPage: boolean;
  /** True if the page says that no more results follow, e.g. with `has_more: false`. */
  isLastPage: boolean;
  /** True if the page says that it is the first page of the results, e.g. with `start: 0`. */
  isFirstPage: boolean;
  /** True if the page says that other pages come before it, e.g. with `paging.previous`. */
  hasPreviousPage: boolean;
  /** The hash of the token that a client sends to request the next page. */
  nextTokenHash?: string;
  /**
   * The hash of the token with which this page was requested. Only some services repeat the token in their responses.
   */
  requestTokenHash?: string;
  /** The positions of the first record and of the record after the last one. LinkedIn states them in each page. */
  recordRange?: { start: number; end: number };
  /** The number of this page, starting at 1, and the number of all pages. */
  pageNumber?: number;
  pageCount?: number;
  /** The number of records on all pages together, as the service states it. */
  totalRecordCount?: number;
  /** The maximum number of records per page. The URL of the next page contains it as `limit`. */
  maxRecordsPerPage?: number;
  /** True if the page is a complete response without results from a known service, and not just any empty list. */
  isEmptyResponse: boolean;
  /** A hash of the first records on the page. Copies of a page have the same hash. */
  contentHash?: string;
  /**
   * The error message in the page, e.g. about an expired access token. A service may return an error together with
   * records.
   */
  errorMessage?: string;
}

/** Creates the description of a result page of which nothing has been read yet. */
export const createResultPage = (): ResultPage => ({
  ...{
    hasRecordList: false,
    recordCount: 0,
    hasNextPage: false,
    isLastPage: false,
    isFirstPage: false,
    hasPreviousPage: false,
  },
  isEmptyResponse: false,
});

/** Returns a short hash of a token or record. Tokens and records may be long, so pages only contain their hashes. */
const computeHash = (text: string): string => hash('sha1', text).slice(0, 20);

const maxHashedRecords = 10;

/** Counts a record of a result page, and adds the first records to the hash of the page. */
export function addRecordToPage(page: ResultPage, record: unknown): void {
  page.hasRecordList = true;
  page.recordCount++;
  if (page.recordCount <= maxHashedRecords)
    page.contentHash = computeHash(`${page.contentHash ?? ''}${JSON.stringify(record)}`);
}

/** Returns true if an object under this key repeats the parameters of the request, as some services do. */
export const isRequestKey = (key: string): boolean => requestKeys.has(normalizeKey(key));
const requestKeys = new Set(['searchparameters', 'requestparameters', 'request', 'params']);

/**
 * Updates a result page with the properties of an object around its records: signs of other pages, and any error.
 * @param path the path of the object in its document, e.g. `data.search_results_connection`
 */
export function updateResultPage(page: ResultPage, enclosingObject: Record<string, unknown>, path = ''): void {
  const isTotalPlausible = canStateTotal(enclosingObject) || metadataPathPattern.test(path);
  const isConnection = 'edges' in enclosingObject || /connection$/i.test(path);
  for (const [name, value] of Object.entries(enclosingObject)) {
    const key = normalizeKey(name);
    if (isEmptyRecordList(key, value)) page.hasRecordList = true;
    if (requestKeys.has(key) && isObject(value)) updateRequestToken(page, value);
    if (nextPageKeys.has(key)) updateNextPage(page, value);
    if (lastPageKeys.has(key) && typeof value === 'boolean') updateNextPage(page, !value);
    // Skip the cursors inside GraphQL edges. They belong to a single record, and have a `node` next to them.
    if (key === 'cursor' && !('node' in enclosingObject)) updateNextPage(page, value);
    if (key === 'endcursor' && typeof value === 'string') page.nextTokenHash = computeHash(value);
    if (previousPageKeys.has(key) && (value === true || isNonEmptyText(value))) page.hasPreviousPage = true;
    if ((totalResultKeys.has(key) && isTotalPlausible) || (key === 'count' && isConnection))
      updateTotalRecordCount(page, value);
    if (pagingKeys.has(key) && isObject(value)) updatePaging(page, value);
    updatePageNumber(page, key, value);
    if (errorKeys.has(key)) {
      const errorMessage = describeError(value);
      if (errorMessage !== undefined) page.errorMessage ??= errorMessage;
    }
  }
}

/** The keys under which the supported ad libraries return lists of records, in normalized form. */
const resultListKeys = new Set([
  ...['data', 'items', 'ads', 'edges', 'elements', 'results', 'searchresults', 'adcreatives'],
  'commercialcontents',
]);
const isEmptyRecordList = (key: string, value: unknown): boolean =>
  resultListKeys.has(key) && Array.isArray(value) && value.length === 0;

const nextPageKeys = new Set([
  ...['hasmore', 'hasnextpage', 'nextpagetoken', 'paginationtoken', 'forwardcursor', 'nextcursor'],
  ...['next', 'nexturl', 'nextpageurl', 'nextlink', 'nextpage', 'nextoffset', 'nextpagecursor', 'hasnext'],
  ...['more', 'moreresults', 'hasmoreresults', 'hasmorepages', 'continuation', 'continuationtoken'],
  ...['truncated', 'istruncated', 'partial', 'ispartial', 'incomplete'],
]);
/** Keys whose value is false if more results follow. */
const lastPageKeys = new Set(['islastpage', 'lastpagereached', 'isresultcomplete', 'iscomplete', 'complete']);
const previousPageKeys = new Set(['haspreviouspage', 'previous', 'prev', 'previousurl', 'prevpageurl']);
/**
 * Keys whose value is the total number of results. The website of the Meta Ad Library writes `count` into
 * `search_results_connection`, ScrapeCreators writes `searchResultsCount`, and SerpApi and SearchApi write
 * `search_information.total_results`.
 */
const totalResultKeys = new Set([
  ...['total', 'totalcount', 'totalresults', 'totalresultscount', 'totalrecords', 'totalitems', 'totalhits'],
  ...['searchresultscount', 'resultscount', 'resultcount'],
]);
/** Matches the path of an object that describes the results but does not contain them. */
const metadataPathPattern = /(?:^|\.)(?:search_?information|meta|metadata|page_?info|paging|pagination)$/i;
const pageNumberKeys = new Set(['page', 'currentpage', 'pagenumber']);
const pageCountKeys = new Set(['totalpages', 'pagecount', 'lastpage']);
const pagingKeys = new Set(['paging', 'pagination', 'serpapipagination', 'links']);
const errorKeys = new Set(['error', 'errors']);

/**
 * Returns true if a total in this object may be the number of records, because the object also contains a list. A long
 * document is read key by key, so an object with a single key may be one property of such an object.
 */
const canStateTotal = (enclosingObject: Record<string, unknown>): boolean =>
  Object.keys(enclosingObject).length === 1 || Object.values(enclosingObject).some(Array.isArray);

/** Stores the total number of results in the page. Some services write the number as text, e.g. `"1,200"`. */
function updateTotalRecordCount(page: ResultPage, statedTotal: unknown): void {
  const total =
    typeof statedTotal === 'string' && /^\d[\d,]{0,14}$/.test(statedTotal)
      ? Number(statedTotal.replaceAll(',', ''))
      : statedTotal;
  if (typeof total === 'number' && Number.isFinite(total)) page.totalRecordCount = total;
}

const isNonEmptyText = (value: unknown): value is string => typeof value === 'string' && value !== '';

/**
 * Stores whether more results follow. If they do, `nextPageValue` is a token, a URL or `true`. Otherwise it is null,
 * false or empty.
 */
function updateNextPage(page: ResultPage, nextPageValue: unknown): void {
  const isLastPage =
    nextPageValue === 'false' || (isObject(nextPageValue) ? Object.keys(nextPageValue).length === 0 : !nextPageValue);
  if (isLastPage) page.isLastPage = true;
  else page.hasNextPage = true;
  if (isLastPage || !isNonEmptyText(nextPageValue)) return;
  const { searchParams } = URL.canParse(nextPageValue) ? new URL(nextPageValue) : { searchParams: undefined };
  const token = pageTokenParameterNames.map((name) => searchParams?.get(name)).find(isNonEmptyText);
  page.nextTokenHash = computeHash(token ?? nextPageValue);
  const limit = Number(searchParams?.get('limit') ?? Number.NaN);
  if (limit > 0) page.maxRecordsPerPage = limit;
}

/** The names of request parameters that contain the token of the requested page. */
const pageTokenParameterNames = [
  'next_page_token',
  'page_token',
  'pagination_token',
  'paginationToken',
  'cursor',
  'after',
];

/** Stores the token with which a page was requested. The request for the first page has no token. */
function updateRequestToken(page: ResultPage, request: Record<string, unknown>): void {
  const token = pageTokenParameterNames.map((name) => request[name]).find(isNonEmptyText);
  if (token === undefined) return;
  page.requestTokenHash = computeHash(token);
  page.hasPreviousPage = true;
}

/**
 * Stores which other pages an object mentions. Example of the object: `{ next: … }`, or on LinkedIn `{ start, count,
 * total, links: [{ rel: 'next' }] }`.
 */
function updatePaging(page: ResultPage, paging: Record<string, unknown>): void {
  const relations = Array.isArray(paging.links)
    ? paging.links.map((link: unknown) => (isObject(link) ? link.rel : undefined))
    : [];
  if (relations.includes('next')) page.hasNextPage = true;
  if (relations.includes('prev')) page.hasPreviousPage = true;
  const { start, count, total } = paging;
  if (typeof start === 'number' && typeof count === 'number') {
    page.recordRange = { start, end: start + count };
    if (start > 0) page.hasPreviousPage = true;
    else page.isFirstPage = true;
    if (typeof total === 'number' && start + count < total) page.hasNextPage = true;
  }
  updateTotalRecordCount(page, total);
  updateResultPage(page, paging, 'paging');
  if (!page.hasNextPage) page.isLastPage = true;
}

/** Stores the page number or the page count from an object such as `{ page: 1, totalPages: 5 }`. Ignores other keys. */
function updatePageNumber(page: ResultPage, key: string, keyValue: unknown): void {
  if (typeof keyValue !== 'number') return;
  if (pageNumberKeys.has(key)) page.pageNumber = keyValue;
  else if (pageCountKeys.has(key)) page.pageCount = keyValue;
  else return;
  const { pageNumber, pageCount } = page;
  if (pageNumber === undefined || pageCount === undefined) return;
  if (pageNumber < pageCount) page.hasNextPage = true;
  else page.isLastPage = true;
  if (pageNumber > 1) page.hasPreviousPage = true;
}

/**
 * Returns true if `responseBody` is a complete response without results from a service that the import knows. Such a
 * response may mean that the search no longer has any results. An empty list of unknown origin may mean anything.
 */
export function isEmptyResponse(
  responseBody: unknown,
  { recordCount, hasNextPage, hasPreviousPage, errorMessage, totalRecordCount }: ResultPage,
) {
  if (
    !isObject(responseBody) ||
    recordCount > 0 ||
    hasNextPage ||
    hasPreviousPage ||
    errorMessage !== undefined ||
    (totalRecordCount ?? 0) > 0
  )
    return false;
  const { data } = responseBody;
  const hasEmptyList = (...keys: string[]) =>
    keys.some((key) => isEmptyRecordList(normalizeKey(key), responseBody[key]));
  // A response of the Meta Ad Library API
  if (hasEmptyList('data')) return Object.keys(responseBody).every((key) => key === 'data' || key === 'paging');
  // A response of TikTok or of the website of the Meta Ad Library
  if (isObject(data)) {
    if ('has_more' in data)
      return data.has_more === false && isEmptyRecordList('ads', data.ads ?? data.commercial_contents);
    return hasEmptyConnection(data, 0);
  }
  // A response of LinkedIn
  if (hasEmptyList('elements')) return isObject(responseBody.paging) && responseBody.paging.total === 0;
  // A response of SerpApi or SearchApi
  if (isObject(responseBody.search_metadata))
    return responseBody.search_metadata.status === 'Success' && hasEmptyList('ad_creatives', 'ads');
  // A response of ScrapeCreators
  return (
    responseBody.success === true &&
    hasEmptyList('searchResults', 'ads', 'results') &&
    (responseBody.cursor ?? null) === null
  );
}

const maxConnectionDepth = 6;

/** Returns true if an object contains a GraphQL connection that has no edges and says that no next page follows. */
function hasEmptyConnection(responseObject: Record<string, unknown>, depth: number): boolean {
  const { edges, page_info: pageInfo } = responseObject;
  if (Array.isArray(edges)) return edges.length === 0 && isObject(pageInfo) && pageInfo.has_next_page === false;
  if (depth >= maxConnectionDepth) return false;
  return Object.values(responseObject).some((child) => isObject(child) && hasEmptyConnection(child, depth + 1));
}

/**
 * Describes the error that a service returned. Returns undefined for `{ code: 'ok' }`, which TikTok adds to each
 * response.
 */
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
