import { isObject } from '../../../views/view.ts';
import { quoteValue } from '../../service/request.ts';
import { DateColumn } from './dates.ts';
import { parseBracketed, parseLiteral } from './literals.ts';
import { NumberColumn, type NumberOptions } from './numbers.ts';

/** Texts that stand for a missing value: R writes `NA`, Python `None` and `nan`, databases `NULL` and `\N`. */
const missing = /^(?:NA|N\/A|n\/a|NULL|null|None|nan|NaN|NaT|<NA>|#N\/A|\\N|-|–|—)?$/;

export const isMissing = (value: unknown): boolean =>
  value === null || value === undefined || (typeof value === 'string' && missing.test(value.trim()));

export interface NumberRange {
  min?: number | undefined;
  max?: number | undefined;
}

export type ColumnNumberOptions = NumberOptions & { label?: string };

/**
 * Reads the values of records, and decides for each column (a key of JSON or a column of a table) how its numbers and
 * dates are written. Every record is read twice: before `decide`, values are only observed and all are undefined.
 *
 * A method returns undefined for a missing value, and throws an error that names the column and the value where it
 * cannot be understood.
 */
export class ColumnValueParser {
  readonly now: number;
  /** Values of the current record that could not be understood and did not cost the record. */
  readonly valueErrors: Error[] = [];
  /** Keys of the current record that no field is made from. */
  readonly unusedKeys: string[] = [];
  readonly #dates = new Map<string, DateColumn>();
  readonly #numbers = new Map<string, NumberColumn>();
  isDecided = false;

  constructor(now: number) {
    this.now = now;
  }

  /** @throws Error with both readings, where the values of a column allow more than one */
  decideNotations(): void {
    for (const column of [...this.#dates.values(), ...this.#numbers.values()]) column.decide();
    this.isDecided = true;
  }

  addValueError(error: unknown): void {
    this.valueErrors.push(error as Error);
  }

  /** @param label what messages about one value call it; messages about the column name the column */
  parseDate(name: string, value: unknown, label = name): string | undefined {
    if (isMissing(value)) return undefined;
    const column = this.#dates.get(name) ?? new DateColumn(name, this.now);
    this.#dates.set(name, column);
    if (this.isDecided) return column.parse(value, label);
    column.observe(value);
    return undefined;
  }

  parseNumber(
    name: string,
    value: unknown,
    { label = name, ...options }: ColumnNumberOptions = {},
  ): number | undefined {
    if (isMissing(value)) return undefined;
    const column = this.#numbers.get(name) ?? new NumberColumn(name, options);
    this.#numbers.set(name, column);
    if (this.isDecided) return column.parse(value, label);
    if (typeof value === 'string') column.observe(value);
    return undefined;
  }

  /** A number stands for both bounds; `>1M` has only a lower one and `<100` only an upper one. */
  parseRange(name: string, value: unknown, options: ColumnNumberOptions = {}): NumberRange | undefined {
    if (isMissing(value)) return undefined;
    const read = (bound: unknown) => this.parseNumber(name, bound, options);
    const parsed = typeof value === 'string' ? parseBracketed(value) : value;
    if (isObject(parsed)) return this.#boundsOf(name, parsed, read);
    const text = String(value).trim();
    const [, lower] = lowerBound.exec(text) ?? [];
    const [, upper] = upperBound.exec(text) ?? [];
    if (lower !== undefined || upper !== undefined) return { min: read(lower), max: read(upper) };
    const [, from, to] = betweenBounds.exec(text) ?? [];
    if (from !== undefined) return { min: read(from), max: read(to) };
    const [, above, below] = openBound.exec(text) ?? [];
    if (above !== undefined) return { min: read(above) };
    if (below !== undefined) return { max: read(below) };
    const exact = read(value);
    return exact === undefined ? undefined : { min: exact, max: exact };
  }

  #boundsOf(name: string, bounds: object, read: (bound: unknown) => number | undefined): NumberRange | undefined {
    const find = (pattern: RegExp) => Object.entries(bounds).find(([key]) => pattern.test(key))?.[1];
    const [lower, upper] = [find(/^(?:lower|min)/i), find(/^(?:upper|max)/i)];
    if (isMissing(lower) && isMissing(upper)) {
      if (Object.keys(bounds).length === 0) return undefined;
      throw new Error(`${name}: ${quoteValue(bounds)} is no range such as {"lower_bound": 100, "upper_bound": 199}`);
    }
    return { min: read(lower), max: read(upper) };
  }

  parseBoolean(name: string, value: unknown): boolean | undefined {
    if (typeof value === 'boolean') return value;
    if (isMissing(value)) return undefined;
    const word = String(value).trim().toLowerCase();
    if (yes.has(word)) return true;
    if (no.has(word)) return false;
    throw new Error(`${name}: ${quoteValue(value)} is neither true nor false`);
  }

  /** Names such as platforms or languages: a list, the text of a list, or names with a sign between them. */
  names(name: string, value: unknown): string[] | undefined {
    if (isMissing(value)) return undefined;
    const parsed = typeof value === 'string' ? listOfWords(value) : value;
    const list = isObject(parsed) ? Object.values(parsed) : [parsed].flat();
    const names = list.flatMap((one) => (typeof one === 'string' ? one.split(/[,;|]/) : (one ?? [])));
    if (!names.every((one) => typeof one === 'string' || typeof one === 'number'))
      throw new Error(`${name}: ${quoteValue(value)} is no list of names such as ["facebook", "instagram"]`);
    const found = names.flatMap((one) => String(one).trim() || []);
    return found.length > 0 ? found : undefined;
  }

  /** Versions of a text: a list, the text of a list of texts, or one text, which may itself have brackets and commas. */
  texts(value: unknown): string[] | undefined {
    if (isMissing(value)) return undefined;
    const parsed = typeof value === 'string' ? (parseBracketed(value) ?? parseNumpyTexts(value)) : value;
    const list = isTexts(parsed) ? parsed : [value].flat();
    const texts = list.flatMap((one) => (typeof one === 'string' || typeof one === 'number' ? String(one) : []));
    return texts.some((one) => one !== '') ? texts : undefined;
  }

  /** One text or number as a text. */
  text(value: unknown): string | undefined {
    if (typeof value === 'number') return String(value);
    return typeof value === 'string' && !isMissing(value) ? value : undefined;
  }

  /** A list or an object, which may be written as a text in JSON or Python. Some lists of objects lack their brackets. */
  parseStructure(value: unknown): unknown {
    if (typeof value !== 'string') return value;
    return parseBracketed(value) ?? (/^\s*\{/.test(value) ? parseBracketed(`[${value}]`) : undefined);
  }
}

const isTexts = (value: unknown): value is (string | null)[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string' || one === null);

/** `['One text' 'Another text']`: numpy writes no commas. A text that happens to have brackets has no quotes inside. */
const parseNumpyTexts = (text: string): unknown =>
  /^\s*\[\s*["']/.test(text) ? parseLiteral(text, { allowsBareWords: true }) : undefined;

function listOfWords(text: string): unknown {
  return parseBracketed(text, { allowsBareWords: true }) ?? text.replace(/^\s*[[({]|[\])}]\s*$/g, '');
}

const lowerBound = /lower_?bound\W{1,5}([\d.]+)/i;
const upperBound = /upper_?bound\W{1,5}([\d.]+)/i;
/** `€1K - €1.5K`, `100–199`, `100 to 199`. */
const betweenBounds = /^([^\s–—-][^–—-]{0,40}?)\s?(?:[-–—]|to)\s?([^\s–—-][^–—-]{0,40})$/;
const openBound = /^(?:(?:>|≥|>=|over|more than)\s?(.{1,40})|(?:<|≤|<=|under|less than)\s?(.{1,40}))$/;

const yes = new Set([
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
const no = new Set(['false', 'no', 'n', 'f', '0', '0.0', 'inactive', 'falsch', 'nein', 'faux', 'non', 'falso', 'não']);
