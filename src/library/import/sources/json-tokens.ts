/** A sign, a string or a word (a number, `true`, `NaN`) of JSON, with its place in the text. */
export interface Token {
  kind: '{' | '}' | '[' | ']' | ',' | ':' | 'string' | 'word' | 'newline' | 'damage';
  start: number;
  end: number;
}

/** No number and no word of JSON is longer. */
const maxWord = 400;

/** Cuts a text that comes in parts into tokens. Strings may have single quotation marks, as in Python. */
export class JsonTokens {
  text = '';
  /** The next character to look at, and the number of its line. */
  at = 0;
  line = 1;
  /** How far an unfinished string was looked at. */
  #resumeAt = 0;

  /** Removes the text before a place, and adds the next part. */
  add(part: string, from: number): void {
    this.text = this.text.slice(from) + part;
    this.at -= from;
    this.#resumeAt -= from;
  }

  /** Forgets what was read of an unfinished string. */
  shorten(): void {
    if (this.#resumeAt <= this.at + 1) return;
    this.text = this.text.slice(0, this.at + 1) + this.text.slice(this.#resumeAt);
    this.#resumeAt = this.at + 1;
  }

  moveTo(place: number, line: number): void {
    this.at = place;
    this.line = line;
    this.#resumeAt = 0;
  }

  /**
   * The next token; undefined where the text ends before it does.
   * @param stopsAtNewline a line break is a token of its own
   * @param isEnd no more text follows
   */
  next(stopsAtNewline: boolean, isEnd: boolean): Token | undefined {
    const { text } = this;
    for (; this.at < text.length; this.at++) {
      const code = text.charCodeAt(this.at);
      if (code === 10) {
        this.line++;
        if (stopsAtNewline) return this.#token('newline', ++this.at);
      } else if (code !== 32 && code !== 9 && code !== 13 && code !== 0xfeff) break;
    }
    const sign = text[this.at];
    if (sign === undefined) return undefined;
    if (signs.has(sign)) return this.#token(sign as Token['kind'], this.at + 1);
    return sign === '"' || sign === "'" ? this.#string(sign) : this.#word(isEnd);
  }

  #token(kind: Token['kind'], end: number): Token {
    const token = { kind, start: this.at, end };
    this.at = end;
    this.#resumeAt = 0;
    return token;
  }

  #string(quote: string): Token | undefined {
    const plain = quote === '"' ? untilDouble : untilSingle;
    for (let place = Math.max(this.at + 1, this.#resumeAt); ; ) {
      plain.lastIndex = place;
      plain.exec(this.text);
      place = plain.lastIndex;
      const sign = this.text[place];
      if (sign === quote) return this.#token('string', place + 1);
      // JSON has no line break in a string: the line is cut off.
      if (sign === '\n' || (sign === '\\' && this.text[place + 1] === '\n')) return this.#token('damage', place);
      if (sign === undefined || place + 1 >= this.text.length) {
        this.#resumeAt = place;
        return undefined;
      }
      place += 2;
    }
  }

  #word(isEnd: boolean): Token | undefined {
    word.lastIndex = this.at;
    word.exec(this.text);
    const end = word.lastIndex;
    if (end - this.at >= maxWord) return this.#token('damage', end);
    return end === this.text.length && !isEnd ? undefined : this.#token('word', end);
  }
}

const signs = new Set(['{', '}', '[', ']', ',', ':']);
const untilDouble = /[^"\\\n]*/y;
const untilSingle = /[^'\\\n]*/y;
const word = /[^\s,:[\]{}"']{1,400}/y;
