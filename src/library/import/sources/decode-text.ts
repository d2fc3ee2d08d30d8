import { isUtf8 } from 'node:buffer';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { UnreadableSourceError } from './source-entry.ts';

/** The minimum length of a batch of decoded text, in characters. Only the last batch of a source may be shorter. */
const minBatchChars = 256 * 1024;

/**
 * Decodes a source as text, in batches. The encoding is UTF-8, UTF-16, Windows-1252 or Mac Roman, and the source may be
 * compressed with gzip. Each invalid UTF-8 byte becomes a lone surrogate, which never occurs in valid text, so that
 * only the record with the invalid byte is rejected.
 * @param onEncodingGuessed called if the text is Windows-1252 or Mac Roman
 * @throws UnreadableSourceError if the bytes are not text
 */
export async function* decodeText(
  source: AsyncIterable<string | Uint8Array>,
  onEncodingGuessed: OnEncodingGuessed = () => {},
): AsyncGenerator<string> {
  let { firstItem: firstChunk, allItems: chunks } = await peekFirstItem(readBuffers(source));
  // If the first byte is 0x1f, the source is compressed with gzip, because no text starts with this byte.
  if (firstChunk?.[0] === 0x1f)
    ({ firstItem: firstChunk, allItems: chunks } = await peekFirstItem(readBuffers(decompress(chunks))));
  if (firstChunk?.toString('latin1', 0, 4) === 'PK\x03\x04')
    throw new UnreadableSourceError('a ZIP archive where a text was expected; unpack it, and import the files inside');
  const decode = createDecoder(firstChunk ?? Buffer.alloc(0), onEncodingGuessed);
  let batch = '';
  try {
    for await (const chunk of chunks) {
      batch += decode(chunk);
      if (batch.length < minBatchChars) continue;
      yield batch;
      batch = '';
    }
  } catch (error) {
    // If the compressed data is damaged, yield the text before the damage, because its records are still usable.
    if (error instanceof UnreadableSourceError) yield batch;
    throw error;
  }
  yield batch + decode();
}

/**
 * Returns true if a text was decoded from invalid UTF-8. The decoder replaces each invalid byte with a lone surrogate
 * between U+DC80 and U+DCFF, which valid text never contains.
 */
export const hasInvalidBytes = (text: string): boolean => /[\udc80-\udcff]/u.test(text);
/** The reason that the import report states for a skipped record with invalid UTF-8. */
export const notUtf8Problem = 'bytes that are not UTF-8; save the file as UTF-8 and import it again';
/** The lone surrogate (half of a UTF-16 character) that replaces each byte of invalid UTF-8. */
const invalidByteMarker = '\udc80';

/** Decodes the next bytes of a text. A last call without bytes returns the remaining characters. */
type DecodeBytes = (bytes?: Buffer) => string;

function createDecoder(firstChunk: Buffer, onEncodingGuessed: OnEncodingGuessed): DecodeBytes {
  const [firstByte, secondByte] = firstChunk;
  // UTF-16 may start without a byte order mark. In this case, detect it by a zero byte, because ASCII characters
  // contain a zero byte in UTF-16.
  const isLittleEndian =
    (firstByte === 0xff && secondByte === 0xfe) || (firstByte !== undefined && firstByte !== 0 && secondByte === 0);
  const isBigEndian =
    (firstByte === 0xfe && secondByte === 0xff) || (firstByte === 0 && secondByte !== undefined && secondByte !== 0);
  if (isLittleEndian || isBigEndian) {
    const decoder = new TextDecoder(isLittleEndian ? 'utf-16le' : 'utf-16be');
    return (bytes) => decoder.decode(bytes, { stream: bytes !== undefined });
  }
  // JSON is never in Mac Roman, because only old spreadsheet programs write this encoding.
  const isJson = /^\s*[[{]/.test(firstChunk.toString('latin1', 0, 200));
  return createUtf8Decoder(onEncodingGuessed, !isJson);
}

/**
 * Creates a decoder for UTF-8 that switches to Windows-1252 or Mac Roman if the first bytes outside ASCII are in that
 * encoding.
 * @param onEncodingGuessed called when the decoder switches to another encoding
 * @param canBeMacRoman false if the text is certainly not in Mac Roman
 */
function createUtf8Decoder(onEncodingGuessed: OnEncodingGuessed, canBeMacRoman: boolean): DecodeBytes {
  let isEncodingKnown = false;
  let decodeOtherEncoding: ((bytes: Buffer) => string) | undefined;
  let unfinishedBytes = Buffer.alloc(0);
  let isStartOfText = true;
  return (bytes) => {
    const buffer =
      unfinishedBytes.length > 0
        ? Buffer.concat([unfinishedBytes, bytes ?? Buffer.alloc(0)])
        : (bytes ?? Buffer.alloc(0));
    const completeByteCount = bytes === undefined ? buffer.length : buffer.length - countUnfinishedBytes(buffer);
    // Keep the bytes of an incomplete character for the next call. Copy these bytes, because the caller may reuse the
    // memory.
    unfinishedBytes = Buffer.from(buffer.subarray(completeByteCount));
    const completeBytes = buffer.subarray(0, completeByteCount);
    if (!isEncodingKnown && completeBytes.some((byte) => byte > 0x7f)) {
      isEncodingKnown = true;
      const encoding = guessEncoding(completeBytes, canBeMacRoman);
      if (encoding !== undefined) {
        decodeOtherEncoding = encoding === 'Mac Roman' ? decodeMacRoman : decodeWindows1252;
        onEncodingGuessed(encoding);
      }
    }
    const text = (decodeOtherEncoding ?? decodeUtf8WithMarkers)(completeBytes);
    if (!isStartOfText || text === '') return text;
    isStartOfText = false;
    return text.replace(/^\uFEFF/, '');
  };
}

/** The five bytes that stand for no character in Windows-1252. */
const undefinedWindows1252Bytes = [0x81, 0x8d, 0x8f, 0x90, 0x9d];

/** An encoding with one byte per character, in which old programs such as Excel write tables. */
export type GuessedEncoding = 'Windows-1252' | 'Mac Roman';
type OnEncodingGuessed = (encoding: GuessedEncoding) => void;

/**
 * Guesses the encoding of bytes without any valid UTF-8 character above 0x7f. Returns Mac Roman if Windows-1252 would
 * turn letters with accents into signs or capital letters inside words, e.g. `für` into `fŸr`. Otherwise returns
 * Windows-1252, or undefined if a byte has no character in that encoding.
 */
function guessEncoding(bytes: Buffer, canBeMacRoman: boolean): GuessedEncoding | undefined {
  if (isUtf8(bytes) || !/^[\0-\x7f\ufffd]*$/.test(bytes.toString())) return undefined;
  const latin1Text = bytes.toString('latin1');
  const macLetterCount = latin1Text.match(macLetterPattern)?.length ?? 0;
  const windowsLetterCount = latin1Text.match(windowsLetterPattern)?.length ?? 0;
  if (canBeMacRoman && macLetterCount > 0 && windowsLetterCount === 0) return 'Mac Roman';
  return undefinedWindows1252Bytes.some((byte) => bytes.includes(byte)) ? undefined : 'Windows-1252';
}

/**
 * Matches the bytes of accented letters in a word, if the text is encoded in Mac Roman. In the encoding Windows-1252,
 * the same bytes are rare characters such as `ˆ` and `Ÿ`, or undefined. The byte 0x87 is `á` in Mac Roman and `‡` in
 * Windows-1252. It only counts between letters, because `‡` may follow a word.
 */
const macLetterPattern = /[a-z][\x81\x88\x8a\x8d-\x90\x9d\x9f]|[a-z]\x87(?=[a-z])/g;
/**
 * Matches small letters with accents in words of Windows-1252. In Mac Roman, the same bytes are signs and capital
 * letters.
 */
const windowsLetterPattern = /[a-z][\xdf-\xf6\xf8-\xff]|[\xdf-\xf6\xf8-\xff][a-z]/g;

const decodeMacRoman = (bytes: Buffer): string => new TextDecoder('macintosh').decode(bytes);

/**
 * The Windows-1252 characters for the bytes 0x80 to 0x9f, in this order. All other bytes stand for the same characters
 * as in Latin-1.
 */
const windows1252Characters = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

/**
 * Decodes text in Windows-1252. Also decodes UTF-8 characters within it, e.g. in a cell that was pasted from another
 * program.
 */
const decodeWindows1252 = (bytes: Buffer): string =>
  bytes
    .toString('latin1')
    .replace(/[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\x9f]/g, (sequence) => {
      if (sequence.length > 1) return Buffer.from(sequence, 'latin1').toString();
      return windows1252Characters[sequence.charCodeAt(0) - 0x80] ?? sequence;
    });

/** Returns the number of bytes at the end of a buffer that belong to an incomplete UTF-8 character. */
function countUnfinishedBytes(buffer: Buffer): number {
  for (let byteCount = 1; byteCount <= Math.min(3, buffer.length); byteCount++) {
    const byte = buffer[buffer.length - byteCount] ?? 0;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const characterLength = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return characterLength > byteCount ? byteCount : 0;
  }
  return 0;
}

const replacementCharacter = Buffer.from('\ufffd');

function decodeUtf8WithMarkers(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString();
  // Node replaces each invalid byte with the character U+FFFD, which the source may also contain as valid text. Split
  // the bytes at these valid characters first, and decode the parts between them.
  const decodedParts: string[] = [];
  for (let partStart = 0; ; ) {
    const nextReplacementIndex = bytes.indexOf(replacementCharacter, partStart);
    const partEnd = nextReplacementIndex < 0 ? bytes.length : nextReplacementIndex;
    decodedParts.push(bytes.toString('utf8', partStart, partEnd).replaceAll('\ufffd', invalidByteMarker));
    if (nextReplacementIndex < 0) return decodedParts.join('\ufffd');
    partStart = nextReplacementIndex + replacementCharacter.length;
  }
}

/**
 * Converts the chunks of a source to buffers. The first buffer has at least `minFirstBytes` bytes if the source is long
 * enough, because these bytes identify the encoding and a chunk may be a single byte.
 */
async function* readBuffers(source: AsyncIterable<string | Uint8Array>): AsyncGenerator<Buffer> {
  let firstBuffer: Buffer | undefined = Buffer.alloc(0);
  for await (const chunk of source) {
    const bytes = Buffer.from(chunk as Uint8Array);
    if (firstBuffer === undefined) yield bytes;
    else {
      firstBuffer = Buffer.concat([firstBuffer, bytes]);
      if (firstBuffer.length < minFirstBytes) continue;
      yield firstBuffer;
      firstBuffer = undefined;
    }
  }
  if (firstBuffer !== undefined) yield firstBuffer;
}

const minFirstBytes = 4;

/** Returns the first non-empty item of a generator, and a generator that yields this item and all items after it. */
export async function peekFirstItem<Item extends { length: number }>(items: AsyncGenerator<Item>) {
  let { value: firstItem, done: isDone } = await items.next();
  while (!isDone && firstItem.length === 0) ({ value: firstItem, done: isDone } = await items.next());
  async function* iterateAll(): AsyncGenerator<Item> {
    if (isDone) return;
    yield firstItem;
    yield* items;
  }
  return { firstItem: isDone ? undefined : (firstItem as Item), allItems: iterateAll() };
}

/**
 * Decompresses gzip data.
 * @throws UnreadableSourceError if the data is damaged or cut off
 */
export async function* decompress(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip();
  // Ignore errors of the pipeline, because the loop over `gunzip` throws the same errors.
  pipeline(bytes, gunzip).catch(() => {});
  try {
    yield* gunzip;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!code.startsWith('Z_')) throw error;
    const damage = code === 'Z_BUF_ERROR' ? 'cut off' : 'damaged';
    throw new UnreadableSourceError(`the compressed data is ${damage}; import an undamaged copy`);
  }
}
