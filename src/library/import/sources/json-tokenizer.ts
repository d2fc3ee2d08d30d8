/** A JSON token with its position in the text: a punctuation character, a string, or a word. */
export interface JsonToken {
  /** A `word` is a number, a constant such as `true`, or a Python constant such as `NaN`. */
  kind: '{' | '}' | '[' | ']' | ',' | ':' | 'string' | 'word' | 'newline' | 'damage';
  startIndex: number;
  endIndex: number;
}

/** The maximum length of a number or a constant, in characters. A longer word means that the text is not JSON. */
const maxWordLength = 400;

/** Splits a text that arrives in chunks into tokens. Strings may have single quotation marks, as in Python. */
export class JsonTokenizer {
  text = '';
  /** The index in `text` of the next character to read. */
  position = 0;
  /** The line number of the next character. */
  line = 1;
  /**
   * While a string is incomplete, the index where its scan continues when more text arrives. Otherwise it is 0 or
   * negative.
   */
  #resumeIndex = 0;

  /**
   * Appends a chunk of text, and removes text that is no longer needed.
   * @param firstKeptIndex the index of the first character to keep
   */
  appendText(chunk: string, firstKeptIndex: number): void {
    this.text = this.text.slice(firstKeptIndex) + chunk;
    this.position -= firstKeptIndex;
    this.#resumeIndex -= firstKeptIndex;
  }

  /**
   * Removes the scanned part of an incomplete string from `text`, so that a very long string does not fill the memory.
   */
  discardUnfinishedString(): void {
    if (this.#resumeIndex <= this.position + 1) return;
    this.text = this.text.slice(0, this.position + 1) + this.text.slice(this.#resumeIndex);
    this.#resumeIndex = this.position + 1;
  }

  /** Moves to another position in the text, e.g. back to the start of a value to read it again. */
  seek(position: number, line: number): void {
    this.position = position;
    this.line = line;
    this.#resumeIndex = 0;
  }

  /**
   * Reads the next token. Returns undefined if the text ends before the token does.
   * @param stopsAtNewline true to return line breaks as tokens
   * @param isEndOfText true if no more text follows
   */
  readToken(stopsAtNewline: boolean, isEndOfText: boolean): JsonToken | undefined {
    const { text } = this;
    for (; this.position < text.length; this.position++) {
      const characterCode = text.charCodeAt(this.position);
      if (characterCode === 10) {
        this.line++;
        if (stopsAtNewline) return this.#endToken('newline', ++this.position);
      } else if (characterCode !== 32 && characterCode !== 9 && characterCode !== 13 && !isUnusualSpace(characterCode))
        break;
    }
    const character = text[this.position];
    if (character === undefined) return undefined;
    if (punctuation.has(character)) return this.#endToken(character as JsonToken['kind'], this.position + 1);
    return character === '"' || character === "'" ? this.#readString(character) : this.#readWord(isEndOfText);
  }

  #endToken(kind: JsonToken['kind'], endIndex: number): JsonToken {
    const token = { kind, startIndex: this.position, endIndex };
    this.position = endIndex;
    this.#resumeIndex = 0;
    return token;
  }

  #readString(quote: string): JsonToken | undefined {
    const untilQuotePattern = quote === '"' ? untilDoubleQuotePattern : untilSingleQuotePattern;
    for (let index = Math.max(this.position + 1, this.#resumeIndex); ; ) {
      untilQuotePattern.lastIndex = index;
      untilQuotePattern.exec(this.text);
      index = untilQuotePattern.lastIndex;
      const character = this.text[index];
      if (character === quote) return this.#endToken('string', index + 1);
      // A JSON string cannot contain a line break, so the rest of this line is missing.
      if (character === '\n' || (character === '\\' && this.text[index + 1] === '\n'))
        return this.#endToken('damage', index);
      if (character === undefined || index + 1 >= this.text.length) {
        this.#resumeIndex = index;
        return undefined;
      }
      index += 2;
    }
  }

  #readWord(isEndOfText: boolean): JsonToken | undefined {
    wordPattern.lastIndex = this.position;
    wordPattern.exec(this.text);
    const end = wordPattern.lastIndex;
    if (end - this.position >= maxWordLength) return this.#endToken('damage', end);
    return end === this.text.length && !isEndOfText ? undefined : this.#endToken('word', end);
  }
}

/**
 * Returns true for spaces that JSON does not allow between tokens, e.g. a form feed or a non-breaking space. Editors
 * and copied web pages insert them. All of them must be skipped, because a word also ends at each of them.
 */
const isUnusualSpace = (characterCode: number): boolean =>
  (characterCode === 11 || characterCode === 12 || characterCode > 127) &&
  unusualSpacePattern.test(String.fromCharCode(characterCode));
const unusualSpacePattern = /\s/;
const punctuation = new Set(['{', '}', '[', ']', ',', ':']);
const untilDoubleQuotePattern = /[^"\\\n]*/y;
const untilSingleQuotePattern = /[^'\\\n]*/y;
const wordPattern = /[^\s,:[\]{}"']{1,400}/y;
