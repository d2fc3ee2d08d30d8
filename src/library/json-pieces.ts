import { maxRecordLength, type Piece, tooLong } from './piece.ts';

/** Lists inside of lists that are looked into for records. */
const maxLists = 8;
/** Levels whose kind of bracket is remembered, and characters of a key; deeper records are refused later. */
const [maxLevels, maxKeyLength] = [64, 64];
const listKeys = new Set(['data', 'items']);
const [tab, lineFeed, carriageReturn, space] = [0x09, 0x0a, 0x0d, 0x20];
const [quote, comma, backslash] = [0x22, 0x2c, 0x5c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];
const byteOrderMark = 0xfeff;
const plainText = /[^"\\\n\r]*/y;

/** A list of records. `around` is the object it stands in. */
type List = { name: string; index: number; line: number; around: Value | undefined };

type Value = {
  line: number;
  path: string;
  /** In which column a new record can begin on a line although this one is not closed. */
  column: number;
  /** The lists it stands in, if it begins its line; a record of the same column then continues them. */
  lists: List[];
  /** undefined: it is too long, or an object around a list. */
  text: string | undefined;
  isWord: boolean;
  isAround: boolean;
  /** Whether it has a key of a record, so that a list in it is a part of it. */
  isRecord: boolean;
  depth: number;
  /** By depth, whether the bracket opened a list. */
  isList: boolean[];
  key: string;
};

/**
 * Cuts JSON of any layout into the texts of its records, with no more than one of them in memory: one record on each
 * line, a list, an object with a list in `data` or `items`, one object, several of these one after another. Where a
 * text or a bracket is not closed, reading continues at the next line that begins with a record in the same column.
 */
export class JsonPieces {
  #recordKeys: ReadonlySet<string>;
  #lists: List[] = [];
  #value: Value | undefined;
  /** A value that cannot be read on; what follows is passed over. */
  #broken: Value | undefined;
  #chunk = '';
  #at = 0;
  /** Where the part of the value that is not in `text` yet begins. */
  #from = 0;
  #line = 1;
  /** White space at the start of the line; undefined after it. */
  #indent: number | undefined = 0;
  #isInText = false;
  #isEscaped = false;
  #keyFrom: number | undefined;
  /** The last character outside of texts that is no white space. */
  #last = 0;

  /** `recordKeys` are those by which an object is a record and not an object around a list of records. */
  constructor(recordKeys: ReadonlySet<string>) {
    this.#recordKeys = recordKeys;
  }

  *read(chunk: string): Generator<Piece> {
    this.#chunk = chunk;
    this.#from = 0;
    if (this.#keyFrom !== undefined) this.#keyFrom = 0;
    for (this.#at = 0; this.#at < chunk.length; this.#at++) {
      const piece = this.#isInText ? this.#readText() : this.#readCharacter(chunk.charCodeAt(this.#at));
      if (piece) yield piece;
    }
    if (this.#keyFrom !== undefined) this.#addToKey();
    if (this.#value) this.#addToValue(this.#value, chunk.length);
  }

  *end(): Generator<Piece> {
    this.#chunk = '';
    const [list] = this.#lists;
    const value = this.#value;
    const word = value?.isWord && this.#finish(value, 0);
    if (word) yield word;
    else if (this.#broken) yield this.#notRead(this.#broken, this.#line);
    else if (value) yield { line: value.line, path: value.path, problem: 'not closed; is the file cut off?' };
    else if (list) yield { line: list.line, path: '', problem: 'a list is not closed; is the file cut off?' };
  }

  #readCharacter(code: number): Piece | undefined {
    if (code === lineFeed) return this.#endLine();
    if (code === space || code === tab || code === carriageReturn || code === byteOrderMark) {
      if (this.#indent !== undefined) this.#indent++;
      return;
    }
    const column = this.#indent;
    this.#indent = undefined;
    const open = this.#broken ?? this.#value;
    if (open && column === open.column && this.#beginsAnew(open, code)) {
      this.#lists = open.lists;
      this.#value = this.#broken = undefined;
      this.#readOutside(code, column);
      return this.#notRead(open, this.#line - 1);
    }
    if (this.#broken) return this.#skipLine();
    if (!this.#value) return this.#readOutside(code, column);
    return this.#value.isWord ? this.#readWord(this.#value, code) : this.#readInside(this.#value, code);
  }

  #skipLine(): undefined {
    const end = this.#chunk.indexOf('\n', this.#at);
    this.#at = (end < 0 ? this.#chunk.length : end) - 1;
  }

  #endLine(): Piece | undefined {
    this.#line++;
    this.#indent = 0;
    return this.#value?.isWord ? this.#finish(this.#value, this.#at) : undefined;
  }

  /** Whether a bracket at the start of a line cannot belong to the value before it. */
  #beginsAnew(value: Value, code: number): boolean {
    if (code !== openObject && code !== openList) return false;
    const continues = this.#last === openList || (this.#last === comma && value.isList[value.depth]);
    return value === this.#broken || !continues;
  }

  #notRead({ line, path }: Value, last: number): Piece {
    const lines = last > line ? `; lines ${line} to ${last} were not read` : '';
    return { line, path, problem: `not JSON: a text or a bracket is not closed${lines}` };
  }

  /** Between records. */
  #readOutside(code: number, column: number | undefined): undefined {
    this.#last = code;
    if (code === comma) return;
    if (code === closeList && this.#lists.length > 0) {
      this.#value = this.#lists.pop()?.around;
      return;
    }
    const list = this.#lists.at(-1);
    if (list) list.index++;
    if (code === openList && this.#lists.length < maxLists) {
      this.#lists.push({ name: '', index: -1, line: this.#line, around: undefined });
      return;
    }
    const isWord = code !== openObject;
    this.#isInText = code === quote && this.#lists.length > 0;
    this.#from = this.#at;
    this.#value = {
      line: this.#line,
      path: this.#lists
        .map(({ name, index }) => `${name && `.${name}`}[${index}]`)
        .join('')
        .replace(/^\./, ''),
      column: column ?? 0,
      lists: column === undefined ? [] : [...this.#lists],
      text: '',
      isWord,
      isAround: false,
      isRecord: false,
      depth: 1,
      isList: [],
      key: '',
    };
  }

  /** Anything but an object in the place of a record: it ends with its line, or where the next record of a list begins. */
  #readWord(value: Value, code: number): Piece | undefined {
    if (this.#lists.length === 0) return this.#skipLine();
    if (code === quote) this.#isInText = true;
    if (code !== comma && code !== closeList && code !== closeObject) return;
    const piece = this.#finish(value, this.#at);
    if (code !== closeObject) this.#readOutside(code, undefined);
    return piece;
  }

  #readInside(value: Value, code: number): Piece | undefined {
    if (code === quote) {
      this.#isInText = true;
      this.#keyFrom =
        value.depth === 1 && (this.#last === openObject || this.#last === comma) ? this.#at + 1 : undefined;
      if (this.#keyFrom !== undefined) value.key = '';
    }
    this.#last = code;
    if (code === openList && value.depth === 1 && !value.isRecord && listKeys.has(value.key)) {
      value.isAround = true;
      value.text = undefined;
      this.#lists.push({ name: value.key, index: -1, line: this.#line, around: value });
      this.#value = undefined;
    } else if (code === openList || code === openObject) {
      value.depth++;
      if (value.depth <= maxLevels) value.isList[value.depth] = code === openList;
    } else if (code === closeList || code === closeObject) {
      value.depth--;
      if (value.depth === 0) return this.#finish(value, this.#at + 1);
    }
  }

  #readText(): Piece | undefined {
    if (this.#isEscaped) {
      this.#isEscaped = false;
      if (this.#chunk.charCodeAt(this.#at) !== lineFeed) return;
    }
    plainText.lastIndex = this.#at;
    plainText.test(this.#chunk);
    this.#at = plainText.lastIndex;
    const code = this.#chunk.charCodeAt(this.#at);
    if (Number.isNaN(code)) return;
    if (code === backslash) {
      this.#isEscaped = true;
      return;
    }
    this.#isInText = false;
    if (code === quote) return this.#endText();
    this.#keyFrom = undefined;
    if (!this.#value?.isWord) {
      this.#broken = this.#value;
      this.#value = undefined;
    }
    return code === lineFeed ? this.#endLine() : undefined;
  }

  #endText(): undefined {
    this.#last = quote;
    if (this.#keyFrom === undefined || !this.#value) return;
    this.#addToKey();
    this.#keyFrom = undefined;
    if (this.#recordKeys.has(this.#value.key)) this.#value.isRecord = true;
  }

  #addToKey(): void {
    const value = this.#value;
    if (value && value.key.length <= maxKeyLength)
      value.key += this.#chunk.slice(this.#keyFrom, Math.min(this.#at, (this.#keyFrom ?? 0) + maxKeyLength + 1));
  }

  #addToValue(value: Value, end: number): void {
    if (value.text === undefined) return;
    value.text += this.#chunk.slice(this.#from, end);
    if (value.text.length > maxRecordLength) value.text = undefined;
  }

  #finish(value: Value, end: number): Piece | undefined {
    this.#addToValue(value, end);
    this.#value = undefined;
    const { line, path, text, isAround } = value;
    if (isAround) return;
    return text === undefined ? { line, path, problem: tooLong } : { line, path, text: text.trim() };
  }
}
