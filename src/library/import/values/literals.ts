/**
 * Parses lists and objects that a program wrote in the notation of its language: JSON, Python's `repr` (`None`, `True`,
 * single quotation marks, tuples, sets, `datetime.date(2024, 1, 2)`), numpy lists (`['a' 'b']`) and PostgreSQL arrays
 * (`{a,b}`).
 */

/** The options for parsing less strict notations than JSON. */
export interface LiteralOptions {
  /** True to accept unquoted words as texts, and spaces between the items of a list, e.g. `[facebook instagram]`. */
  allowsBareWords?: boolean;
}

/**
 * The maximum nesting depth of lists and objects in a literal. Imports reject records with more than 64 levels anyway.
 */
const maxNestingDepth = 70;

/**
 * Parses a text that contains a single value in the notation of JSON or of another language. `None` and `NaN` become
 * null.
 * @returns undefined if the text is not such a value
 */
export function parseLiteral(text: string, { allowsBareWords = false }: LiteralOptions = {}): unknown {
  const parser = new LiteralParser(text, allowsBareWords);
  try {
    return parser.parseWholeText();
  } catch (error) {
    if (error instanceof InvalidLiteralError) return undefined;
    throw error;
  }
}

/**
 * Parses a list or an object in the notation of JSON or of another language.
 * @returns undefined if the text does not start with a bracket or cannot be parsed
 */
export function parseListOrObject(text: string, options: LiteralOptions = {}): unknown {
  if (!/^\s*[{[(]/.test(text)) return undefined;
  try {
    return parseJson(text);
  } catch {
    return parseLiteral(text, options);
  }
}

/**
 * Matches integers in JSON that have at least 16 digits. A JavaScript number may be unable to represent them exactly.
 */
const longIntegerPattern = /(?<=[:[,\s])-?\d{16,}(?=\s?[,\]}\r\n])/g;

/**
 * Parses JSON. An integer becomes a text if a JavaScript number cannot represent it exactly, as for long ids.
 * @throws SyntaxError if the text is not JSON
 */
export function parseJson(json: string): unknown {
  const parsedJson: unknown = JSON.parse(json);
  const hasInexactInteger = json.match(longIntegerPattern)?.some((digits) => String(Number(digits)) !== digits);
  return hasInexactInteger ? (parseLiteral(json) ?? parsedJson) : parsedJson;
}

class InvalidLiteralError extends Error {}

/**
 * The constants of all supported languages, and their JSON values. Numbers that JSON cannot express, such as `NaN`,
 * become null.
 */
const constantByWord = new Map<string, unknown>(
  Object.entries({
    ...{ true: true, True: true, TRUE: true, false: false, False: false, FALSE: false },
    ...{ null: null, None: null, NULL: null, NaN: null, nan: null, NaT: null, NA: null, undefined: null },
    ...{ Infinity: null, inf: null },
  }),
);

const escapedCharacters: Record<string, string> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  v: '\v',
  a: '\x07',
  '0': '\0',
};

const openingBrackets = '[{(';

class LiteralParser {
  readonly #text: string;
  readonly #allowsBareWords: boolean;
  #position = 0;

  constructor(text: string, allowsBareWords: boolean) {
    this.#text = text;
    this.#allowsBareWords = allowsBareWords;
  }

  /**
   * Parses the whole text as one value.
   * @throws InvalidLiteralError if the text is not a single value
   */
  parseWholeText(): unknown {
    const parsedValue = this.#parseValue(0);
    this.#skipWhitespace();
    if (this.#position < this.#text.length) throw new InvalidLiteralError();
    return parsedValue;
  }

  /**
   * Matches a pattern at the current position, and moves the position to the end of the match. The pattern must have
   * the sticky flag `y`.
   */
  #matchPattern(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#position;
    const match = pattern.exec(this.#text);
    if (match) this.#position = pattern.lastIndex;
    return match;
  }

  #skipWhitespace(): void {
    this.#matchPattern(whitespacePattern);
  }

  /** Skips whitespace, and then skips `character` if it comes next. Returns true if `character` was skipped. */
  #skipCharacter(character: string): boolean {
    this.#skipWhitespace();
    if (this.#text[this.#position] !== character) return false;
    this.#position++;
    return true;
  }

  #parseValue(depth: number): unknown {
    if (depth > maxNestingDepth) throw new InvalidLiteralError();
    if (this.#skipCharacter('[')) return this.#parseItems(']', depth);
    if (this.#skipCharacter('(')) return this.#parseItems(')', depth);
    if (this.#skipCharacter('{')) return this.#parseObjectOrSet(depth);
    const quote = this.#matchPattern(openingQuotePattern)?.[1];
    if (quote !== undefined) return this.#parseString(quote);
    const [numberText] = this.#matchPattern(numberPattern) ?? [];
    // If a JavaScript number cannot represent an integer exactly, e.g. a long id, keep the integer as text.
    if (numberText !== undefined) {
      const number = Number(numberText.replaceAll('_', ''));
      return /^-?\d+$/.test(numberText) && !Number.isSafeInteger(number) ? numberText : number;
    }
    if (this.#matchPattern(negativeInfinityPattern)) return null;
    const [identifier] = this.#matchPattern(identifierPattern) ?? [];
    if (identifier !== undefined && this.#skipCharacter('(')) return this.#parseCall(identifier, depth);
    if (identifier !== undefined && constantByWord.has(identifier)) return constantByWord.get(identifier);
    if (!this.#allowsBareWords) throw new InvalidLiteralError();
    const [wordEnd = ''] = this.#matchPattern(bareWordPattern) ?? [];
    const word = `${identifier ?? ''}${wordEnd}`.trim();
    if (word === '') throw new InvalidLiteralError();
    return word;
  }

  /**
   * Parses the items up to a closing bracket.
   * @param items the items that were already parsed, to which the new items are added
   */
  #parseItems(closingBracket: string, depth: number, items: unknown[] = []): unknown[] {
    while (!this.#skipCharacter(closingBracket)) {
      // A name before `=` is a named argument of a function call, e.g. `dtype=object`. Skip its value, because it is
      // not an item.
      if (this.#matchPattern(namedArgumentPattern)) {
        if (!this.#matchPattern(argumentWordPattern)) this.#parseValue(depth + 1);
        this.#skipCharacter(',');
        continue;
      }
      items.push(this.#parseValue(depth + 1));
      if (this.#skipCharacter(',') || this.#text[this.#position] === closingBracket) continue;
      // NumPy writes no commas between the objects of a list, so a missing comma is valid before an opening bracket.
      const isBeforeOpeningBracket = openingBrackets.includes(this.#text[this.#position] ?? ' ');
      if (!this.#allowsBareWords && !isBeforeOpeningBracket) throw new InvalidLiteralError();
    }
    return items;
  }

  #parseObjectOrSet(depth: number): unknown {
    const entries: [string, unknown][] = [];
    while (!this.#skipCharacter('}')) {
      const name = this.#matchPattern(keyNamePattern)?.[1];
      const key = name ?? this.#parseValue(depth + 1);
      if (!this.#skipCharacter(':')) {
        if (entries.length > 0) throw new InvalidLiteralError();
        return this.#skipCharacter(',') || this.#allowsBareWords
          ? this.#parseItems('}', depth, [key])
          : this.#endSetWithOneItem(key);
      }
      entries.push([String(key), this.#parseValue(depth + 1)]);
      if (!this.#skipCharacter(',') && this.#text[this.#position] !== '}') throw new InvalidLiteralError();
    }
    return Object.fromEntries(entries);
  }

  #endSetWithOneItem(item: unknown): unknown[] {
    if (this.#skipCharacter('}')) return [item];
    throw new InvalidLiteralError();
  }

  /**
   * Parses the arguments of a function call. `datetime` and `date` become a date in ISO 8601. `c` (a function of R) and
   * `list` become a list. Any other call becomes its first argument.
   */
  #parseCall(functionName: string, depth: number): unknown {
    const callArguments = this.#parseItems(')', depth);
    if (!/^(?:datetime\.)?date(?:time)?$/.test(functionName))
      return functionName === 'c' || functionName === 'list' ? callArguments : (callArguments[0] ?? null);
    const [year, month = 1, day = 1, ...timeOfDay] = callArguments.filter((argument) => typeof argument === 'number');
    if (year === undefined) throw new InvalidLiteralError();
    const date = new Date(Date.UTC(year, month - 1, day, ...timeOfDay.slice(0, 3)));
    if (Number.isNaN(date.getTime())) throw new InvalidLiteralError();
    return date.toISOString();
  }

  #parseString(quote: string): string {
    const unescapedPattern = quote === '"' ? untilDoubleQuotePattern : untilSingleQuotePattern;
    const stringParts: string[] = [];
    for (;;) {
      stringParts.push(this.#matchPattern(unescapedPattern)?.[0] ?? '');
      const character = this.#text[this.#position++];
      if (character === quote) return stringParts.join('');
      if (character !== '\\') throw new InvalidLiteralError();
      stringParts.push(this.#parseEscape());
    }
  }

  #parseEscape(): string {
    const [, twoDigits, fourDigits, eightDigits] = this.#matchPattern(codePointPattern) ?? [];
    const codePoint = Number.parseInt(twoDigits ?? fourDigits ?? eightDigits ?? '', 16);
    if (codePoint <= 0x10ffff) return String.fromCodePoint(codePoint);
    const character = this.#text[this.#position++];
    if (character === undefined) throw new InvalidLiteralError();
    if (character === '\n') return '';
    // Python keeps the backslash if the escape sequence is unknown.
    return escapedCharacters[character] ?? (/[\\'"/]/.test(character) ? character : `\\${character}`);
  }
}

const whitespacePattern = /\s*/y;
const openingQuotePattern = /(?:[rbuf]{1,2}(?=["']))?(["'])/iy;
const untilDoubleQuotePattern = /[^"\\]*/y;
const untilSingleQuotePattern = /[^'\\]*/y;
const codePointPattern = /x([\da-f]{2})|u([\da-f]{4})|U([\da-f]{8})/y;
/**
 * Matches a number that is not the start of a longer word. For example, `2024-01-05`, `65+` and `10x` are not numbers.
 */
const numberPattern = /-?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.:/+-])/y;
const negativeInfinityPattern = /-(?:Infinity|inf)\b/y;
const identifierPattern = /[A-Za-z_][\w.]*/y;
const keyNamePattern = /([A-Za-z_]\w*)(?=\s*:)/y;
/** Matches an unquoted word as the value of a named argument, e.g. `object` in `dtype=object`. */
const argumentWordPattern = /\s*[A-Za-z_]\w*(?=\s?[,)])/y;
const namedArgumentPattern = /[a-z_]+=/y;
const bareWordPattern = /[^\s,[\]{}()"'][^,[\]{}()"'\s]*/y;
