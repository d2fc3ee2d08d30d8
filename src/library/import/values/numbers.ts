import { quoteValue } from '../../service/request.ts';

/**
 * Parses numbers in notations that people and programs use. To find the decimal separator of a column, the parser looks
 * at all values of the column. `1.234` alone may mean 1234 or 1.234, but in the same column as `12,50` it can only mean
 * 1234.
 */

type DecimalSeparator = '.' | ',';

/** The options that describe the numbers in a column. */
export interface NumberOptions {
  /** True if the column contains counts, e.g. of people. Counts must be whole numbers. */
  isCount?: boolean;
}

/**
 * The text of a number, split into its digits and a suffix. For `€ 1.2K`, the digits are `1.2`, the suffix is `K` and
 * the multiplier is 1000.
 */
interface NumberText {
  /** The digits and separators, without the currency and the suffix. */
  digits: string;
  /** The suffix that stands for a multiplier, e.g. `K`. Empty if the number has no suffix. */
  suffix: string;
  /** The multiplier that the suffix stands for, e.g. 1000 for `K`. It is 1 if the number has no suffix. */
  multiplier: number;
}

/** Matches a currency sign or abbreviation, e.g. `€`, `US$`, `EUR` or `kr`. */
const currencyPattern = '(?:[A-Za-z]{0,3}\\p{Sc}|[A-Z]{3}|kr\\.?|zł|Rs\\.?|Kč|Ft|lei)';
const suffixPattern = '[kKmMbB]|[mb]n|[Mm]io\\.?|[Tt]sd\\.?';
const numberPattern = new RegExp(
  `^(?:${currencyPattern}\\s?)?(\\d[\\d.,'’\\u00b4_\\s]{0,60}|[.,]\\d{1,30})(${suffixPattern})?(?:\\s?${currencyPattern})?$`,
  'u',
);
const multiplierBySuffix: Record<string, number> = { k: 1e3, tsd: 1e3, m: 1e6, mn: 1e6, mio: 1e6, b: 1e9, bn: 1e9 };
const scientificPattern = /^\d(?:[.,]\d{1,20})?e[+-]?\d{1,2}$/i;

function splitNumberText(text: string): NumberText | undefined {
  const trimmedText = text.trim().replace(/^\+(?=\d)/, '');
  if (trimmedText.length > 80) return undefined;
  const [, digits, suffix = ''] = numberPattern.exec(trimmedText) ?? [];
  if (digits === undefined) return undefined;
  return {
    ...{ digits: digits.trim(), suffix },
    multiplier: multiplierBySuffix[suffix.toLowerCase().replace('.', '')] ?? 1,
  };
}

/** Patterns for digits with thousands separators, by decimal separator. */
const groupedDigitsPatterns: Record<DecimalSeparator, RegExp> = {
  // Groups have three digits. In Indian notation, all groups except the last have two digits.
  '.': /^(?:\d{1,3}(?:([,'’\u00b4_]|\s)\d{3})(?:\1\d{3})*|\d{1,2}(?:,\d{2})+,\d{3})(?:\.\d*)?$/u,
  ',': /^(?:\d{1,3}(?:([.'’\u00b4_]|\s)\d{3})(?:\1\d{3})*)(?:,\d*)?$/u,
};
/** Patterns for digits without thousands separators, by decimal separator. */
const ungroupedDigitsPatterns: Record<DecimalSeparator, RegExp> = { '.': /^\d*(?:\.\d*)?$/, ',': /^\d*(?:,\d*)?$/ };

/**
 * Returns the value of a number if it is read with this decimal separator. Returns undefined if the digits are not
 * valid with this separator.
 */
function parseDigits(decimalSeparator: DecimalSeparator, { digits, multiplier }: NumberText): number | undefined {
  // A number with thousands separators never starts with 0, so `0.123` cannot mean 123.
  const isGrouped = groupedDigitsPatterns[decimalSeparator].test(digits) && !/^0[.,]/.test(digits);
  if (!ungroupedDigitsPatterns[decimalSeparator].test(digits) && !isGrouped) return undefined;
  const normalizedDigits = digits.replace(decimalSeparator === '.' ? /[^\d.]/g : /[^\d,]/g, '').replace(',', '.');
  const number = Number(normalizedDigits) * multiplier;
  return Number.isFinite(number) ? removeFloatingPointError(number) : undefined;
}

/** Returns the values that a number may have, depending on the decimal separator. Most numbers have one value. */
const listPossibleValues = (numberText: NumberText): number[] => [
  ...new Set((['.', ','] as const).flatMap((separator) => parseDigits(separator, numberText) ?? [])),
];

/**
 * Adds the suffix of the upper bound of a range to its lower bound. In `€10–15K`, the suffix applies to both bounds, so
 * for `€10` and `15K`, returns `€10K`. Returns the lower bound unchanged if it has a suffix, or if it would then reach
 * the upper bound. In `900–1K`, the suffix therefore applies only to the upper bound.
 */
export function addSuffixToLowerBound(lowerText: string, upperText: string): string {
  const [lowerNumber, upperNumber] = [splitNumberText(lowerText), splitNumberText(upperText)];
  if (!lowerNumber || !upperNumber || lowerNumber.suffix !== '') return lowerText;
  const { suffix, multiplier } = upperNumber;
  const [lowerValue = Number.NaN, ...otherValues] = listPossibleValues({ ...lowerNumber, multiplier });
  // Programs that write `1,200` in full do not abbreviate it, so leave numbers that may have thousands separators.
  if (otherValues.length > 0 || !listPossibleValues(upperNumber).some((upperValue) => lowerValue < upperValue))
    return lowerText;
  return lowerText.replace(lowerNumber.digits, `${lowerNumber.digits}${suffix}`);
}

/** Removes floating-point errors. For example, 1.1 × 1,000,000 becomes 1100000 instead of 1100000.0000000002. */
const removeFloatingPointError = (number: number): number => Number(number.toPrecision(15));

/**
 * Parses the numbers of one column in two passes. Call `observeValue` for each value, then `decideNotation` once, and
 * then `parseValue` for each value.
 */
export class NumberColumnParser {
  readonly #columnName: string;
  readonly #isCount: boolean;
  /** The decimal separators that are valid for all values so far. */
  #possibleSeparators: DecimalSeparator[] = ['.', ','];
  /** The first value whose meaning depends on the decimal separator, e.g. `1.234`. */
  #ambiguousNumber: NumberText | undefined;
  /** The first value that excluded one of the separators, e.g. `12,50`. */
  #decisiveValue: string | undefined;
  /** The first value that is invalid with the separator that an earlier value requires. */
  #contradictoryValue: string | undefined;
  #hasAmbiguousPoint = false;
  /** True if a value has neither a decimal separator nor thousands separators, e.g. `200`. */
  #hasPlainDigits = false;

  constructor(columnName: string, { isCount = false }: NumberOptions = {}) {
    this.#columnName = columnName;
    this.#isCount = isCount;
  }

  /** Records the decimal separators that are possible for a value of the column. */
  observeValue(text: string): void {
    const numberText = splitNumberText(text);
    if (numberText === undefined || scientificPattern.test(text.trim())) return;
    if (/^\d+$/.test(numberText.digits)) this.#hasPlainDigits = true;
    const valueBySeparator = new Map(
      (['.', ','] as const).flatMap((separator) => {
        const value = parseDigits(separator, numberText);
        return value === undefined || (this.#isCount && !Number.isInteger(value)) ? [] : [[separator, value] as const];
      }),
    );
    if (valueBySeparator.size === 0) return;
    if (valueBySeparator.size === 2 && valueBySeparator.get('.') !== valueBySeparator.get(',')) {
      this.#ambiguousNumber ??= numberText;
      if (numberText.digits.includes('.')) this.#hasAmbiguousPoint = true;
    }
    const separators = this.#possibleSeparators.filter((separator) => valueBySeparator.has(separator));
    if (separators.length === 0) this.#contradictoryValue ??= text.trim();
    else if (separators.length < this.#possibleSeparators.length) this.#decisiveValue ??= text.trim();
    if (separators.length > 0) this.#possibleSeparators = separators;
  }

  /**
   * Decides which decimal separator the column uses.
   * @throws Error that lists both meanings of an ambiguous number if the column does not determine the separator
   */
  decideNotation(): void {
    const messageStart = `the column ${quoteValue(this.#columnName)} has numbers such as`;
    if (this.#contradictoryValue !== undefined)
      throw new Error(
        `${messageStart} ${this.#decisiveValue} and ${this.#contradictoryValue}, which cannot have the same decimal separator; write them without thousands separators and import the file again`,
      );
    if (this.#possibleSeparators.length < 2 || this.#ambiguousNumber === undefined) return;
    // If all ambiguous numbers have commas, as in `1,234`, read the commas as thousands separators. A decimal comma is
    // unlikely: programs write decimal points, and people write amounts of money with two decimals instead of three.
    if (!this.#hasAmbiguousPoint) this.#possibleSeparators = ['.'];
    // Programs that write the count 1 as `1.000` write three decimals for all other counts, too. In a column of counts
    // such as `1.000` and `200`, the point is therefore a thousands separator.
    else if (this.#isCount && this.#hasPlainDigits) this.#possibleSeparators = [','];
    else {
      const ambiguousNumber = this.#ambiguousNumber;
      const [valueWithPoint, valueWithComma] = (['.', ','] as const).map((separator) =>
        parseDigits(separator, ambiguousNumber),
      );
      throw new Error(
        `${messageStart} ${ambiguousNumber.digits}, which may be ${valueWithPoint} or ${valueWithComma}; write them without thousands separators and import the file again`,
      );
    }
  }

  /**
   * Parses a number of the column.
   * @throws Error that quotes the value if it is not a number of at least 0
   */
  parseValue(sourceValue: unknown, label = this.#columnName): number {
    const number = typeof sourceValue === 'number' ? sourceValue : this.#parseText(String(sourceValue));
    if (number !== undefined && number < 0) throw new Error(`${label}: ${quoteNumber(sourceValue)} is below 0`);
    if (number === undefined || !Number.isFinite(number) || (this.#isCount && !Number.isInteger(number)))
      throw new Error(
        `${label}: ${quoteNumber(sourceValue)} is not a ${this.#isCount ? 'whole ' : ''}number such as ${this.#isCount ? '1200' : '1200 or 0.5'}`,
      );
    return number;
  }

  #parseText(text: string): number | undefined {
    const trimmedText = text.trim();
    // Return -1 for any negative number. The exact number does not matter, because `parseValue` rejects all negative
    // numbers.
    if (/^(?:[-−–]\s?|\()\p{Sc}?\s?[\d.,]+\)?$/u.test(trimmedText)) return -1;
    if (scientificPattern.test(trimmedText)) return Number(trimmedText.replace(',', '.'));
    const numberText = splitNumberText(trimmedText);
    return numberText && parseDigits(this.#possibleSeparators[0] ?? '.', numberText);
  }
}

/**
 * Quotes a value for an error message. Converts NaN and Infinity to text first, because `JSON.stringify` would turn
 * them into null.
 */
const quoteNumber = (value: unknown): string => quoteValue(typeof value === 'number' ? String(value) : value);

/**
 * Parses a share, i.e. a fraction of a whole. For example, `12.5%` becomes 0.125 and `0.5` stays 0.5. Returns undefined
 * for any other value. Shares always have a decimal point, so the parser does not need to observe the whole column.
 */
export function parseShare(sourceValue: unknown): number | undefined {
  if (typeof sourceValue === 'number') return Number.isFinite(sourceValue) ? sourceValue : undefined;
  const [, numberText, percentSign] =
    /^\s*(\d{1,20}(?:\.\d{0,30})?(?:e-?\d{1,3})?)\s?(%)?\s*$/i.exec(String(sourceValue)) ?? [];
  if (numberText === undefined) return undefined;
  return percentSign ? removeFloatingPointError(Number(numberText) / 100) : Number(numberText);
}
