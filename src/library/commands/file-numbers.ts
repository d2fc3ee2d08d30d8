import { groupBy } from '../../views/group-by.ts';

/*
 * Reads the numbers in the names of files, such as `page-1.json` and `page-2.json`. The numbers show the order of the
 * files, and whether a file between two others is missing. Dates and times of day in file names do not count as
 * numbers.
 */

/** A file name, separated into its text and its numbers. */
export interface ParsedFileName {
  name: string;
  /**
   * The name with placeholders for its numbers and dates, followed by the dates, e.g. `ads-#-<date>|2026-01-31`. Dates
   * do not show the order of files, so file names with different dates are never compared.
   */
  nameWithoutNumbers: string;
  /**
   * All numbers in the name, in order. The last number is the number of the copy, e.g. 1 in `ads (1).json`, or 0 if the
   * name has none.
   */
  numbers: number[];
}

/** Matches the name of a month, e.g. `jan` or `January`. */
const monthNamePattern =
  '(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)';
const yearPattern = '(?:19|20)\\d\\d';
const monthPattern = '(?:0[1-9]|1[0-2])';
const dayPattern = '(?:0[1-9]|[12]\\d|3[01])';
/** Matches dates such as `2026-01-31`, `20260131`, `31.01.2026`, `2026-01`, `2026-W05` and `31 Jan`. */
const datePattern = new RegExp(
  [
    `(?<!\\d)${yearPattern}([-_. ]?)${monthPattern}\\1${dayPattern}(?!\\d)`,
    `(?<!\\d)(?:0?[1-9]|[12]\\d|3[01])([-_.])(?:0?[1-9]|[12]\\d|3[01])\\2${yearPattern}(?!\\d)`,
    '(?<!\\d)(?:0?[1-9]|[12]\\d|3[01])\\.(?:0?[1-9]|1[0-2])\\.\\d\\d(?!\\d)',
    `(?<!\\d)${yearPattern}[-_. ]?(?:w|kw|cw|week)[-_. ]?\\d{1,2}(?!\\d)`,
    `(?<!\\d)${yearPattern}[-_.]${monthPattern}(?!\\d)`,
    `(?<![a-z\\d])(?:\\d{1,2}[-_. ]?)?${monthNamePattern}(?![a-z])(?:[-_. ]?\\d{1,2}(?!\\d))?(?:[-_. ,]{0,2}${yearPattern}(?!\\d))?`,
  ].join('|'),
  'gi',
);
/** Matches a time of day with seconds, such as `10-15-00`. */
const timePattern = /(?<!\d)([01]\d|2[0-3])([-_.:])([0-5]\d)\2([0-5]\d)(?!\d)/g;

/**
 * Parses the names of files, so that their numbers can be compared. Browsers number copies, as in `ads.json` and `ads
 * (1).json`. A file without a number comes before numbered files with the same name, e.g. `ads.json` before
 * `ads-2.json`.
 */
export function parseFileNames(fileNames: readonly string[]): ParsedFileName[] {
  const splitNames = fileNames.map(splitFileName);
  const stems = new Set(splitNames.map(({ stem }) => stem));
  const separatorByFirstStem = new Map<string, string>();
  for (const { stem } of splitNames) {
    const [, firstStem = '', separator = ''] = /^(.*?[^\d _-])([ _-])\d{1,3}$/s.exec(stem) ?? [];
    if (stems.has(firstStem)) separatorByFirstStem.set(firstStem, separator);
  }
  return splitNames.map(({ name, stem, copyNumber }) => {
    const separator = separatorByFirstStem.get(stem);
    const hasFileWithOne = stems.has(`${stem}${separator}1`);
    const numberedStem = separator === undefined ? stem : `${stem}${separator}${hasFileWithOne ? 0 : 1}`;
    const dates = numberedStem.match(datePattern) ?? [];
    const stemWithoutDates = numberedStem.replace(datePattern, '<date>').replace(timePattern, '$1$3$4');
    return {
      name,
      nameWithoutNumbers: [stemWithoutDates.replace(/\d+/g, '#'), ...dates].join('|'),
      numbers: [...(stemWithoutDates.match(/\d+/g) ?? []), copyNumber].map(Number),
    };
  });
}

/** Removes the extensions from a file name, and separates the number of a copy, e.g. 1 in `ads (1).json`. */
function splitFileName(fileName: string) {
  const [, stem = fileName, copyNumber = '0'] =
    /^(.*?)(?: \((\d{1,6})\))?(?:\.[a-z]{2,6}){0,2}$/is.exec(fileName) ?? [];
  return { name: fileName, stem, copyNumber };
}

/** Returns the indexes of the numbers that are not the same in all file names. */
export const findVaryingNumberIndexes = (files: readonly ParsedFileName[]): number[] =>
  (files[0]?.numbers ?? []).flatMap((number, index) =>
    files.some(({ numbers }) => numbers[index] !== number) ? [index] : [],
  );

/** Groups files whose names differ only in the number at `numberIndex`. Sorts each group by this number. */
export function groupByNumber<File extends ParsedFileName>(files: readonly File[], numberIndex: number): File[][] {
  const groups = groupBy(files, ({ numbers }) => numbers.toSpliced(numberIndex, 1).join(' '));
  return [...groups.values()].map((group) =>
    group.sort(
      (firstFile, secondFile) => (firstFile.numbers[numberIndex] ?? 0) - (secondFile.numbers[numberIndex] ?? 0),
    ),
  );
}

/** The largest number in a file name that is treated as a page number. A larger number may be an id. */
const maxPageNumber = 999;
/**
 * The largest number in a file name that is treated as the index of the first record in the file. A larger number may
 * be an id.
 */
const maxRecordIndex = 1_000_000;

/**
 * Returns a sentence about a missing file if the numbers in file names have a gap. Otherwise returns undefined.
 * @param hasNextPage returns true if the file with this name says that more results follow; a number above 999 in the
 * names can then be a page number
 */
export function describeNumberGap(
  fileNames: readonly string[],
  hasNextPage: (fileName: string) => boolean,
): string | undefined {
  const groups = groupBy(parseFileNames(fileNames), ({ nameWithoutNumbers }) => nameWithoutNumbers);
  for (const files of groups.values()) {
    const fileCountProblem = describeMissingFileCount(files.map(({ name }) => name));
    if (fileCountProblem !== undefined) return fileCountProblem;
    for (const numberIndex of findVaryingNumberIndexes(files))
      for (const group of groupByNumber(files, numberIndex)) {
        const gapProblem = describeGapInGroup(group, numberIndex, hasNextPage);
        if (gapProblem !== undefined) return gapProblem;
      }
  }
  return undefined;
}

function describeGapInGroup(
  group: readonly ParsedFileName[],
  numberIndex: number,
  hasNextPage: (fileName: string) => boolean,
): string | undefined {
  const files = group.map(({ name, numbers }) => ({ name, number: numbers[numberIndex] ?? 0 }));
  const [firstFile] = files;
  const lastFile = files.at(-1);
  if (files.length < 2 || !firstFile || !lastFile) return undefined;
  const steps = files.slice(1).map(({ name, number }, index) => {
    const previousFile = files[index];
    return { name, previousName: previousFile?.name, step: number - (previousFile?.number ?? 0) };
  });
  const smallestStep = Math.min(...steps.map(({ step }) => step).filter((step) => step > 0));
  // The number may be the index of the first record in each file, e.g. 0, 25 and 50. All steps between such numbers are
  // multiples of the smallest step.
  const isRecordIndex =
    smallestStep >= 10 &&
    lastFile.number <= maxRecordIndex &&
    steps.every(({ step }) => step % smallestStep === 0) &&
    (firstFile.number % smallestStep === 0 || files.length > 2);
  const isPageNumber =
    !isRecordIndex &&
    (lastFile.number <= maxPageNumber || (smallestStep < 10 && files.some(({ name }) => hasNextPage(name))));
  if (!isRecordIndex && !isPageNumber) return undefined;
  const stepOverGap = steps.find(({ step }) => step > (isRecordIndex ? smallestStep : 1));
  if (stepOverGap) return `a file between ${stepOverGap.previousName} and ${stepOverGap.name} is missing`;
  const largestFirstNumber = isPageNumber ? maxPageNumber : maxRecordIndex;
  if (firstFile.number > 1 && firstFile.number <= largestFirstNumber)
    return `a file before ${firstFile.name} is missing`;
  return undefined;
}

/**
 * Returns a sentence about missing files if the file names state the total number of files, e.g. 3 in `ads-1-of-3.csv`,
 * and there are fewer files. The names must differ only in their numbers.
 */
function describeMissingFileCount(fileNames: readonly string[]): string | undefined {
  const [firstFileName = ''] = fileNames;
  const [, fileCount] = /\d[-_ ]?of[-_ ]?(\d{1,3})(?!\d)/i.exec(firstFileName) ?? [];
  if (fileCount === undefined || fileNames.length >= Number(fileCount)) return undefined;
  const missingCount = Number(fileCount) - fileNames.length;
  return `${firstFileName} says that there are ${fileCount} files, of which ${missingCount} ${missingCount === 1 ? 'is' : 'are'} missing`;
}
