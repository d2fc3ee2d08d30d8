import { groupBy } from '../../views/lists.ts';
import type { ImportReport } from '../import/report.ts';
import type { ResultPage } from '../import/sources/result-pages.ts';

/*
 * Finds out whether the files of an import lack a part of the search results. A service returns results in pages, and
 * a page says that more results follow, but rarely which page it continues. A lost page can therefore only be noticed
 * if the order of the pages is known. Pages of one search are in one file, or in files whose names differ in one number.
 */

/** The report about one imported file, with the name of the file. */
export type ImportedFile = ImportReport & { name: string };

/** A file and those of its result pages that no earlier file contains. */
interface PagedFile {
  file: ImportedFile;
  pages: ResultPage[];
}

/**
 * Finds out whether the files of an import lack a part of the search results. Returns the reason, or undefined if
 * nothing seems to be missing.
 *
 * Something is missing if a file could not be read completely, or if a result page says that another page comes before
 * or after it and the files do not contain that page.
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
    const gap = findMissingPage(group) ?? findMissingFile(group);
    if (gap !== undefined) return gap;
  }
  return undefined;
}

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
  /** The previous page and its file, if the page says that more results follow. */
  let openPage: { file: ImportedFile; page: ResultPage } | undefined;
  /** The number of records on the current page and on the pages that it continues. */
  let recordCount = 0;
  for (const { file, page } of group.flatMap(({ file, pages }) => pages.map((page) => ({ file, page })))) {
    if (openPage && !canFollow(openPage.page, page)) return describeMissingEnd(openPage.file);
    if (!openPage && page.hasPrevious)
      return `${file.name} does not contain the first results, and the page before them is missing`;
    recordCount = page.recordCount + (openPage ? recordCount : 0);
    openPage = page.hasNextPage ? { file, page } : undefined;
    const total = page.totalRecords;
    const isTotalReliable = page.range !== undefined || !page.isLast;
    if (!openPage && total !== undefined && isTotalReliable && recordCount < total)
      return `${file.name} says that there are ${total} results, but only ${recordCount} were read`;
  }
  return openPage && describeMissingEnd(openPage.file);
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

/** A file with the numbers in its name. */
interface NumberedFile extends PagedFile {
  numbers: number[];
}

/**
 * Groups the files that may contain pages of one search: the files whose names differ in one number, e.g. `page-1.json`
 * and `page-2.json`, or `ads.json` and `ads (1).json`. Each group is sorted by this number.
 */
function groupFiles(files: readonly PagedFile[]): NumberedFile[][] {
  const filesByName = groupBy(files.map(parseFileName), ({ nameWithoutNumbers }) => nameWithoutNumbers);
  return [...filesByName.values()].flatMap((namedFiles) => {
    const lastVariable = findVariableNumbers(namedFiles).at(-1) ?? -1;
    const groups = groupBy(namedFiles, ({ numbers }) => numbers.toSpliced(lastVariable, 1).join(' '));
    return [...groups.values()].map((group) =>
      group.sort((left, right) => (left.numbers[lastVariable] ?? 0) - (right.numbers[lastVariable] ?? 0)),
    );
  });
}

/** Returns the indexes of the numbers that differ between files. */
const findVariableNumbers = (files: readonly NumberedFile[]): number[] =>
  (files[0]?.numbers ?? []).flatMap((number, index) =>
    files.some(({ numbers }) => numbers[index] !== number) ? [index] : [],
  );

/** Parses the numbers in the name of a file. A browser adds the number of a copy, as in `ads (1).json`. */
function parseFileName({ file, pages }: PagedFile): NumberedFile & { nameWithoutNumbers: string } {
  const [, stem = file.name, copyNumber = '0'] =
    /^(.*?)(?: \((\d{1,6})\))?(?:\.[a-z]{2,6}){0,2}$/is.exec(file.name) ?? [];
  return {
    ...{ file, pages },
    nameWithoutNumbers: stem.replace(/\d+/g, '#'),
    numbers: [...(stem.match(/\d+/g) ?? []), copyNumber].map(Number),
  };
}

/** The largest number that counts as the number of a page. A larger number may be a date. */
const maxPageNumber = 999;

/** Returns the reason why a file must be missing from files that are numbered one by one. */
function findMissingFile(group: readonly NumberedFile[]): string | undefined {
  if (!group.some(({ pages }) => pages.some(({ hasNextPage }) => hasNextPage))) return undefined;
  const [variable] = findVariableNumbers(group);
  if (variable === undefined) return undefined;
  const steps = group.slice(1).map(({ file, numbers }, index) => {
    const previous = group[index];
    return { file, previousFile: previous?.file, step: (numbers[variable] ?? 0) - (previous?.numbers[variable] ?? 0) };
  });
  // Files may also be numbered by the index of their first record, e.g. 0, 25 and 50.
  if (Math.min(...steps.map(({ step }) => step)) >= 10) return undefined;
  const gap = steps.find(({ step }) => step > 1);
  if (gap) return `a file between ${gap.previousFile?.name} and ${gap.file.name} is missing`;
  const firstNumber = group[0]?.numbers[variable] ?? 0;
  if (firstNumber > 1 && firstNumber <= maxPageNumber) return `a file before ${group[0]?.file.name} is missing`;
  return undefined;
}
