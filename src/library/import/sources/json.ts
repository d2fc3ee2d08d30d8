import { isObject } from '../../../views/view.ts';
import { type FormatDetector, isRecordKey } from '../formats/formats.ts';
import { parseJson, parseLiteral } from '../values/literals.ts';
import { hasInvalidBytes, notUtf8Problem } from './decode-text.ts';
import { findRecords, joinPath, maxWrapperDepth, recordListKeys } from './find-records.ts';
import { type JsonToken, JsonTokenizer } from './json-tokenizer.ts';
import { createResultPage, isRequestKey, type ResultPage, updateResultPage } from './result-pages.ts';
import { maxRecordLength, type SourceEntry, tooLongProblem } from './source-entry.ts';

/**
 * Reads records from JSON in any layout: one value per line, several values in a row, or a single document of any
 * length.
 *
 * The reader parses one unit of the text at a time. At first, a unit is a complete top-level value, e.g. the value on
 * one line. If a unit is too long or damaged, the reader splits it: the items in its list or object become the next
 * units. Therefore a list of records may have any length, and damage only affects one record. After damage, the reader
 * continues at the next line that starts with a bracket.
 *
 * @param text the source, in chunks
 */
export async function* readJson(
  text: AsyncIterable<string>,
  options: JsonReaderOptions,
): AsyncGenerator<SourceEntry[]> {
  const reader = new JsonReader(options);
  for await (const chunk of text) {
    reader.appendText(chunk);
    yield* reader.readEntries(false);
  }
  yield* reader.readEntries(true);
}

/** The options of `readJson`: the format detector, and callbacks that report what the reader finds. */
export interface JsonReaderOptions {
  formatDetector: FormatDetector;
  /**
   * Called with the line number of each value that contains `NaN` or `Infinity`. The reader replaces these words with
   * null.
   */
  onNaNFound(lineNumber: number): void;
  /**
   * Called with each result page of an API, i.e. with each object that contains a list of records and says whether more
   * results follow.
   */
  onResultPageRead?(page: ResultPage): void;
}

/** A list or object whose closing bracket the reader has not reached yet. */
interface UnclosedContainer {
  isList: boolean;
  /** The index of the opening bracket in the text. */
  startIndex: number;
  line: number;
  path: string;
  /** The kind of token that must come next in the list or object. Any other token means that the text is damaged. */
  expectedToken: 'value' | 'valueOrEnd' | 'key' | 'keyOrEnd' | 'colon' | 'commaOrEnd';
  /** The index of the current item, if this is a list. */
  itemIndex: number;
  /** The key of the current property, if this is an object whose properties are parsed one by one. */
  propertyKey: string;
  /**
   * Why the reader has split the list or object, i.e. parses its items one by one: the JSON is damaged, or it is too
   * long to be parsed as a whole. Empty if the list or object is not split.
   */
  splitReason: string;
  /** True if the list or object turned out to be a record itself. The reader then ignores the remaining items. */
  isRecord: boolean;
  /** True if the reader has already reported a record in this list or object, or a problem with such a record. */
  hasReportedEntry: boolean;
  /** Set if the object may be a result page of an API. Contains e.g. whether more results follow. */
  resultPage?: ResultPage;
}

/** A JSON value that the reader parses as a whole. */
interface JsonUnit {
  /** The index of the value's first character in the text. */
  startIndex: number;
  line: number;
  /** True if the value is too long and its items cannot be parsed one by one. Its text is discarded to save memory. */
  isDiscarded: boolean;
}

const notJsonProblem = 'not JSON, or cut off; "library import --help" lists the formats';

const notObjectProblem = 'not a JSON object; a record is an ad or a page';
const listProblem = 'not a JSON object but a list of values; write a table of pandas with to_json(orient="records")';

/**
 * The maximum nesting depth of lists and objects. It exceeds the maximum depth of a record (64) plus the maximum number
 * of lists and objects around a record (16).
 */
const maxNestingDepth = 100;

/** The number of entries (records and problems) after which the reader yields a batch. */
const entriesPerBatch = 500;

/**
 * Matches a prefix such as `while(1);`, which some services add to JSON so that web pages cannot run it as a script.
 */
const scriptGuardPattern = /^\s*(?:for\s?\(;;\);|while\s?\(1\);|\)\]\}',?)\s*/;
const maxScriptGuardLength = 100;

const closingBracketsPattern = /^[\]},\s]+$/;

class JsonReader {
  readonly #options: JsonReaderOptions;
  readonly #tokenizer = new JsonTokenizer();
  /** The lists and objects that contain the current position in the text, from the outermost to the innermost. */
  #unclosedContainers: UnclosedContainer[] = [];
  /** The number of outer lists and objects that the reader has split, i.e. whose items it parses one by one. */
  #splitContainerCount = 0;
  #currentUnit: JsonUnit | undefined;
  /** True if no token of the current line was read yet, so that the reader may read the whole line at once. */
  #isLineUnread = true;
  /** True while the reader skips the remainder of an unusable line. */
  #isSkippingLine = false;
  /**
   * True after the reader has found damaged text. The next value must then start with a bracket at the start of a line.
   */
  #isAwaitingBracket = false;
  #hasFoundDamage = false;
  #entries: SourceEntry[] = [];

  constructor(options: JsonReaderOptions) {
    this.#options = options;
  }

  appendText(chunk: string): void {
    const firstKeptIndex = Math.max(0, this.#currentUnit?.startIndex ?? this.#tokenizer.position);
    this.#tokenizer.appendText(chunk, firstKeptIndex);
    if (this.#currentUnit) this.#currentUnit.startIndex -= firstKeptIndex;
    for (const container of this.#unclosedContainers) container.startIndex -= firstKeptIndex;
  }

  /**
   * Reads the appended text, and yields the records and problems in it as batches of entries.
   * @param isEndOfText true if no more text follows
   */
  *readEntries(isEndOfText: boolean): Generator<SourceEntry[]> {
    for (let canContinue = true; canContinue; ) {
      canContinue = this.#readLineOrToken(isEndOfText);
      if (this.#entries.length === 0 || (canContinue && this.#entries.length < entriesPerBatch)) continue;
      yield this.#entries;
      this.#entries = [];
    }
  }

  /** Reads the next line or token. Returns false if the reader needs more text to continue. */
  #readLineOrToken(isEndOfText: boolean): boolean {
    if (this.#isSkippingLine) return this.#skipLine();
    const isBetweenValues = this.#unclosedContainers.length === 0 && this.#currentUnit === undefined;
    if (isBetweenValues && this.#isLineUnread) {
      const lineOutcome = this.#readWholeLine(isEndOfText);
      if (lineOutcome !== 'needsTokens') return lineOutcome === 'done';
    }
    const token = this.#tokenizer.readToken(isBetweenValues, isEndOfText);
    if (token !== undefined) this.#processToken(token);
    const position = token ? this.#tokenizer.position : this.#tokenizer.text.length;
    const isTooLong = position - (this.#currentUnit?.startIndex ?? this.#tokenizer.position) > maxRecordLength;
    if (isTooLong && this.#currentUnit) this.#splitOrDiscardUnit(this.#currentUnit);
    else if (token === undefined && !isBetweenValues && (isEndOfText || isTooLong)) this.#recoverFromDamage();
    else return token !== undefined;
    return true;
  }

  #skipLine(): boolean {
    const { text, position, lineNumber: line } = this.#tokenizer;
    const newlineIndex = text.indexOf('\n', position);
    this.#tokenizer.seek(newlineIndex < 0 ? text.length : newlineIndex + 1, newlineIndex < 0 ? line : line + 1);
    this.#isSkippingLine = newlineIndex < 0;
    this.#isLineUnread = true;
    return newlineIndex >= 0;
  }

  /**
   * Reads the next line between two top-level values. Most sources write one value per line, and parsing a whole line
   * is faster than reading its tokens.
   * @returns `done` if the line was read or skipped, `needsText` if the line is incomplete, or `needsTokens` if the
   * line is not a single value and must be read token by token
   */
  #readWholeLine(isEndOfText: boolean): 'done' | 'needsText' | 'needsTokens' {
    const { text, position, lineNumber: line } = this.#tokenizer;
    const newlineIndex = text.indexOf('\n', position);
    const lineEndIndex = newlineIndex < 0 ? text.length : newlineIndex;
    const isLineComplete = newlineIndex >= 0 || isEndOfText;
    if (position >= text.length || (!isLineComplete && lineEndIndex - position <= maxRecordLength)) return 'needsText';
    const scriptGuard = scriptGuardPattern.exec(
      text.slice(position, Math.min(lineEndIndex, position + maxScriptGuardLength)),
    );
    const contentStartIndex = position + (scriptGuard?.[0].length ?? 0);
    const firstCharacters = text
      .slice(contentStartIndex, Math.min(lineEndIndex, contentStartIndex + maxScriptGuardLength))
      .trimStart();
    const startsWithBracket = /^[[{]/.test(firstCharacters);
    // A line with only closing brackets is probably the end of an earlier damaged value, so skip the line.
    const hasOnlyClosingBrackets =
      this.#hasFoundDamage &&
      isLineComplete &&
      closingBracketsPattern.test(firstCharacters) &&
      lineEndIndex - contentStartIndex < maxScriptGuardLength;
    if ((this.#isAwaitingBracket && !startsWithBracket) || hasOnlyClosingBrackets) {
      this.#isSkippingLine = true;
      return 'done';
    }
    this.#isAwaitingBracket = false;
    this.#isLineUnread = false;
    this.#tokenizer.seek(contentStartIndex, line);
    if (!isLineComplete || lineEndIndex - contentStartIndex > maxRecordLength) {
      if (startsWithBracket) return 'needsTokens';
      this.#addProblem({ line, path: '' }, notJsonProblem);
      this.#isSkippingLine = true;
      return 'done';
    }
    const trimmedLine = text.slice(contentStartIndex, lineEndIndex).trim();
    const recordText = trimmedLine.endsWith(',') ? trimmedLine.slice(0, -1) : trimmedLine;
    const parseResult = recordText === '' ? undefined : this.#parseValue(recordText, line);
    // The line is not a single value. It may be the start of a longer list or object, or it may contain several values.
    // Therefore read the line token by token.
    if (parseResult && 'problem' in parseResult && startsWithBracket) return 'needsTokens';
    if (parseResult && 'problem' in parseResult) this.#addProblem({ line, path: '' }, parseResult.problem);
    else if (parseResult) this.#addRecords(parseResult.value, { line, itemLine: line, path: '', text: recordText });
    this.#tokenizer.seek(Math.min(lineEndIndex + 1, text.length), newlineIndex < 0 ? line : line + 1);
    this.#isLineUnread = true;
    return 'done';
  }

  #processToken(token: JsonToken): void {
    const { kind } = token;
    const container = this.#unclosedContainers.at(-1);
    if (kind === 'newline') {
      this.#isLineUnread = true;
      return;
    }
    if (!this.#isTokenAllowed(kind, container)) {
      this.#tokenizer.seek(token.startIndex, this.#tokenizer.lineNumber);
      this.#recoverFromDamage();
    } else if (kind === ',') this.#processComma(container);
    else if (kind === ':') (container as UnclosedContainer).expectedToken = 'value';
    else if (kind === ']' || kind === '}') this.#endContainer();
    else if (container?.expectedToken === 'key' || container?.expectedToken === 'keyOrEnd')
      this.#processKey(container, token);
    else {
      this.#currentUnit ??= { startIndex: token.startIndex, line: this.#tokenizer.lineNumber, isDiscarded: false };
      if (kind === '[' || kind === '{')
        this.#unclosedContainers.push(createContainer(token.startIndex, this.#tokenizer.lineNumber, kind === '[', ''));
      else this.#endValue();
    }
  }

  #isTokenAllowed(kind: JsonToken['kind'], container: UnclosedContainer | undefined): boolean {
    if (kind === 'damage') return false;
    // Between top-level values, accept any token that can start a value. Also accept commas, although JSON does not
    // allow them there.
    if (!container) return kind !== ']' && kind !== '}' && kind !== ':';
    const { expectedToken, isList } = container;
    if (kind === ',') return expectedToken === 'commaOrEnd';
    if (kind === ':') return expectedToken === 'colon';
    if (kind === ']' || kind === '}') return isList === (kind === ']') && /End$/.test(expectedToken);
    if (expectedToken === 'key' || expectedToken === 'keyOrEnd') return kind === 'string' || kind === 'word';
    if (expectedToken !== 'value' && expectedToken !== 'valueOrEnd') return false;
    return this.#unclosedContainers.length < maxNestingDepth;
  }

  #processComma(container: UnclosedContainer | undefined): void {
    if (!container) return;
    container.expectedToken = container.isList ? 'valueOrEnd' : 'keyOrEnd';
    container.itemIndex++;
  }

  #processKey(container: UnclosedContainer, { startIndex, endIndex }: JsonToken): void {
    container.expectedToken = 'colon';
    if (this.#unclosedContainers.length > this.#splitContainerCount) return;
    const key = parseLiteral(this.#tokenizer.text.slice(startIndex, endIndex), { allowsBareWords: true });
    container.propertyKey = String(key);
    if (container.hasReportedEntry || !isRecordKey(container.propertyKey)) return;
    // The key shows that the object is a record itself, and not an object around records. The reader splits only
    // objects that are too long or damaged, so the record is unusable.
    container.isRecord = true;
    this.#addProblem(container, container.splitReason);
  }

  /**
   * Handles the end of a value: the next token must be a comma or a closing bracket. If the value completes the current
   * unit (the value that is parsed as a whole), parses the unit.
   */
  #endValue(): void {
    const container = this.#unclosedContainers.at(-1);
    if (container) container.expectedToken = 'commaOrEnd';
    if (this.#currentUnit !== undefined && this.#unclosedContainers.length === this.#splitContainerCount)
      this.#endUnit(this.#currentUnit);
  }

  #endContainer(): void {
    const container = this.#unclosedContainers.pop() as UnclosedContainer;
    if (this.#unclosedContainers.length < this.#splitContainerCount) {
      this.#splitContainerCount--;
      if (!container.hasReportedEntry) this.#addProblem(container, container.splitReason);
      if (container.resultPage && !container.isRecord) this.#options.onResultPageRead?.(container.resultPage);
    }
    this.#endValue();
  }

  #endUnit(unit: JsonUnit): void {
    this.#currentUnit = undefined;
    if (unit.isDiscarded || this.#isInRecord()) return;
    const text = this.#tokenizer.text.slice(unit.startIndex, this.#tokenizer.position);
    const parseResult = this.#parseValue(text, unit.line);
    const path = this.#getItemPath();
    if ('value' in parseResult) {
      // If the document spans several lines, report no line number (0) for its records, because the path of a record is
      // more helpful than the line where the document starts.
      const itemLine = this.#splitContainerCount === 0 && text.includes('\n') ? 0 : unit.line;
      this.#addRecords(parseResult.value, { line: unit.line, itemLine, path });
    } else if (/^[[{]/.test(text) && this.#splitContainerCount < maxWrapperDepth)
      this.#splitUnit(unit, parseResult.problem);
    else this.#addProblem({ line: unit.line, path }, parseResult.problem);
  }

  /**
   * Splits a unit (a value to parse as a whole) that is too long, so that its items are parsed one by one. If the unit
   * cannot be split, reports the problem and discards the text of the unit.
   */
  #splitOrDiscardUnit(unit: JsonUnit): void {
    const canSplitUnit =
      !unit.isDiscarded &&
      this.#unclosedContainers.length > this.#splitContainerCount &&
      this.#splitContainerCount < maxWrapperDepth &&
      !this.#isInRecord();
    if (canSplitUnit) {
      this.#splitUnit(unit, tooLongProblem);
      return;
    }
    const parentContainer = this.#unclosedContainers[this.#splitContainerCount - 1];
    const isItem = parentContainer === undefined || parentContainer.isList;
    if (!unit.isDiscarded && isItem) this.#addProblem({ line: unit.line, path: this.#getItemPath() }, tooLongProblem);
    unit.isDiscarded = true;
    unit.startIndex = this.#tokenizer.position;
    this.#tokenizer.discardUnfinishedString();
  }

  /** Splits a list or object: goes back to its start, so that the reader parses its items one by one. */
  #splitUnit(unit: JsonUnit, reason: string): void {
    const path = this.#getItemPath();
    this.#unclosedContainers.length = this.#splitContainerCount;
    const container = createContainer(unit.startIndex, unit.line, this.#tokenizer.text[unit.startIndex] === '[', path);
    const isResultPage = !container.isList && !this.#findEnclosingPage();
    this.#unclosedContainers.push({
      ...container,
      splitReason: reason,
      ...(isResultPage && { resultPage: createResultPage() }),
    });
    this.#splitContainerCount = this.#unclosedContainers.length;
    this.#currentUnit = undefined;
    this.#tokenizer.seek(unit.startIndex + 1, unit.line);
  }

  /**
   * Continues after text that is not JSON or that ends too early. If possible, splits the current unit (the value that
   * contains this text), so that its items are parsed one by one. Otherwise reports the problem and looks for the next
   * record.
   */
  #recoverFromDamage(): void {
    const unit = this.#currentUnit;
    const recordContainer = this.#unclosedContainers.find((container) => container.isRecord);
    const canSplitUnit =
      this.#unclosedContainers.length > this.#splitContainerCount &&
      this.#splitContainerCount < maxWrapperDepth &&
      !recordContainer;
    if (unit && !unit.isDiscarded && canSplitUnit) {
      this.#splitUnit(unit, this.#describeDamage(unit));
      return;
    }
    if (!recordContainer) {
      const damageLocation = { line: unit?.line ?? this.#tokenizer.lineNumber, path: this.#getItemPath() };
      this.#addProblem(damageLocation, unit ? this.#describeDamage(unit) : notJsonProblem);
    }
    const damagedValue = recordContainer ?? (unit?.isDiscarded ? undefined : unit);
    this.#unclosedContainers = [];
    this.#splitContainerCount = 0;
    this.#currentUnit = undefined;
    this.#isAwaitingBracket = true;
    this.#hasFoundDamage = true;
    this.#isSkippingLine = true;
    // A missing bracket may have joined the damaged value with later records. Therefore go back, and look for the next
    // record from the second line of the damaged value on.
    if (damagedValue && damagedValue.startIndex >= 0) this.#tokenizer.seek(damagedValue.startIndex, damagedValue.line);
    else if (this.#isAtFirstCharacterOfLine()) {
      this.#isSkippingLine = false;
      this.#isLineUnread = true;
    }
  }

  #describeDamage(unit: JsonUnit): string {
    const text = this.#tokenizer.text.slice(unit.startIndex, this.#tokenizer.position);
    return hasInvalidBytes(text) ? notUtf8Problem : notJsonProblem;
  }

  /** Returns true if the current position is the first character of its line, apart from spaces. */
  #isAtFirstCharacterOfLine(): boolean {
    const { text, position } = this.#tokenizer;
    const lineStartIndex = text.lastIndexOf('\n', position - 1) + 1;
    return lineStartIndex > 0 && position < text.length && text.slice(lineStartIndex, position).trim() === '';
  }

  #isInRecord(): boolean {
    return this.#unclosedContainers.slice(0, this.#splitContainerCount).some((container) => container.isRecord);
  }

  #findEnclosingPage(): ResultPage | undefined {
    return this.#unclosedContainers.find(({ resultPage }) => resultPage)?.resultPage;
  }

  #getItemPath(): string {
    const parentContainer = this.#unclosedContainers[this.#splitContainerCount - 1];
    if (!parentContainer) return '';
    return parentContainer.isList
      ? `${parentContainer.path}[${parentContainer.itemIndex}]`
      : joinPath(parentContainer.path, parentContainer.propertyKey);
  }

  #addProblem({ line, path }: { line: number; path: string }, problem: string): void {
    this.#entries.push({ line, path, problem });
    this.#markContainersReported();
  }

  #markContainersReported(): void {
    for (const container of this.#unclosedContainers) container.hasReportedEntry = true;
  }

  /**
   * Adds the records in a parsed value to the entries.
   * @param location `line` is the line number of the value, and `itemLine` is the line number to report for records
   * inside the value. `text` is the text of the value if the value is a whole line.
   */
  #addRecords(parsedValue: unknown, location: { line: number; itemLine: number; path: string; text?: string }): void {
    const enclosingPage = this.#findEnclosingPage();
    const parentContainer = this.#unclosedContainers[this.#splitContainerCount - 1];
    if (enclosingPage && parentContainer && !parentContainer.isList) {
      updateResultPage(enclosingPage, { [parentContainer.propertyKey]: parsedValue }, parentContainer.path);
      if (isRequestKey(parentContainer.propertyKey)) return;
    }
    const { records, areRecordsCertain, resultPages } = findRecords(
      parsedValue,
      location.path,
      this.#options.formatDetector,
      enclosingPage,
    );
    for (const page of resultPages) this.#options.onResultPageRead?.(page);
    // The value is a result page without records, and not a damaged record. Therefore do not report a problem.
    const isEmptyPage =
      !areRecordsCertain &&
      resultPages.some(({ hasRecordList }) => hasRecordList) &&
      records[0]?.path === location.path;
    if (isEmptyPage) return;
    const isRecordList =
      parentContainer !== undefined &&
      recordListKeys.includes(parentContainer.propertyKey) &&
      Array.isArray(parsedValue);
    // An object around records usually also contains other values, e.g. a page number. Do not report them as problems.
    if (!areRecordsCertain && parentContainer && !parentContainer.isList && !isRecordList) return;
    for (const { path, value: record } of records) {
      const isWholeValue = path === location.path;
      const recordLocation = { line: isWholeValue ? location.line : location.itemLine, path };
      const recordText = isWholeValue && location.text !== undefined ? { text: location.text } : {};
      if (isObject(record)) this.#entries.push({ ...recordLocation, value: record, ...recordText });
      else this.#entries.push({ ...recordLocation, problem: Array.isArray(record) ? listProblem : notObjectProblem });
    }
    if (records.length > 0) this.#markContainersReported();
  }

  /**
   * Parses the complete text of a value in JSON or Python notation. Returns a problem if the text is in neither
   * notation.
   */
  #parseValue(text: string, line: number): { value: unknown } | { problem: string } {
    if (hasInvalidBytes(text)) return { problem: notUtf8Problem };
    try {
      return { value: parseJson(text) };
    } catch {}
    const value = parseLiteral(text);
    if (value === undefined) return { problem: notJsonProblem };
    if (/\b(?:NaN|Infinity)\b/.test(text)) this.#options.onNaNFound(line);
    return { value };
  }
}

const createContainer = (startIndex: number, line: number, isList: boolean, path: string): UnclosedContainer => ({
  ...{ isList, startIndex, line, path, expectedToken: isList ? 'valueOrEnd' : 'keyOrEnd' },
  ...{ itemIndex: 0, propertyKey: '', splitReason: '', isRecord: false, hasReportedEntry: false },
});
