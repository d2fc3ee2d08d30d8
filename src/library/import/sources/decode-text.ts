import { isUtf8 } from 'node:buffer';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { UnreadableSourceError } from './source-entry.ts';

/** The minimum length of a batch of decoded text, in characters. Only the last batch may be shorter. */
const minBatchLength = 256 * 1024;

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
  // A first byte of 0x1f means that the source is compressed with gzip. No text starts with this byte.
  if (firstChunk?.[0] === 0x1f)
    ({ firstItem: firstChunk, allItems: chunks } = await peekFirstItem(readBuffers(decompress(chunks))));
  if (firstChunk?.toString('latin1', 0, 4) === 'PK\x03\x04')
    throw new UnreadableSourceError('a ZIP archive where a text was expected; unpack it, and import the files inside');
  const decode = createDecoder(firstChunk ?? Buffer.alloc(0), onEncodingGuessed);
  let batch = '';
  try {
    for await (const chunk of chunks) {
      batch += decode(chunk);
      if (batch.length < minBatchLength) continue;
      yield batch;
      batch = '';
    }
  } catch (error) {
    // The compressed data is damaged. Yield the text before the damage, because its records are still usable.
    if (error instanceof UnreadableSourceError) yield batch;
    throw error;
  }
  yield batch + decode();
}

/**
 * Returns true if a decoded text contains a byte that was not valid UTF-8. The decoder replaces such a byte with a lone
 * surrogate between U+DC80 and U+DCFF, which valid text never contains.
 */
export const hasInvalidBytes = (text: string): boolean => /[\udc80-\udcff]/u.test(text);
/** The reason in the import report for skipping a record with a byte that is not UTF-8. */
export const notUtf8Problem = 'bytes that are not UTF-8; save the file as UTF-8 and import it again';
/** The lone surrogate (half of a UTF-16 character) that replaces a byte that is not valid UTF-8. */
const invalidByteMarker = '\udc80';

/**
 * Decodes the next bytes of a text. If called without bytes at the end of the text, it returns the remaining
 * characters.
 */
type DecodeBytes = (bytes?: Buffer) => string;

function createDecoder(firstChunk: Buffer, onEncodingGuessed: OnEncodingGuessed): DecodeBytes {
  const [firstByte, secondByte] = firstChunk;
  // A text in UTF-16 may start without a byte order mark. Detect it by a zero byte, because most characters in UTF-16
  // contain one.
  const isLittleEndian =
    (firstByte === 0xff && secondByte === 0xfe) || (firstByte !== undefined && firstByte !== 0 && secondByte === 0);
  const isBigEndian =
    (firstByte === 0xfe && secondByte === 0xff) || (firstByte === 0 && secondByte !== undefined && secondByte !== 0);
  if (isLittleEndian || isBigEndian) {
    const decoder = new TextDecoder(isLittleEndian ? 'utf-16le' : 'utf-16be');
    return (bytes) => decoder.decode(bytes, { stream: bytes !== undefined });
  }
  // Only old programs for tables write Mac Roman. JSON is never in this encoding.
  const isJson = /^\s*[[{]/.test(firstChunk.toString('latin1', 0, 200));
  return createUtf8Decoder(onEncodingGuessed, !isJson);
}

/**
 * Creates a decoder for UTF-8 that can switch to Windows-1252 or Mac Roman.
 * @param onEncodingGuessed called if the first bytes outside ASCII show that the text is in one of these encodings
 * @param canBeMacRoman false if the text cannot be Mac Roman
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
    const completeLength = bytes === undefined ? buffer.length : buffer.length - countUnfinishedBytes(buffer);
    // Keep the bytes of an incomplete character for the next call. Copy them, because the caller may reuse the memory
    // of its chunk.
    unfinishedBytes = Buffer.from(buffer.subarray(completeLength));
    const completeBytes = buffer.subarray(0, completeLength);
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

/** The five bytes that have no character in Windows-1252. */
const undefinedWindows1252Bytes = [0x81, 0x8d, 0x8f, 0x90, 0x9d];

/** An encoding of single bytes, in which old programs such as Excel write tables. */
export type GuessedEncoding = 'Windows-1252' | 'Mac Roman';
type OnEncodingGuessed = (encoding: GuessedEncoding) => void;

/**
 * Guesses the encoding of bytes of which no byte above 0x7f is part of a valid UTF-8 character. The text is Windows-1252
 * if this encoding defines all of the bytes. It is Mac Roman if its letters with accents would be signs or capital
 * letters inside words of Windows-1252, e.g. `fŸr` instead of `für`. Returns undefined for any other text.
 */
function guessEncoding(bytes: Buffer, canBeMacRoman: boolean): GuessedEncoding | undefined {
  if (isUtf8(bytes) || !/^[\0-\x7f\ufffd]*$/.test(bytes.toString())) return undefined;
  const text = bytes.toString('latin1');
  const macLetterCount = text.match(macLetterPattern)?.length ?? 0;
  const windowsLetterCount = text.match(windowsLetterPattern)?.length ?? 0;
  if (canBeMacRoman && macLetterCount > 0 && windowsLetterCount === 0) return 'Mac Roman';
  return undefinedWindows1252Bytes.some((byte) => bytes.includes(byte)) ? undefined : 'Windows-1252';
}

/**
 * Matches letters of Mac Roman in a word. In Windows-1252, the same bytes are signs such as `ˆ`, capital letters such as
 * `Ÿ`, or undefined. The byte 0x87 is `á` in Mac Roman and `‡` in Windows-1252, which may follow a word.
 */
const macLetterPattern = /[a-z][\x81\x88\x8a\x8d-\x90\x9d\x9f]|[a-z]\x87(?=[a-z])/g;
/** Matches small letters of Windows-1252 in a word. In Mac Roman, the same bytes are signs and capital letters. */
const windowsLetterPattern = /[a-z][\xdf-\xf6\xf8-\xff]|[\xdf-\xf6\xf8-\xff][a-z]/g;

const decodeMacRoman = (bytes: Buffer): string => new TextDecoder('macintosh').decode(bytes);

/** The Windows-1252 characters for the bytes 0x80 to 0x9f, in order. All other bytes are the same as in Latin-1. */
const windows1252Characters = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

/**
 * Decodes text in Windows-1252. Characters that are encoded in UTF-8, e.g. in a cell pasted from another program, are
 * decoded as well.
 */
const decodeWindows1252 = (bytes: Buffer): string =>
  bytes
    .toString('latin1')
    .replace(/[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\x9f]/g, (sequence) => {
      if (sequence.length > 1) return Buffer.from(sequence, 'latin1').toString();
      return windows1252Characters[sequence.charCodeAt(0) - 0x80] ?? sequence;
    });

/** Returns the number of bytes at the end of a buffer that belong to an incomplete character. */
function countUnfinishedBytes(buffer: Buffer): number {
  for (let count = 1; count <= Math.min(3, buffer.length); count++) {
    const byte = buffer[buffer.length - count] ?? 0;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const characterLength = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return characterLength > count ? count : 0;
  }
  return 0;
}

const replacementCharacter = Buffer.from('\ufffd');

function decodeUtf8WithMarkers(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString();
  // Node replaces each invalid byte with the character U+FFFD. The source may also contain U+FFFD as an ordinary
  // character, so split the bytes at these characters first and decode the pieces between them.
  const decodedParts: string[] = [];
  for (let partStart = 0; ; ) {
    const nextReplacement = bytes.indexOf(replacementCharacter, partStart);
    const end = nextReplacement < 0 ? bytes.length : nextReplacement;
    decodedParts.push(bytes.toString('utf8', partStart, end).replaceAll('\ufffd', invalidByteMarker));
    if (nextReplacement < 0) return decodedParts.join('\ufffd');
    partStart = nextReplacement + replacementCharacter.length;
  }
}

/**
 * Converts the chunks of a source to buffers. The first buffer has at least `minFirstBytes` bytes if possible, because
 * the first bytes identify the encoding and the source may deliver single bytes.
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

/**
 * Returns the first non-empty item of a generator, and another generator that yields this item and all following ones.
 */
export async function peekFirstItem<Item extends { length: number }>(items: AsyncGenerator<Item>) {
  let { value: firstItem, done } = await items.next();
  while (!done && firstItem.length === 0) ({ value: firstItem, done } = await items.next());
  async function* iterateAll(): AsyncGenerator<Item> {
    if (done) return;
    yield firstItem;
    yield* items;
  }
  return { firstItem: done ? undefined : (firstItem as Item), allItems: iterateAll() };
}

/**
 * Decompresses gzip data.
 * @throws UnreadableSourceError if the data is damaged or cut off
 */
export async function* decompress(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip();
  // Ignore errors here, because the loop over `gunzip` throws the same error.
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
