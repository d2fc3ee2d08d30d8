/** A sign, a string or a word (a number, `true`, `NaN`) of JSON, with its place in the text. */
export interface Token {
  kind: '{' | '}' | '[' | ']' | ',' | ':' | 'string' | 'word' | 'newline' | 'damage';
  start: number;
  end: number;
}

/** No number and no word of JSON is longer. */
const maxWord = 400;

/** Cuts a text that comes in parts into tokens. Strings may have single quotation marks, as in Python. */
export class JsonTokenizer {
  text = '';
  /** The next character to look at, and the number of its line. */
  position = 0;
  line = 1;
  /** How far an unfinished string was looked at. */
  #resumeAt = 0;

  /** Removes the text before a place, and adds the next part. */
  append(part: string, from: number): void {
    this.text = this.text.slice(from) + part;
    this.position -= from;
    this.#resumeAt -= from;
  }

  /** Forgets what was read of an unfinished string. */
  discardUnfinishedString(): void {
    if (this.#resumeAt <= this.position + 1) return;
    this.text = this.text.slice(0, this.position + 1) + this.text.slice(this.#resumeAt);
    this.#resumeAt = this.position + 1;
  }

  seek(place: number, line: number): void {
    this.position = place;
    this.line = line;
    this.#resumeAt = 0;
  }

  /**
   * The next token; undefined where the text ends before it does.
   * @param stopsAtNewline a line break is a token of its own
   * @param isEnd no more text follows
   */
  readToken(stopsAtNewline: boolean, isEnd: boolean): Token | undefined {
    const { text } = this;
    for (; this.position < text.length; this.position++) {
      const code = text.charCodeAt(this.position);
      if (code === 10) {
        this.line++;
        if (stopsAtNewline) return this.#token('newline', ++this.position);
      } else if (code !== 32 && code !== 9 && code !== 13 && code !== 0xfeff) break;
    }
    const sign = text[this.position];
    if (sign === undefined) return undefined;
    if (signs.has(sign)) return this.#token(sign as Token['kind'], this.position + 1);
    return sign === '"' || sign === "'" ? this.#string(sign) : this.#word(isEnd);
  }

  #token(kind: Token['kind'], end: number): Token {
    const token = { kind, start: this.position, end };
    this.position = end;
    this.#resumeAt = 0;
    return token;
  }

  #string(quote: string): Token | undefined {
    const plain = quote === '"' ? untilDouble : untilSingle;
    for (let place = Math.max(this.position + 1, this.#resumeAt); ; ) {
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
    word.lastIndex = this.position;
    word.exec(this.text);
    const end = word.lastIndex;
    if (end - this.position >= maxWord) return this.#token('damage', end);
    return end === this.text.length && !isEnd ? undefined : this.#token('word', end);
  }
}

const signs = new Set(['{', '}', '[', ']', ',', ':']);
const untilDouble = /[^"\\\n]*/y;
const untilSingle = /[^'\\\n]*/y;
const word = /[^\s,:[\]{}"']{1,400}/y;
