/** A token of JSON with its place in the text: a punctuation character, a string, or a word. */
export interface Token {
  /** A `word` is a number, a constant such as `true`, or a notation of Python such as `NaN`. */
  kind: '{' | '}' | '[' | ']' | ',' | ':' | 'string' | 'word' | 'newline' | 'damage';
  start: number;
  end: number;
}

/** The largest length of a word. No number and no constant is longer. */
const maxWordLength = 400;

/** Splits a text that arrives in chunks into tokens. Strings may have single quotation marks, as in Python. */
export class JsonTokenizer {
  text = '';
  /** The index of the next character to read. */
  position = 0;
  /** The number of the line of the next character. */
  line = 1;
  /** The index up to which an unfinished string was read. */
  #resumeAt = 0;

  /**
   * Appends a chunk of text, and removes the text that is not needed any more.
   * @param keepFrom the index of the first character to keep
   */
  append(chunk: string, keepFrom: number): void {
    this.text = this.text.slice(keepFrom) + chunk;
    this.position -= keepFrom;
    this.#resumeAt -= keepFrom;
  }

  /** Removes the part of an unfinished string that was already read, to free its memory. */
  discardUnfinishedString(): void {
    if (this.#resumeAt <= this.position + 1) return;
    this.text = this.text.slice(0, this.position + 1) + this.text.slice(this.#resumeAt);
    this.#resumeAt = this.position + 1;
  }

  /** Continues at another place in the text. */
  seek(position: number, line: number): void {
    this.position = position;
    this.line = line;
    this.#resumeAt = 0;
  }

  /**
   * Reads the next token. Returns undefined if the text ends before the token ends.
   * @param stopsAtNewline whether a line break is returned as a token
   * @param isEnd whether no more text follows
   */
  readToken(stopsAtNewline: boolean, isEnd: boolean): Token | undefined {
    const { text } = this;
    for (; this.position < text.length; this.position++) {
      const code = text.charCodeAt(this.position);
      if (code === 10) {
        this.line++;
        if (stopsAtNewline) return this.#endToken('newline', ++this.position);
      } else if (code !== 32 && code !== 9 && code !== 13 && !isUnusualSpace(code)) break;
    }
    const character = text[this.position];
    if (character === undefined) return undefined;
    if (punctuation.has(character)) return this.#endToken(character as Token['kind'], this.position + 1);
    return character === '"' || character === "'" ? this.#readString(character) : this.#readWord(isEnd);
  }

  #endToken(kind: Token['kind'], end: number): Token {
    const token = { kind, start: this.position, end };
    this.position = end;
    this.#resumeAt = 0;
    return token;
  }

  #readString(quote: string): Token | undefined {
    const untilQuotePattern = quote === '"' ? untilDoubleQuotePattern : untilSingleQuotePattern;
    for (let index = Math.max(this.position + 1, this.#resumeAt); ; ) {
      untilQuotePattern.lastIndex = index;
      untilQuotePattern.exec(this.text);
      index = untilQuotePattern.lastIndex;
      const character = this.text[index];
      if (character === quote) return this.#endToken('string', index + 1);
      // A string of JSON cannot contain a line break, so this line was cut off.
      if (character === '\n' || (character === '\\' && this.text[index + 1] === '\n'))
        return this.#endToken('damage', index);
      if (character === undefined || index + 1 >= this.text.length) {
        this.#resumeAt = index;
        return undefined;
      }
      index += 2;
    }
  }

  #readWord(isEnd: boolean): Token | undefined {
    wordPattern.lastIndex = this.position;
    wordPattern.exec(this.text);
    const end = wordPattern.lastIndex;
    if (end - this.position >= maxWordLength) return this.#endToken('damage', end);
    return end === this.text.length && !isEnd ? undefined : this.#endToken('word', end);
  }
}

/**
 * Returns true for spaces that JSON does not allow between tokens, such as a form feed or a no-break space. Editors and
 * copies of web pages insert them. A word ends at each of them, so the reader must skip them all.
 */
const isUnusualSpace = (code: number): boolean =>
  (code === 11 || code === 12 || code > 127) && unusualSpacePattern.test(String.fromCharCode(code));
const unusualSpacePattern = /\s/;
const punctuation = new Set(['{', '}', '[', ']', ',', ':']);
const untilDoubleQuotePattern = /[^"\\\n]*/y;
const untilSingleQuotePattern = /[^'\\\n]*/y;
const wordPattern = /[^\s,:[\]{}"']{1,400}/y;
