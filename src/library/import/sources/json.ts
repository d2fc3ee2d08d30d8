import { isObject } from '../../../views/view.ts';
import { isRecordKey } from '../formats/formats.ts';
import { parseLiteral } from '../values/literals.ts';
import { hasInvalidBytes, notUtf8Problem } from './decode-text.ts';
import { findRecords, joinPath, maxWrapperDepth, recordListKeys } from './find-records.ts';
import { JsonTokenizer, type Token } from './json-tokenizer.ts';
import { maxRecordLength, type SourceEntry, tooLongProblem } from './source-entry.ts';

/**
 * Reads JSON of any layout: one value on each line, values one after another, or one document of any length.
 *
 * The reader cuts the text into units, and has one unit in memory. At first, a unit is a whole value of the top level. A
 * unit that is too long or damaged is opened: its items become the units. So a list of records may be of any length, and
 * damage costs one record. After damage, the reader goes on at the next line that begins with a bracket.
 *
 * @param onNaN called with the line of a value that has `NaN` or `Infinity`, which are read as null
 */
export async function* readJson(
  text: AsyncIterable<string>,
  onNaN: (line: number) => void,
): AsyncGenerator<SourceEntry[]> {
  const reader = new JsonReader(onNaN);
  for await (const part of text) {
    reader.add(part);
    yield* reader.read(false);
  }
  yield* reader.read(true);
}

/** A list or an object that has begun and not ended. */
interface Frame {
  isList: boolean;
  start: number;
  line: number;
  path: string;
  expects: 'value' | 'valueOrEnd' | 'key' | 'keyOrEnd' | 'colon' | 'commaOrEnd';
  /** The number of the current item, or its key. The keys of objects are known where the object is opened. */
  index: number;
  key: string;
  /** For an opened frame: why it was opened. */
  problem: string;
  /** An opened frame turned out to be a record, and nothing in it is used. */
  isRecord: boolean;
  /** Something in it was returned, or the problem was. */
  isReported: boolean;
}

/** A value that is read as a whole. The text of a value that is too long is not kept. */
interface Unit {
  start: number;
  line: number;
  isDropped: boolean;
}

const notJson = 'not JSON, or cut off; "library import --help" names the formats';

/** More than lists around records and the depth of a record together. */
const maxFrames = 100;

/** How many pieces are returned at once. */
const piecesAtOnce = 500;

/** What some services write before their JSON, so that no page can run it as a script. */
const guard = /^\s*(?:for\s?\(;;\);|while\s?\(1\);|\)\]\}',?)\s*/;
const guardLength = 100;

const closing = /^[\]},\s]+$/;

class JsonReader {
  readonly #onNaN: (line: number) => void;
  readonly #tokens = new JsonTokenizer();
  #frames: Frame[] = [];
  /** How many of the frames are opened. */
  #opened = 0;
  #unit: Unit | undefined;
  #isLineStart = true;
  /** The rest of the line is skipped. */
  #skipsLine = false;
  /** After damage, only a bracket at the start of a line begins a value. */
  #awaitsBracket = false;
  #isDamaged = false;
  #pieces: SourceEntry[] = [];

  constructor(onNaN: (line: number) => void) {
    this.#onNaN = onNaN;
  }

  add(part: string): void {
    const from = Math.max(0, this.#unit?.start ?? this.#tokens.position);
    this.#tokens.append(part, from);
    if (this.#unit) this.#unit.start -= from;
    for (const frame of this.#frames) frame.start -= from;
  }

  *read(isEnd: boolean): Generator<SourceEntry[]> {
    for (let goesOn = true; goesOn; ) {
      goesOn = this.#step(isEnd);
      if (this.#pieces.length === 0 || (goesOn && this.#pieces.length < piecesAtOnce)) continue;
      yield this.#pieces;
      this.#pieces = [];
    }
  }

  /** Reads a line or a token. Returns false where more text is needed. */
  #step(isEnd: boolean): boolean {
    if (this.#skipsLine) return this.#skipLine();
    const isBetweenValues = this.#frames.length === 0 && this.#unit === undefined;
    if (isBetweenValues && this.#isLineStart) {
      const outcome = this.#readLine(isEnd);
      if (outcome !== 'tokens') return outcome === 'done';
    }
    const token = this.#tokens.readToken(isBetweenValues, isEnd);
    if (token !== undefined) this.#take(token);
    const place = token ? this.#tokens.position : this.#tokens.text.length;
    const isTooLong = place - (this.#unit?.start ?? this.#tokens.position) > maxRecordLength;
    if (isTooLong && this.#unit) this.#endLongUnit(this.#unit);
    else if (token === undefined && !isBetweenValues && (isEnd || isTooLong)) this.#damage();
    else return token !== undefined;
    return true;
  }

  #skipLine(): boolean {
    const { text, position: at, line } = this.#tokens;
    const end = text.indexOf('\n', at);
    this.#tokens.seek(end < 0 ? text.length : end + 1, end < 0 ? line : line + 1);
    this.#skipsLine = end < 0;
    this.#isLineStart = true;
    return end >= 0;
  }

  /** Between values: reads a line that is a value of its own, as most are. Returns `tokens` for any other line. */
  #readLine(isEnd: boolean): 'done' | 'wait' | 'tokens' {
    const { text, position: at, line } = this.#tokens;
    const newline = text.indexOf('\n', at);
    const end = newline < 0 ? text.length : newline;
    const isWhole = newline >= 0 || isEnd;
    if (at >= text.length || (!isWhole && end - at <= maxRecordLength)) return 'wait';
    const prefix = guard.exec(text.slice(at, Math.min(end, at + guardLength)))?.[0].length ?? 0;
    const start = at + prefix;
    const beginning = text.slice(start, Math.min(end, start + guardLength)).trimStart();
    const hasBracket = /^[[{]/.test(beginning);
    // Brackets after damage may close what was not read.
    const isClosing = this.#isDamaged && isWhole && closing.test(beginning) && end - start < guardLength;
    if ((this.#awaitsBracket && !hasBracket) || isClosing) {
      this.#skipsLine = true;
      return 'done';
    }
    this.#awaitsBracket = false;
    this.#isLineStart = false;
    this.#tokens.seek(start, line);
    if (!isWhole || end - start > maxRecordLength) {
      if (hasBracket) return 'tokens';
      this.#report({ line, path: '' }, notJson);
      this.#skipsLine = true;
      return 'done';
    }
    const content = text.slice(start, end).trim();
    const written = content.endsWith(',') ? content.slice(0, -1) : content;
    const parsed = written === '' ? undefined : this.#parse(written, line);
    // Lists and objects that end on a later line, or several values on one.
    if (parsed && 'problem' in parsed && hasBracket) return 'tokens';
    if (parsed && 'problem' in parsed) this.#report({ line, path: '' }, parsed.problem);
    else if (parsed) this.#addRecords(parsed.value, { line, itemLine: line, path: '', text: written });
    this.#tokens.seek(Math.min(end + 1, text.length), newline < 0 ? line : line + 1);
    this.#isLineStart = true;
    return 'done';
  }

  #take(token: Token): void {
    const { kind } = token;
    const frame = this.#frames.at(-1);
    if (kind === 'newline') {
      this.#isLineStart = true;
      return;
    }
    if (!this.#isAllowed(kind, frame)) {
      this.#tokens.seek(token.start, this.#tokens.line);
      this.#damage();
    } else if (kind === ',') this.#takeComma(frame);
    else if (kind === ':') (frame as Frame).expects = 'value';
    else if (kind === ']' || kind === '}') this.#endFrame();
    else if (frame?.expects === 'key' || frame?.expects === 'keyOrEnd') this.#takeKey(frame, token);
    else {
      this.#unit ??= { start: token.start, line: this.#tokens.line, isDropped: false };
      if (kind === '[' || kind === '{') this.#frames.push(frameAt(token.start, this.#tokens.line, kind === '[', ''));
      else this.#endValue();
    }
  }

  #isAllowed(kind: Token['kind'], frame: Frame | undefined): boolean {
    if (kind === 'damage') return false;
    // Commas between values of the top level do no harm.
    if (!frame) return kind !== ']' && kind !== '}' && kind !== ':';
    const { expects, isList } = frame;
    if (kind === ',') return expects === 'commaOrEnd';
    if (kind === ':') return expects === 'colon';
    if (kind === ']' || kind === '}') return isList === (kind === ']') && /End$/.test(expects);
    if (expects === 'key' || expects === 'keyOrEnd') return kind === 'string' || kind === 'word';
    if (expects !== 'value' && expects !== 'valueOrEnd') return false;
    return this.#frames.length < maxFrames;
  }

  #takeComma(frame: Frame | undefined): void {
    if (!frame) return;
    frame.expects = frame.isList ? 'valueOrEnd' : 'keyOrEnd';
    frame.index++;
  }

  #takeKey(frame: Frame, { start, end }: Token): void {
    frame.expects = 'colon';
    if (this.#frames.length > this.#opened) return;
    const key = parseLiteral(this.#tokens.text.slice(start, end), { allowsBareWords: true });
    frame.key = String(key);
    if (frame.isReported || !isRecordKey(frame.key)) return;
    // A list may be of any length, and a record may not. Damage in a record costs the record.
    frame.isRecord = true;
    this.#report(frame, frame.problem);
  }

  /** After a value: what comes next, and whether a unit is complete. */
  #endValue(): void {
    const frame = this.#frames.at(-1);
    if (frame) frame.expects = 'commaOrEnd';
    if (this.#unit !== undefined && this.#frames.length === this.#opened) this.#endUnit(this.#unit);
  }

  #endFrame(): void {
    const frame = this.#frames.pop() as Frame;
    if (this.#frames.length < this.#opened) {
      this.#opened--;
      if (!frame.isReported) this.#report(frame, frame.problem);
    }
    this.#endValue();
  }

  #endUnit(unit: Unit): void {
    this.#unit = undefined;
    if (unit.isDropped || this.#isInRecord()) return;
    const text = this.#tokens.text.slice(unit.start, this.#tokens.position);
    const parsed = this.#parse(text, unit.line);
    const path = this.#pathOfItem();
    if ('value' in parsed) {
      // The path in a document says more than the line where the document begins.
      const itemLine = this.#opened === 0 && text.includes('\n') ? 0 : unit.line;
      this.#addRecords(parsed.value, { line: unit.line, itemLine, path });
    } else if (/^[[{]/.test(text) && this.#opened < maxWrapperDepth) this.#openUnit(unit, parsed.problem);
    else this.#report({ line: unit.line, path }, parsed.problem);
  }

  #endLongUnit(unit: Unit): void {
    if (
      !unit.isDropped &&
      this.#frames.length > this.#opened &&
      this.#opened < maxWrapperDepth &&
      !this.#isInRecord()
    ) {
      this.#openUnit(unit, tooLongProblem);
      return;
    }
    const parent = this.#frames[this.#opened - 1];
    const isItem = parent === undefined || parent.isList;
    if (!unit.isDropped && isItem) this.#report({ line: unit.line, path: this.#pathOfItem() }, tooLongProblem);
    unit.isDropped = true;
    unit.start = this.#tokens.position;
    this.#tokens.discardUnfinishedString();
  }

  /** Reads the items of a unit as units, from its beginning. */
  #openUnit(unit: Unit, problem: string): void {
    const path = this.#pathOfItem();
    this.#frames.length = this.#opened;
    const frame = frameAt(unit.start, unit.line, this.#tokens.text[unit.start] === '[', path);
    this.#frames.push({ ...frame, problem });
    this.#opened = this.#frames.length;
    this.#unit = undefined;
    this.#tokens.seek(unit.start + 1, unit.line);
  }

  /** Something that is not JSON comes next, or the text ends too early. */
  #damage(): void {
    const unit = this.#unit;
    const record = this.#frames.find((frame) => frame.isRecord);
    if (unit && !unit.isDropped && this.#frames.length > this.#opened && this.#opened < maxWrapperDepth && !record) {
      this.#openUnit(unit, this.#problemIn(unit));
      return;
    }
    if (!record) {
      const at = { line: unit?.line ?? this.#tokens.line, path: this.#pathOfItem() };
      this.#report(at, unit ? this.#problemIn(unit) : notJson);
    }
    const from = record ?? (unit?.isDropped ? undefined : unit);
    this.#frames = [];
    this.#opened = 0;
    this.#unit = undefined;
    this.#awaitsBracket = true;
    this.#isDamaged = true;
    this.#skipsLine = true;
    if (from && from.start >= 0) this.#tokens.seek(from.start, from.line);
    else if (this.#isFirstOfLine()) {
      this.#skipsLine = false;
      this.#isLineStart = true;
    }
  }

  #problemIn(unit: Unit): string {
    return hasInvalidBytes(this.#tokens.text.slice(unit.start, this.#tokens.position)) ? notUtf8Problem : notJson;
  }

  #isFirstOfLine(): boolean {
    const { text, position: at } = this.#tokens;
    const start = text.lastIndexOf('\n', at - 1) + 1;
    return start > 0 && at < text.length && text.slice(start, at).trim() === '';
  }

  #isInRecord(): boolean {
    return this.#frames.slice(0, this.#opened).some((frame) => frame.isRecord);
  }

  #pathOfItem(): string {
    const parent = this.#frames[this.#opened - 1];
    if (!parent) return '';
    return parent.isList ? `${parent.path}[${parent.index}]` : joinPath(parent.path, parent.key);
  }

  #report({ line, path }: { line: number; path: string }, problem: string): void {
    this.#pieces.push({ line, path, problem });
    this.#markReported();
  }

  #markReported(): void {
    for (const frame of this.#frames) frame.isReported = true;
  }

  #addRecords(value: unknown, at: { line: number; itemLine: number; path: string; text?: string }): void {
    const { records, isSure } = findRecords(value, at.path);
    const parent = this.#frames[this.#opened - 1];
    // In an object around records, other things than records are usual.
    if (!isSure && parent && !parent.isList && !(recordListKeys.includes(parent.key) && Array.isArray(value))) return;
    for (const { path, value: record } of records) {
      const isWhole = path === at.path;
      const place = { line: isWhole ? at.line : at.itemLine, path };
      const written = isWhole && at.text !== undefined ? { text: at.text } : {};
      if (isObject(record)) this.#pieces.push({ ...place, value: record, ...written });
      else this.#pieces.push({ ...place, problem: 'not a JSON object; a record is an ad or a page' });
    }
    if (records.length > 0) this.#markReported();
  }

  /** JSON, or the notation of Python for the same values. */
  #parse(text: string, line: number): { value: unknown } | { problem: string } {
    if (hasInvalidBytes(text)) return { problem: notUtf8Problem };
    try {
      return { value: JSON.parse(text) };
    } catch {}
    const value = parseLiteral(text);
    if (value === undefined) return { problem: notJson };
    if (/\b(?:NaN|Infinity)\b/.test(text)) this.#onNaN(line);
    return { value };
  }
}

const frameAt = (start: number, line: number, isList: boolean, path: string): Frame => ({
  ...{ isList, start, line, path, expects: isList ? 'valueOrEnd' : 'keyOrEnd' },
  ...{ index: 0, key: '', problem: '', isRecord: false, isReported: false },
});
