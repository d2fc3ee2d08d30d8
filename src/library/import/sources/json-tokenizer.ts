/** A JSON token (a punctuation character, a string or a word), with its position in the text. */
export interface JsonToken {
  /**
   * The kind of token. A `word` is a number, a constant such as `true`, or a Python constant such as `NaN`. `damage` is
   * text that is not JSON, e.g. a string without an end.
   */
  kind: '{' | '}' | '[' | ']' | ',' | ':' | 'string' | 'word' | 'newline' | 'damage';
  startIndex: number;
  endIndex: number;
}

/** The maximum length of a number or constant, in characters. If one of them is longer, the text is not JSON. */
const maxWordChars = 400;

/**
 * Splits JSON text into tokens while the text arrives in chunks. Accepts strings in single quotation marks, as Python
 * writes them.
 */
export class JsonTokenizer {
  text = '';
  /** The index of the next character to read in `text`. */
  position = 0;
  /** The line number of the next character to read. */
  lineNumber = 1;
  /**
   * The index at which reading an incomplete string continues when more text arrives. It is 0 or negative if no string
   * is incomplete.
   */
  #stringResumeIndex = 0;

  /**
   * Appends a chunk of text, and removes the text before `firstKeptIndex`, which is no longer needed.
   * @param firstKeptIndex the index of the first character that stays in `text`
   */
  appendText(chunk: string, firstKeptIndex: number): void {
    this.text = this.text.slice(firstKeptIndex) + chunk;
    this.position -= firstKeptIndex;
    this.#stringResumeIndex -= firstKeptIndex;
  }

  /**
   * Removes the part of an incomplete string that was already read, so that a very long string does not exhaust the
   * memory.
   */
  discardUnfinishedString(): void {
    if (this.#stringResumeIndex <= this.position + 1) return;
    this.text = this.text.slice(0, this.position + 1) + this.text.slice(this.#stringResumeIndex);
    this.#stringResumeIndex = this.position + 1;
  }

  /** Moves to another position in the text, e.g. back to the start of a value in order to read the value again. */
  seek(position: number, lineNumber: number): void {
    this.position = position;
    this.lineNumber = lineNumber;
    this.#stringResumeIndex = 0;
  }

  /**
   * Reads the next token. Returns undefined if the token is incomplete at the end of the text.
   * @param shouldReturnNewlines true to return line breaks as tokens, false to skip them
   * @param isEndOfText true if no more text follows
   */
  readToken(shouldReturnNewlines: boolean, isEndOfText: boolean): JsonToken | undefined {
    const { text } = this;
    for (; this.position < text.length; this.position++) {
      const characterCode = text.charCodeAt(this.position);
      if (characterCode === 10) {
        this.lineNumber++;
        if (shouldReturnNewlines) return this.#endToken('newline', ++this.position);
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
    this.#stringResumeIndex = 0;
    return token;
  }

  #readString(quote: string): JsonToken | undefined {
    const untilQuotePattern = quote === '"' ? untilDoubleQuotePattern : untilSingleQuotePattern;
    for (let index = Math.max(this.position + 1, this.#stringResumeIndex); ; ) {
      untilQuotePattern.lastIndex = index;
      untilQuotePattern.exec(this.text);
      index = untilQuotePattern.lastIndex;
      const character = this.text[index];
      if (character === quote) return this.#endToken('string', index + 1);
      // JSON strings cannot contain a line break. The end of this string is therefore missing, so the text is damaged.
      if (character === '\n' || (character === '\\' && this.text[index + 1] === '\n'))
        return this.#endToken('damage', index);
      if (character === undefined || index + 1 >= this.text.length) {
        this.#stringResumeIndex = index;
        return undefined;
      }
      index += 2;
    }
  }

  #readWord(isEndOfText: boolean): JsonToken | undefined {
    wordPattern.lastIndex = this.position;
    wordPattern.exec(this.text);
    const endIndex = wordPattern.lastIndex;
    if (endIndex - this.position >= maxWordChars) return this.#endToken('damage', endIndex);
    return endIndex === this.text.length && !isEndOfText ? undefined : this.#endToken('word', endIndex);
  }
}

/**
 * Returns true for spaces that JSON does not allow between tokens, e.g. a form feed or a non-breaking space. Editors
 * and copied web pages insert such spaces. The tokenizer must skip them, because no token can start with a space.
 */
const isUnusualSpace = (characterCode: number): boolean =>
  (characterCode === 11 || characterCode === 12 || characterCode > 127) &&
  unusualSpacePattern.test(String.fromCharCode(characterCode));
const unusualSpacePattern = /\s/;
const punctuation = new Set(['{', '}', '[', ']', ',', ':']);
const untilDoubleQuotePattern = /[^"\\\n]*/y;
const untilSingleQuotePattern = /[^'\\\n]*/y;
const wordPattern = /[^\s,:[\]{}"']{1,400}/y;
