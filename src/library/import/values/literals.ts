/**
 * Parses lists and objects that a program wrote in the notation of its own language: JSON, the `repr` of Python (`None`,
 * `True`, single quotes, tuples, sets, `datetime.date(2024, 1, 2)`), the lists of numpy (`['a' 'b']`) and of PostgreSQL
 * (`{a,b}`).
 */

export interface LiteralOptions {
  /** Accepts words without quotation marks as texts, and blanks between the items of a list: `[facebook instagram]`. */
  allowsBareWords?: boolean;
}

/** Deeper than any record that an import accepts. */
const maxDepth = 70;

/** The value of the whole text, or undefined where the text is no literal. `None` and `NaN` are null. */
export function parseLiteral(text: string, { allowsBareWords: words = false }: LiteralOptions = {}): unknown {
  const parser = new LiteralParser(text, words);
  try {
    return parser.parse();
  } catch (error) {
    if (error instanceof NoLiteral) return undefined;
    throw error;
  }
}

/** A list or an object from a text that begins with a bracket: JSON, or else a literal of another language. */
export function parseBracketed(text: string, options: LiteralOptions = {}): unknown {
  if (!/^\s*[{[(]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return parseLiteral(text, options);
  }
}

class NoLiteral extends Error {}

const constants = new Map<string, unknown>(
  Object.entries({
    ...{ true: true, True: true, TRUE: true, false: false, False: false, FALSE: false },
    ...{ null: null, None: null, NULL: null, NaN: null, nan: null, NaT: null, NA: null, undefined: null },
    ...{ Infinity: null, inf: null },
  }),
);

const escapes: Record<string, string> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', v: '\v', a: '\x07', '0': '\0' };

class LiteralParser {
  readonly #text: string;
  readonly #words: boolean;
  #at = 0;

  constructor(text: string, words: boolean) {
    this.#text = text;
    this.#words = words;
  }

  parse(): unknown {
    const value = this.#value(0);
    this.#skipSpace();
    if (this.#at < this.#text.length) throw new NoLiteral();
    return value;
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match) this.#at = pattern.lastIndex;
    return match;
  }

  #skipSpace(): void {
    this.#match(space);
  }

  /** Moves past a sign, if the sign comes next. */
  #take(sign: string): boolean {
    this.#skipSpace();
    if (this.#text[this.#at] !== sign) return false;
    this.#at++;
    return true;
  }

  #value(depth: number): unknown {
    if (depth > maxDepth) throw new NoLiteral();
    if (this.#take('[')) return this.#items(']', depth);
    if (this.#take('(')) return this.#items(')', depth);
    if (this.#take('{')) return this.#objectOrSet(depth);
    const quote = this.#match(openingQuote)?.[1];
    if (quote !== undefined) return this.#quoted(quote);
    const [number] = this.#match(numberPattern) ?? [];
    // An integer that a number cannot hold, such as a long id, stays a text.
    if (number !== undefined) {
      const value = Number(number.replaceAll('_', ''));
      return /^-?\d+$/.test(number) && !Number.isSafeInteger(value) ? number : value;
    }
    const [name] = this.#match(namePattern) ?? [];
    if (name !== undefined && this.#take('(')) return this.#call(name, depth);
    if (name !== undefined && constants.has(name)) return constants.get(name);
    if (!this.#words) throw new NoLiteral();
    const [rest = ''] = this.#match(wordPattern) ?? [];
    const word = `${name ?? ''}${rest}`.trim();
    if (word === '') throw new NoLiteral();
    return word;
  }

  #items(end: string, depth: number, items: unknown[] = []): unknown[] {
    while (!this.#take(end)) {
      // A name before `=` is an argument of a call, such as `dtype=object`.
      if (this.#match(argumentName) && this.#value(depth + 1) !== undefined) {
        this.#take(',');
        continue;
      }
      items.push(this.#value(depth + 1));
      if (this.#take(',') || this.#text[this.#at] === end) continue;
      if (!this.#words) throw new NoLiteral();
    }
    return items;
  }

  #objectOrSet(depth: number): unknown {
    const entries: [string, unknown][] = [];
    while (!this.#take('}')) {
      const name = this.#match(keyName)?.[1];
      const key = name ?? this.#value(depth + 1);
      if (!this.#take(':')) {
        if (entries.length > 0) throw new NoLiteral();
        return this.#take(',') || this.#words ? this.#items('}', depth, [key]) : this.#onlyItem(key);
      }
      entries.push([String(key), this.#value(depth + 1)]);
      if (!this.#take(',') && this.#text[this.#at] !== '}') throw new NoLiteral();
    }
    return Object.fromEntries(entries);
  }

  #onlyItem(item: unknown): unknown[] {
    if (this.#take('}')) return [item];
    throw new NoLiteral();
  }

  /** A call stands for its first argument; one of `datetime` for the date. */
  #call(name: string, depth: number): unknown {
    const given = this.#items(')', depth);
    if (!/^(?:datetime\.)?date(?:time)?$/.test(name))
      return name === 'c' || name === 'list' ? given : (given[0] ?? null);
    const [year, month = 1, day = 1, ...time] = given.filter((one) => typeof one === 'number');
    if (year === undefined) throw new NoLiteral();
    const date = new Date(Date.UTC(year, month - 1, day, ...time.slice(0, 3)));
    if (Number.isNaN(date.getTime())) throw new NoLiteral();
    return date.toISOString();
  }

  #quoted(quote: string): string {
    const plain = quote === '"' ? untilDouble : untilSingle;
    const parts: string[] = [];
    for (;;) {
      parts.push(this.#match(plain)?.[0] ?? '');
      const sign = this.#text[this.#at++];
      if (sign === quote) return parts.join('');
      if (sign !== '\\') throw new NoLiteral();
      parts.push(this.#escaped());
    }
  }

  #escaped(): string {
    const [, byte, four, eight] = this.#match(codePattern) ?? [];
    const code = Number.parseInt(byte ?? four ?? eight ?? '', 16);
    if (code <= 0x10ffff) return String.fromCodePoint(code);
    const sign = this.#text[this.#at++];
    if (sign === undefined) throw new NoLiteral();
    if (sign === '\n') return '';
    // Python keeps a backslash that escapes nothing.
    return escapes[sign] ?? (/[\\'"/]/.test(sign) ? sign : `\\${sign}`);
  }
}

const space = /\s*/y;
const openingQuote = /(?:[rbuf]{1,2}(?=["']))?(["'])/iy;
const untilDouble = /[^"\\]*/y;
const untilSingle = /[^'\\]*/y;
const codePattern = /x([\da-f]{2})|u([\da-f]{4})|U([\da-f]{8})/y;
/** A number ends where no word goes on: `2024-01-05` and `10x` are no numbers. */
const numberPattern = /-?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.:/-])/y;
const namePattern = /[A-Za-z_][\w.]*/y;
const keyName = /([A-Za-z_]\w*)(?=\s*:)/y;
const argumentName = /[a-z_]+=/y;
const wordPattern = /[^\s,[\]{}()"'][^,[\]{}()"'\s]*/y;
