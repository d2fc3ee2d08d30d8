import { groupBy } from '../../views/group-by.ts';
import { formatCount, sumNumbers } from '../../views/numbers.ts';
import type { ImportReport } from '../import/report.ts';
import type { ResultPage } from '../import/sources/result-pages.ts';
import {
  describeNumberGap,
  findVaryingNumberIndexes,
  groupByNumber,
  type ParsedFileName,
  parseFileNames,
} from './file-numbers.ts';

/*
 * Finds out whether the files of an import lack some of the search results. A service returns results in pages. A page
 * says whether more results follow, but rarely which page comes before it. The import can therefore detect a missing
 * page only if it knows the order of the pages. Pages of one search are in one file, or in files whose names differ in
 * one number. Many files, such as tables, say nothing about other pages. The numbers in their names still show whether
 * a file is missing between two others.
 */

/** The import report about a file, with the name of the file. */
export type ImportedFile = ImportReport & {
  name: string;
  /** The number of sheets, for a workbook with several sheets. The import reads only the first sheet. */
  sheetCount?: number;
};

/** A file with the pages of search results that it contains. Pages that an earlier file also contains are omitted. */
interface FileWithResultPages {
  file: ImportedFile;
  pages: ResultPage[];
}

/** A file with pages of search results, and with the numbers in its name. */
type NumberedFileWithResultPages = FileWithResultPages & ParsedFileName;

/**
 * Returns the reason why the files of an import seem to lack some of the search results. Returns undefined if no
 * results seem to be missing.
 *
 * Results are missing in these cases:
 * - A file could not be read completely.
 * - A result page says that another page comes before or after it, and the files do not contain that page.
 * - A result page says that there are more results than the files contain.
 * - A workbook has several sheets, of which only the first one was read.
 * - The numbers in the names of the files have a gap.
 */
export function findIncompleteReason(files: readonly ImportedFile[]): string | undefined {
  const fileGroups = groupFilesBySearch(listDistinctResultPages(files));
  const incompleteFile = files.find((file) => file.problems.length > 0 && !isEmptyLastFile(file, fileGroups));
  if (incompleteFile) return `${incompleteFile.name} was not read completely`;
  const fileWithUnlistedPages = files.find(({ unlistedResultPages }) => unlistedResultPages > 0);
  if (fileWithUnlistedPages) return `${fileWithUnlistedPages.name} has too many pages of results to check all of them`;
  const workbook = files.find(({ sheetCount }) => sheetCount !== undefined);
  if (workbook) return `${workbook.name} has ${workbook.sheetCount} sheets, and only the first one was read`;
  const hasEmptyResponse = files.some(({ resultPages }) => resultPages.some(({ isEmptyResponse }) => isEmptyResponse));
  if (files.every(({ ads }) => ads === 0) && !hasEmptyResponse) return 'no ad was read';
  for (const group of fileGroups) {
    const missingPageProblem = describeMissingPage(group);
    if (missingPageProblem !== undefined) return missingPageProblem;
  }
  return describeMissingFile(files);
}

/**
 * Returns a sentence for each search whose response states more results than the files contain. This is no error,
 * because users may import only some of the results.
 */
export const listUnreadResultNotes = (files: readonly ImportedFile[]): string[] =>
  groupFilesBySearch(listDistinctResultPages(files)).flatMap((group) => {
    const pages = group.flatMap(({ file, pages }) => pages.map((page) => ({ file, page })));
    const pageWithTotal = pages.findLast(({ page }) => page.totalRecordCount !== undefined);
    const recordCount = sumNumbers(pages.map(({ page }) => page.recordCount));
    const totalResults = pageWithTotal?.page.totalRecordCount ?? 0;
    return pageWithTotal && totalResults > recordCount
      ? [describeUnreadResults(pageWithTotal.file, totalResults, recordCount)]
      : [];
  });

const describeUnreadResults = ({ name }: ImportedFile, totalResults: number, recordCount: number): string =>
  `${name} states ${formatCount(totalResults, 'result')}, but only ${recordCount.toLocaleString('en-US')} were read`;

/**
 * Lists the files that contain pages of search results. A page that occurs in several files is listed only for the
 * first of these files.
 */
function listDistinctResultPages(files: readonly ImportedFile[]): FileWithResultPages[] {
  const listedPageKeys = new Set<string>();
  const isNewPage = ({ contentHash, recordCount, hasNextPage, nextTokenHash: nextToken }: ResultPage) => {
    if (contentHash === undefined) return true;
    const pageKey = [contentHash, recordCount, hasNextPage, nextToken].join(' ');
    const isListed = listedPageKeys.has(pageKey);
    listedPageKeys.add(pageKey);
    return !isListed;
  };
  return files
    .map((file) => ({ file, pages: file.resultPages.filter(isNewPage) }))
    .filter(({ pages }) => pages.length > 0);
}

/**
 * Returns true if a file contains only a result page without results, and the file before it announces a next page.
 * This is not an error, because some APIs announce a next page even if no results follow.
 */
function isEmptyLastFile(file: ImportedFile, fileGroups: readonly FileWithResultPages[][]): boolean {
  const { ads, pages, repeated, skipped, problems, resultPages } = file;
  const isEmptyFile = ads + pages + repeated + skipped === 0 && problems.length === 1;
  if (!isEmptyFile || resultPages.length === 0 || resultPages.some(({ errorMessage }) => errorMessage !== undefined))
    return false;
  return fileGroups.some((group) => {
    const previousFile = group[group.findIndex((candidate) => candidate.file === file) - 1];
    return previousFile?.pages.at(-1)?.hasNextPage ?? false;
  });
}

/** Returns a sentence about the missing page if a group of files lacks a page of search results, or else undefined. */
function describeMissingPage(fileGroup: readonly FileWithResultPages[]): string | undefined {
  /** The previous page and its file, if more results must follow that page. Otherwise undefined. */
  let unfinishedPage: { file: ImportedFile; page: ResultPage } | undefined;
  /** The number of records on the current page and the earlier pages of the same search. */
  let recordCount = 0;
  /**
   * The total number of search results that the latest page of the current search states. Undefined if no page of the
   * search states a total.
   */
  let totalResults: number | undefined;
  const describeMissingResults = (file: ImportedFile, page: ResultPage) =>
    page.hasNextPage ? describeMissingEnd(file) : describeUnreadResults(file, totalResults ?? 0, recordCount);
  for (const { file, page } of fileGroup.flatMap(({ file, pages }) => pages.map((page) => ({ file, page })))) {
    if (unfinishedPage && !canDirectlyFollow(unfinishedPage.page, page))
      return describeMissingResults(unfinishedPage.file, unfinishedPage.page);
    if (!unfinishedPage && page.hasPreviousPage)
      return `${file.name} does not contain the first results, and the page before them is missing`;
    recordCount = page.recordCount + (unfinishedPage ? recordCount : 0);
    // The total number of results may change while a program requests the pages, so use the total of the latest page.
    totalResults = page.totalRecordCount ?? (unfinishedPage ? totalResults : undefined);
    const hasUnreadResults = totalResults !== undefined && recordCount < totalResults;
    if (hasUnreadResults && page.isLastPage && !page.hasNextPage) return describeMissingResults(file, page);
    unfinishedPage = page.hasNextPage || hasUnreadResults ? { file, page } : undefined;
  }
  return unfinishedPage && describeMissingResults(unfinishedPage.file, unfinishedPage.page);
}

const describeMissingEnd = ({ name }: ImportedFile): string =>
  `${name} says that more results follow, but the next page or the last page is missing`;

/**
 * Returns true if `page` may directly follow `previousPage`. Returns false if any detail on the pages, such as a page
 * number, contradicts this order.
 */
function canDirectlyFollow(previousPage: ResultPage, page: ResultPage): boolean {
  const isSameIfKnown = <Value>(firstValue: Value | undefined, secondValue: Value | undefined) =>
    firstValue === undefined || secondValue === undefined || firstValue === secondValue;
  return (
    !page.isFirstPage &&
    isSameIfKnown(previousPage.nextTokenHash, page.requestTokenHash) &&
    isSameIfKnown(previousPage.recordRange?.end, page.recordRange?.start) &&
    (previousPage.recordRange === undefined || isSameIfKnown(previousPage.totalRecordCount, page.totalRecordCount)) &&
    isSameIfKnown(previousPage.pageNumber === undefined ? undefined : previousPage.pageNumber + 1, page.pageNumber) &&
    page.recordCount <= (previousPage.maxRecordsPerPage ?? Number.POSITIVE_INFINITY)
  );
}

/**
 * Groups the files that may contain pages of the same search. The names of these files differ in only one number, e.g.
 * `page-1.json` and `page-2.json`, or `ads.json` and `ads (1).json`. Sorts each group by this number.
 */
function groupFilesBySearch(files: readonly FileWithResultPages[]): NumberedFileWithResultPages[][] {
  const parsedNames = parseFileNames(files.map(({ file }) => file.name));
  const numberedFiles = files.map((file, index) => ({ ...file, ...(parsedNames[index] as ParsedFileName) }));
  return [...groupBy(numberedFiles, ({ nameWithoutNumbers }) => nameWithoutNumbers).values()].flatMap((namedFiles) =>
    groupByNumber(namedFiles, findVaryingNumberIndexes(namedFiles).at(-1) ?? -1),
  );
}

/**
 * Returns a sentence about the missing file if the numbers in the file names have a gap. Otherwise returns undefined.
 */
function describeMissingFile(files: readonly ImportedFile[]): string | undefined {
  const hasNextPage = (fileName: string) =>
    files.some((file) => file.name === fileName && file.resultPages.some((page) => page.hasNextPage));
  return describeNumberGap(
    files.map(({ name }) => name),
    hasNextPage,
  );
}
