import { isObject } from '../../../views/view.ts';
import { quoteValue } from '../../service/request.ts';
import type { SourceAmount } from './currencies.ts';
import { DateColumnParser } from './dates.ts';
import { type LiteralOptions, parseListOrObject, parseLiteral } from './literals.ts';
import { addSuffixToLowerBound, NumberColumnParser, type NumberOptions } from './numbers.ts';

/**
 * Matches texts that mean "no value". For example, R writes `NA`, Python writes `None` and `nan`, and databases write
 * `NULL` and `\N`.
 */
const missingValuePattern = /^(?:NA|N\/A|n\/a|NULL|null|None|nan|NaN|NaT|<NA>|#N\/A|\\N|-|–|—)?$/;

/** Returns true if a table cell or a JSON value means "no value". */
export const isMissingValue = (value: unknown): boolean =>
  value === null || value === undefined || (typeof value === 'string' && missingValuePattern.test(value.trim()));

/** A range of numbers that includes both bounds. If a bound is missing, the range is unlimited on that side. */
export interface NumberRange {
  min?: number | undefined;
  max?: number | undefined;
}

/** The options for parsing the numbers of one column. */
export type ColumnNumberOptions = NumberOptions & {
  /** The name of the value in error messages, e.g. the field of the ad. Defaults to the column name. */
  label?: string;
  /** The text of the whole range if the number is only one bound, e.g. `€100 - €199`. Defaults to the number itself. */
  sourceText?: string | undefined;
};

/**
 * Parses the values of imported records. Here, "column" means a column of a table or a key of JSON records. For each
 * column, the parser looks at all values to find out how the column writes its numbers and dates.
 *
 * The import passes every record to the parser twice. In the first pass, the parser only remembers how dates and
 * numbers are written, and returns undefined for them. After `decideNotations`, in the second pass, it returns the
 * parsed values.
 *
 * Every parse method returns undefined for a missing value. If it cannot parse a value, it throws an Error that names
 * the column and quotes the value.
 */
export class ColumnValueParser {
  /** The time of the import, in Unix milliseconds. */
  readonly importTimeMs: number;
  /**
   * Errors about values of the current record that could not be parsed. The record is stored without these values, and
   * the import report lists the errors.
   */
  readonly valueErrors: Error[] = [];
  /**
   * The keys of the current record that the import does not use, because it does not recognize them. The import report
   * lists these keys.
   */
  readonly unusedKeys: string[] = [];
  /** The stored fields of the current record, each with the source key from which its value was read. */
  readonly fieldSources: (readonly [field: string, key: string])[] = [];
  /**
   * Alternative keys of the current record, i.e. keys whose field was already read from another key. If `isStored` is
   * true, the import stores the value of the alternative key under the name of that key.
   */
  readonly alternativeKeys: { key: string; isStored: boolean }[] = [];
  /** The numbers of the current record that are not counts. Most of these numbers are amounts of money. */
  readonly amounts: SourceAmount[] = [];
  readonly #dateColumns = new Map<string, DateColumnParser>();
  readonly #numberColumns = new Map<string, NumberColumnParser>();
  /** True after `decideNotations` was called, i.e. in the second pass of the import, which parses dates and numbers. */
  areNotationsDecided = false;

  constructor(importTimeMs: number) {
    this.importTimeMs = importTimeMs;
  }

  /**
   * Decides how each column writes its dates and numbers. Call this method at the end of the first pass, after every
   * value has been observed.
   * @throws Error that lists the possible meanings if the values of a column are ambiguous
   */
  decideNotations(): void {
    for (const column of [...this.#dateColumns.values(), ...this.#numberColumns.values()]) column.decideNotation();
    this.areNotationsDecided = true;
  }

  /** Clears the errors, keys and amounts of the previous record. */
  startRecord(): void {
    const { valueErrors, unusedKeys, fieldSources, alternativeKeys, amounts } = this;
    for (const recordList of [valueErrors, unusedKeys, fieldSources, alternativeKeys, amounts]) recordList.length = 0;
  }

  /** Remembers for the import report from which key a field of the current record was read. */
  addFieldSource(field: string, key: string): void {
    if (this.areNotationsDecided) this.fieldSources.push([field, key]);
  }

  /**
   * Remembers an alternative key, i.e. a key whose field was already read from another key. Ignores the key if its
   * value could not be parsed, because that error is already reported.
   */
  addAlternativeKey(key: string, isStored: boolean): void {
    if (!this.valueErrors.some(({ message }) => message.startsWith(`${key}: `)))
      this.alternativeKeys.push({ key, isStored });
  }

  /** Adds an error about a value of the current record, which the import report will list. */
  addValueError(error: unknown): void {
    this.valueErrors.push(error as Error);
  }

  /**
   * Parses a date in any common notation, e.g. `31.01.2026`, and returns it in ISO 8601 format.
   * @param label the name of this value in error messages; messages about the whole column always use `columnName`
   */
  parseDate(columnName: string, sourceValue: unknown, label = columnName): string | undefined {
    if (isMissingValue(sourceValue)) return undefined;
    const column = this.#dateColumns.get(columnName) ?? new DateColumnParser(columnName, this.importTimeMs);
    this.#dateColumns.set(columnName, column);
    if (this.areNotationsDecided) return column.parseValue(sourceValue, label);
    column.observeValue(sourceValue);
    return undefined;
  }

  /** Parses a number in any common notation, e.g. `1,234.5`, `1.234,5`, `12K` or `€ 12`. */
  parseNumber(
    columnName: string,
    sourceValue: unknown,
    { label = columnName, sourceText = String(sourceValue), ...options }: ColumnNumberOptions = {},
  ): number | undefined {
    if (isMissingValue(sourceValue)) return undefined;
    const column = this.#numberColumns.get(columnName) ?? new NumberColumnParser(columnName, options);
    this.#numberColumns.set(columnName, column);
    if (this.areNotationsDecided) {
      const number = column.parseValue(sourceValue, label);
      if (!options.isCount) this.amounts.push({ key: columnName, text: sourceText });
      return number;
    }
    if (typeof sourceValue === 'string') column.observeValue(sourceValue);
    return undefined;
  }

  /**
   * Parses a range, e.g. `100–199`, `10–15K` or `{"lower_bound": 100, "upper_bound": 199}`. A single number becomes
   * both bounds. `>1M` and `1M+` have only a lower bound, and `<100` has only an upper bound.
   */
  parseRange(columnName: string, sourceValue: unknown, options: ColumnNumberOptions = {}): NumberRange | undefined {
    if (isMissingValue(sourceValue)) return undefined;
    const parsedStructure = typeof sourceValue === 'string' ? parseListOrObject(sourceValue) : sourceValue;
    const text = String(sourceValue).trim();
    const sourceText = isObject(parsedStructure) ? undefined : text;
    const parseBound = (boundValue: unknown) => this.parseNumber(columnName, boundValue, { ...options, sourceText });
    if (isObject(parsedStructure)) return this.#parseBoundsObject(columnName, parsedStructure, parseBound);
    const [, lowerText] = lowerBoundTextPattern.exec(text) ?? [];
    const [, upperText] = upperBoundTextPattern.exec(text) ?? [];
    if (lowerText !== undefined || upperText !== undefined)
      return { min: parseBound(lowerText), max: parseBound(upperText) };
    const [, fromText, toText] = closedRangePattern.exec(text) ?? [];
    if (fromText !== undefined && toText !== undefined)
      return { min: parseBound(addSuffixToLowerBound(fromText, toText)), max: parseBound(toText) };
    const [, minTextAfterSign, minTextBeforePlus, maxText] = openRangePattern.exec(text) ?? [];
    const minText = minTextAfterSign ?? minTextBeforePlus;
    if (minText !== undefined) return { min: parseBound(minText) };
    if (maxText !== undefined) return { max: parseBound(maxText) };
    const exactNumber = parseBound(sourceValue);
    return exactNumber === undefined ? undefined : { min: exactNumber, max: exactNumber };
  }

  #parseBoundsObject(
    columnName: string,
    bounds: object,
    parseBound: (bound: unknown) => number | undefined,
  ): NumberRange | undefined {
    const findBound = (keyPattern: RegExp) => Object.entries(bounds).find(([key]) => keyPattern.test(key))?.[1];
    const [lower, upper] = [findBound(/^(?:lower|min|from$)/i), findBound(/^(?:upper|max|to$)/i)];
    if (isMissingValue(lower) && isMissingValue(upper)) {
      if (Object.keys(bounds).length === 0) return undefined;
      throw new Error(
        `${columnName}: ${quoteValue(bounds)} is not a range such as {"lower_bound": 100, "upper_bound": 199}`,
      );
    }
    return { min: parseBound(lower), max: parseBound(upper) };
  }

  /** Parses a boolean or an equivalent word, e.g. `yes`, `active` or `wahr` (German for true). */
  parseBoolean(columnName: string, sourceValue: unknown): boolean | undefined {
    if (typeof sourceValue === 'boolean') return sourceValue;
    if (isMissingValue(sourceValue)) return undefined;
    const lowerCaseWord = String(sourceValue).trim().toLowerCase();
    if (trueWords.has(lowerCaseWord)) return true;
    if (falseWords.has(lowerCaseWord)) return false;
    throw new Error(`${columnName}: ${quoteValue(sourceValue)} is neither true nor false`);
  }

  /**
   * Parses a list of short names, e.g. of platforms or languages. The value may be a list, the text of a list such as
   * `["de", "fr"]`, or a text with separators such as `de, fr`.
   */
  parseNames(columnName: string, sourceValue: unknown): string[] | undefined {
    if (isMissingValue(sourceValue)) return undefined;
    const nameList = typeof sourceValue === 'string' ? parseNameList(sourceValue) : sourceValue;
    const items = isObject(nameList) ? Object.values(nameList) : [nameList].flat();
    const names = items.flatMap((item) => (typeof item === 'string' ? item.split(/[,;|]/) : (item ?? [])));
    if (!names.every((item) => typeof item === 'string' || typeof item === 'number'))
      throw new Error(
        `${columnName}: ${quoteValue(sourceValue)} is not a list of names such as ["facebook", "instagram"]`,
      );
    const trimmedNames = names.flatMap((item) => String(item).trim() || []);
    return trimmedNames.length > 0 ? trimmedNames : undefined;
  }

  /**
   * Parses the alternative versions of a text, e.g. of a headline. The value may be a list of texts, the text of such a
   * list, or a single text, which may contain brackets and commas.
   */
  parseTexts(sourceValue: unknown): string[] | undefined {
    if (isMissingValue(sourceValue)) return undefined;
    const textList =
      typeof sourceValue === 'string' ? (parseListOrObject(sourceValue) ?? parseNumpyTexts(sourceValue)) : sourceValue;
    const items = isTextList(textList) ? textList : [sourceValue].flat();
    const texts = items.flatMap((item) => (typeof item === 'string' || typeof item === 'number' ? String(item) : []));
    return texts.some((text) => text !== '') ? texts : undefined;
  }

  /** Returns a text unchanged and converts a number to text. Returns undefined for a missing or any other value. */
  parseText(sourceValue: unknown): string | undefined {
    if (typeof sourceValue === 'number') return String(sourceValue);
    return typeof sourceValue === 'string' && !isMissingValue(sourceValue) ? sourceValue : undefined;
  }

  /**
   * Parses a text that contains a list or object in JSON or Python notation. Accepts a list of objects without outer
   * brackets, as some exports write it. Returns undefined for any other text, and returns other values unchanged.
   */
  parseStructure(sourceValue: unknown, options: LiteralOptions = {}): unknown {
    if (typeof sourceValue !== 'string') return sourceValue;
    return (
      parseListOrObject(sourceValue, options) ??
      (/^\s*\{/.test(sourceValue) ? parseListOrObject(`[${sourceValue}]`, options) : undefined)
    );
  }
}

const isTextList = (value: unknown): value is (string | null)[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string' || item === null);

/**
 * Parses a list of texts in numpy notation, which has no commas, e.g. `['One text' 'Another text']`. Returns undefined
 * for ordinary texts such as `[Ad] Shoes`, which have no quotation mark after the bracket.
 */
const parseNumpyTexts = (text: string): unknown =>
  /^\s*\[\s*["']/.test(text) ? parseLiteral(text, { allowsBareWords: true }) : undefined;

function parseNameList(text: string): unknown {
  return parseListOrObject(text, { allowsBareWords: true }) ?? text.replace(/^\s*[[({]|[\])}]\s*$/g, '');
}

const lowerBoundTextPattern = /lower_?bound\W{1,5}([\d.]+)/i;
const upperBoundTextPattern = /upper_?bound\W{1,5}([\d.]+)/i;
/** Matches a range with two bounds, e.g. `€1K - €1.5K`, `100–199` or `100 to 199`. */
const closedRangePattern = /^([^\s–—-][^–—-]{0,40}?)\s?(?:[-–—]|to)\s?([^\s–—-][^–—-]{0,40})$/;
/** Matches a range with one bound, e.g. `>1M`, `over 1000`, `1M+`, `<100` or `less than 100`. */
const openRangePattern =
  /^(?:(?:>|≥|>=|over|more than)\s?(.{1,40})|(.{1,40})\+|(?:<|≤|<=|under|less than)\s?(.{1,40}))$/;

const trueWords = new Set([
  'true',
  'yes',
  'y',
  't',
  '1',
  '1.0',
  'active',
  'wahr',
  'ja',
  'vrai',
  'oui',
  'verdadero',
  'sí',
  'vero',
  'sim',
]);
const falseWords = new Set([
  'false',
  'no',
  'n',
  'f',
  '0',
  '0.0',
  'inactive',
  'falsch',
  'nein',
  'faux',
  'non',
  'falso',
  'não',
]);
