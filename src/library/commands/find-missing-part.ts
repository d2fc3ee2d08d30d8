import { groupBy } from '../../views/lists.ts';
import { formatCount } from '../../views/numbers.ts';
import type { ImportReport } from '../import/report.ts';
import type { ResultPage } from '../import/sources/result-pages.ts';
import {
  findNumberGap,
  findVariableNumbers,
  groupByNumber,
  type NumberedName,
  parseFileNames,
} from './file-numbers.ts';

/*
 * Finds out whether the files of an import lack a part of the search results. A service returns results in pages, and
 * a page says that more results follow, but rarely which page it continues. A lost page can therefore only be noticed
 * if the order of the pages is known. Pages of one search are in one file, or in files whose names differ in one number.
 * Many files, such as tables, say nothing about other pages. Their numbers still show if a file between them is missing.
 */

/** The report about one imported file, with the name of the file. */
export type ImportedFile = ImportReport & { name: string };

/** A file and those of its result pages that no earlier file contains. */
interface PagedFile {
  file: ImportedFile;
  pages: ResultPage[];
}

/** A file with result pages, and the numbers in its name. */
type NumberedPagedFile = PagedFile & NumberedName;

/**
 * Finds out whether the files of an import lack a part of the search results. Returns the reason, or undefined if
 * nothing seems to be missing.
 *
 * Something is missing in these cases:
 * - A file could not be read completely.
 * - A result page says that another page comes before or after it, and the files do not contain that page.
 * - A result page says that there are more results than the files contain.
 * - The numbers in the names of the files have a gap.
 */
export function findMissingPart(files: readonly ImportedFile[]): string | undefined {
  const groups = groupFiles(listDifferentPages(files));
  const incompleteFile = files.find((file) => file.problems.length > 0 && !isEmptyEndOfResults(file, groups));
  if (incompleteFile) return `${incompleteFile.name} was not read completely`;
  const longFile = files.find(({ unlistedResultPages }) => unlistedResultPages > 0);
  if (longFile) return `${longFile.name} has too many pages of results to check all of them`;
  const hasEmptyAnswer = files.some(({ resultPages }) => resultPages.some(({ isEmptyAnswer }) => isEmptyAnswer));
  if (files.every(({ ads }) => ads === 0) && !hasEmptyAnswer) return 'no ad was read';
  for (const group of groups) {
    const gap = findMissingPage(group);
    if (gap !== undefined) return gap;
  }
  return findMissingFile(files);
}

/**
 * Returns a sentence for each search whose response states a larger number of results than the files contain. It does
 * not check anything else, because an import may well contain only a part of the results.
 */
export const findUnreadResults = (files: readonly ImportedFile[]): string[] =>
  groupFiles(listDifferentPages(files)).flatMap((group) => {
    const pages = group.flatMap(({ file, pages }) => pages.map((page) => ({ file, page })));
    const statement = pages.findLast(({ page }) => page.totalRecords !== undefined);
    const recordCount = sum(pages.map(({ page }) => page.recordCount));
    const total = statement?.page.totalRecords ?? 0;
    return statement && total > recordCount ? [describeUnreadResults(statement.file, total, recordCount)] : [];
  });

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

const describeUnreadResults = ({ name }: ImportedFile, total: number, recordCount: number): string =>
  `${name} states ${formatCount(total, 'result')}, but only ${recordCount.toLocaleString('en-US')} were read`;

/** Lists the files with result pages. Each page is listed once, even if several files contain a copy of it. */
function listDifferentPages(files: readonly ImportedFile[]): PagedFile[] {
  const listedPages = new Set<string>();
  const isNew = ({ contentHash, recordCount, hasNextPage, nextToken }: ResultPage) => {
    if (contentHash === undefined) return true;
    const key = [contentHash, recordCount, hasNextPage, nextToken].join(' ');
    const isListed = listedPages.has(key);
    listedPages.add(key);
    return !isListed;
  };
  return files.map((file) => ({ file, pages: file.resultPages.filter(isNew) })).filter(({ pages }) => pages.length > 0);
}

/**
 * Returns true for a file that contains only an empty result page and follows other pages of the results. Some APIs name
 * a next page although no results follow.
 */
function isEmptyEndOfResults(file: ImportedFile, groups: readonly PagedFile[][]): boolean {
  const { ads, pages, repeated, skipped, problems, resultPages } = file;
  const isEmptyValue = ads + pages + repeated + skipped === 0 && problems.length === 1;
  if (!isEmptyValue || resultPages.length === 0 || resultPages.some(({ error }) => error !== undefined)) return false;
  return groups.some((group) => {
    const previousFile = group[group.findIndex((candidate) => candidate.file === file) - 1];
    return previousFile?.pages.at(-1)?.hasNextPage ?? false;
  });
}

/** Returns the reason why a page of the results must be missing, or undefined if all pages are there. */
function findMissingPage(group: readonly PagedFile[]): string | undefined {
  /** The previous page and its file, if more results follow the page. */
  let openPage: { file: ImportedFile; page: ResultPage } | undefined;
  /** The number of records on the current page and on the pages that it continues. */
  let recordCount = 0;
  /** The number of results that these pages state, if they do. */
  let total: number | undefined;
  const describeGap = (file: ImportedFile, page: ResultPage) =>
    page.hasNextPage ? describeMissingEnd(file) : describeUnreadResults(file, total ?? 0, recordCount);
  for (const { file, page } of group.flatMap(({ file, pages }) => pages.map((page) => ({ file, page })))) {
    if (openPage && !canFollow(openPage.page, page)) return describeGap(openPage.file, openPage.page);
    if (!openPage && page.hasPrevious)
      return `${file.name} does not contain the first results, and the page before them is missing`;
    recordCount = page.recordCount + (openPage ? recordCount : 0);
    // The number of results may change while a program requests the pages, so use the number on the last page.
    total = page.totalRecords ?? (openPage ? total : undefined);
    const hasUnreadResults = total !== undefined && recordCount < total;
    if (hasUnreadResults && page.isLast && !page.hasNextPage) return describeGap(file, page);
    openPage = page.hasNextPage || hasUnreadResults ? { file, page } : undefined;
  }
  return openPage && describeGap(openPage.file, openPage.page);
}

const describeMissingEnd = ({ name }: ImportedFile): string =>
  `${name} says that more results follow, but the next page or the last page is missing`;

/** Returns true if a page may contain the results directly after an earlier page, as far as the two pages say. */
function canFollow(earlier: ResultPage, page: ResultPage): boolean {
  const isSame = <Value>(left: Value | undefined, right: Value | undefined) =>
    left === undefined || right === undefined || left === right;
  return (
    !page.isFirst &&
    isSame(earlier.nextToken, page.ownToken) &&
    isSame(earlier.range?.end, page.range?.start) &&
    (earlier.range === undefined || isSame(earlier.totalRecords, page.totalRecords)) &&
    isSame(earlier.pageNumber === undefined ? undefined : earlier.pageNumber + 1, page.pageNumber) &&
    page.recordCount <= (earlier.maxRecords ?? Number.POSITIVE_INFINITY)
  );
}

/**
 * Groups the files that may contain pages of one search: the files whose names differ in one number, e.g. `page-1.json`
 * and `page-2.json`, or `ads.json` and `ads (1).json`. Each group is sorted by this number.
 */
function groupFiles(files: readonly PagedFile[]): NumberedPagedFile[][] {
  const names = parseFileNames(files.map(({ file }) => file.name));
  const numberedFiles = files.map((file, index) => ({ ...file, ...(names[index] as NumberedName) }));
  return [...groupBy(numberedFiles, ({ nameWithoutNumbers }) => nameWithoutNumbers).values()].flatMap((namedFiles) =>
    groupByNumber(namedFiles, findVariableNumbers(namedFiles).at(-1) ?? -1),
  );
}

/** Returns the reason why a file must be missing from files that are numbered one by one, or undefined. */
function findMissingFile(files: readonly ImportedFile[]): string | undefined {
  const hasNextPage = (name: string) =>
    files.some((file) => file.name === name && file.resultPages.some((page) => page.hasNextPage));
  return findNumberGap(
    files.map(({ name }) => name),
    hasNextPage,
  );
}
