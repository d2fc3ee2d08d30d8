import { quoteValue } from '../../service/request.ts';

/**
 * Numbers as people and programs write them. Which of `.` and `,` is the decimal sign is decided by all values of a
 * column: `1.234` alone may be 1234 or 1.234, but not beside `12,50`.
 */

type DecimalSign = '.' | ',';

export interface NumberOptions {
  /** The column counts something, so that its numbers have no fraction. */
  isCount?: boolean;
}

interface WrittenNumber {
  /** Digits and separators alone. */
  digits: string;
  factor: number;
}

/** A currency as a sign or as letters, such as `€`, `US$`, `EUR`, `kr`. */
const currency = '(?:[A-Za-z]{0,3}\\p{Sc}|[A-Z]{3}|kr\\.?|zł|Rs\\.?|Kč|Ft|lei)';
const suffix = '[kKmMbB]|[mb]n|[Mm]io\\.?|[Tt]sd\\.?';
const written = new RegExp(
  `^(?:${currency}\\s?)?(\\d[\\d.,'’\\u00b4_\\s]{0,60}|[.,]\\d{1,30})(${suffix})?(?:\\s?${currency})?$`,
  'u',
);
const factors: Record<string, number> = { k: 1e3, tsd: 1e3, m: 1e6, mn: 1e6, mio: 1e6, b: 1e9, bn: 1e9 };
const scientific = /^\d(?:[.,]\d{1,20})?e[+-]?\d{1,2}$/i;

function readWritten(text: string): WrittenNumber | undefined {
  const trimmed = text.trim().replace(/^\+(?=\d)/, '');
  if (trimmed.length > 80) return undefined;
  const [, digits, suffix] = written.exec(trimmed) ?? [];
  if (digits === undefined) return undefined;
  const factor = suffix === undefined ? 1 : factors[suffix.toLowerCase().replace('.', '')];
  return { digits: digits.trim(), factor: factor ?? 1 };
}

const grouped: Record<DecimalSign, RegExp> = {
  // Groups of three digits, or of two before the last three as in India.
  '.': /^(?:\d{1,3}(?:([,'’\u00b4_]|\s)\d{3})(?:\1\d{3})*|\d{1,2}(?:,\d{2})+,\d{3})(?:\.\d*)?$/u,
  ',': /^(?:\d{1,3}(?:([.'’\u00b4_]|\s)\d{3})(?:\1\d{3})*)(?:,\d*)?$/u,
};
const plain: Record<DecimalSign, RegExp> = { '.': /^\d*(?:\.\d*)?$/, ',': /^\d*(?:,\d*)?$/ };

/** The number, if the text is one with this decimal sign. */
function valueWith(sign: DecimalSign, { digits, factor }: WrittenNumber): number | undefined {
  // `0.123` and `0,123` cannot have groups.
  if (!plain[sign].test(digits) && (!grouped[sign].test(digits) || /^0[.,]/.test(digits))) return undefined;
  const normal = digits.replace(sign === '.' ? /[^\d.]/g : /[^\d,]/g, '').replace(',', '.');
  const value = Number(normal) * factor;
  return Number.isFinite(value) ? cleaned(value) : undefined;
}

/** 1.1 million is 1100000 and not 1100000.0000000002. */
const cleaned = (value: number): number => Number(value.toPrecision(15));

/** The numbers of one column. First `observe` each of its values, then `decide`, then `read` each. */
export class NumberColumn {
  readonly #name: string;
  readonly #whole: boolean;
  #signs: DecimalSign[] = ['.', ','];
  /** The first value that each of the two signs reads as another number. */
  #ambiguous: WrittenNumber | undefined;
  /** The value that ruled out the first of the two signs. */
  #decisive: string | undefined;
  #contradiction: string | undefined;
  #hasPoint = false;

  constructor(name: string, { isCount: whole = false }: NumberOptions = {}) {
    this.#name = name;
    this.#whole = whole;
  }

  observe(text: string): void {
    const number = readWritten(text);
    if (number === undefined || scientific.test(text.trim())) return;
    const readings = new Map(
      (['.', ','] as const).flatMap((sign) => {
        const value = valueWith(sign, number);
        return value === undefined || (this.#whole && !Number.isInteger(value)) ? [] : [[sign, value] as const];
      }),
    );
    if (readings.size === 0) return;
    if (readings.size === 2 && readings.get('.') !== readings.get(',')) {
      this.#ambiguous ??= number;
      if (number.digits.includes('.')) this.#hasPoint = true;
    }
    const remaining = this.#signs.filter((sign) => readings.has(sign));
    if (remaining.length === 0) this.#contradiction ??= text.trim();
    else if (remaining.length < this.#signs.length) this.#decisive ??= text.trim();
    if (remaining.length > 0) this.#signs = remaining;
  }

  /** @throws Error with both readings, where the values do not tell which sign is the decimal sign */
  decide(): void {
    const start = `the column ${quoteValue(this.#name)} has numbers such as`;
    if (this.#contradiction !== undefined)
      throw new Error(
        `${start} ${this.#decisive} and ${this.#contradiction}, which cannot have the same decimal sign; write them without separators of thousands and import the file again`,
      );
    if (this.#signs.length < 2 || this.#ambiguous === undefined) return;
    // No program writes a comma before three decimals, and a person who writes an amount of money has two of them.
    if (!this.#hasPoint) this.#signs = ['.'];
    else {
      const [point, comma] = (['.', ','] as const).map((sign) => valueWith(sign, this.#ambiguous as WrittenNumber));
      throw new Error(
        `${start} ${this.#ambiguous.digits}, which may be ${point} or ${comma}; write them without separators of thousands and import the file again`,
      );
    }
  }

  /** @throws Error that names the value, where it is no number from 0 */
  parse(value: unknown, label = this.#name): number {
    const number = typeof value === 'number' ? value : this.#readText(String(value));
    if (number !== undefined && number < 0) throw new Error(`${label}: ${shown(value)} is below 0`);
    if (number === undefined || !Number.isFinite(number) || (this.#whole && !Number.isInteger(number)))
      throw new Error(
        `${label}: ${shown(value)} is no ${this.#whole ? 'whole ' : ''}number such as ${this.#whole ? '1200' : '1200 or 0.5'}`,
      );
    return number;
  }

  #readText(text: string): number | undefined {
    const trimmed = text.trim();
    if (/^(?:[-−–]\s?|\()\p{Sc}?\s?[\d.,]+\)?$/u.test(trimmed)) return -1;
    if (scientific.test(trimmed)) return Number(trimmed.replace(',', '.'));
    const number = readWritten(trimmed);
    return number && valueWith(this.#signs[0] ?? '.', number);
  }
}

const shown = (value: unknown): string => quoteValue(typeof value === 'number' ? String(value) : value);

/** `12.5%` as 0.125 and `0.5` as 0.5; undefined for anything else. For shares, which are always written with a point. */
export function parseShare(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  const [, number, percent] = /^\s*(\d{1,20}(?:\.\d{0,30})?(?:e-?\d{1,3})?)\s?(%)?\s*$/i.exec(String(value)) ?? [];
  if (number === undefined) return undefined;
  return percent ? cleaned(Number(number) / 100) : Number(number);
}
