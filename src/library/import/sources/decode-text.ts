import { isUtf8 } from 'node:buffer';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { UnreadableSourceError } from './source-entry.ts';

/** Characters of a source that are read at once. */
const batchLength = 256 * 1024;

/**
 * The text of a source in batches: UTF-8, or UTF-16 with its byte order mark, compressed by gzip or not. A byte that is
 * not UTF-8 becomes a lone surrogate, which no text of UTF-8 can contain, so that it costs only its record.
 * @throws UnreadableSource where the bytes are no text
 */
export async function* decodeText(source: AsyncIterable<string | Uint8Array>): AsyncGenerator<string> {
  let { first, all } = await peekFirst(buffersOf(source));
  // The first byte of gzip, with which no text begins.
  if (first?.[0] === 0x1f) ({ first, all } = await peekFirst(buffersOf(unpacked(all))));
  if (first?.toString('latin1', 0, 4) === 'PK\x03\x04')
    throw new UnreadableSourceError(
      'a ZIP archive or a workbook; unpack it, or save it as CSV, and import the file inside',
    );
  const decode = decoderFor(first ?? Buffer.alloc(0));
  let batch = '';
  try {
    for await (const chunk of all) {
      batch += decode(chunk);
      if (batch.length < batchLength) continue;
      yield batch;
      batch = '';
    }
  } catch (error) {
    // Records before the damage can be used.
    if (error instanceof UnreadableSourceError) yield batch;
    throw error;
  }
  yield batch + decode();
}

/** Whether a text has a byte that is not UTF-8. */
export const hasInvalidBytes = (text: string): boolean => /[\udc80-\udcff]/u.test(text);
export const notUtf8Problem = 'bytes that are not UTF-8; save the file as UTF-8 and import it again';
const invalidByte = '\udc80';

type Decode = (bytes?: Buffer) => string;

function decoderFor(first: Buffer): Decode {
  const [one, two] = first;
  // Most characters of a text in UTF-16 have one byte of zeros.
  const isLittle = (one === 0xff && two === 0xfe) || (one !== undefined && one !== 0 && two === 0);
  if (isLittle || (one === 0xfe && two === 0xff) || (one === 0 && two !== undefined && two !== 0)) {
    const decoder = new TextDecoder(isLittle ? 'utf-16le' : 'utf-16be');
    return (bytes) => decoder.decode(bytes, { stream: bytes !== undefined });
  }
  return utf8Decoder();
}

function utf8Decoder(): Decode {
  let rest = Buffer.alloc(0);
  let isStart = true;
  return (bytes) => {
    const whole = rest.length > 0 ? Buffer.concat([rest, bytes ?? Buffer.alloc(0)]) : (bytes ?? Buffer.alloc(0));
    const end = bytes === undefined ? whole.length : whole.length - unfinishedBytes(whole);
    // A copy, because the caller may use the memory of its chunk again.
    rest = Buffer.from(whole.subarray(end));
    const text = decodeMarked(whole.subarray(0, end));
    if (!isStart || text === '') return text;
    isStart = false;
    return text.replace(/^\uFEFF/, '');
  };
}

/** How many bytes at the end begin a character that is not there completely. */
function unfinishedBytes(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return length > back ? back : 0;
  }
  return 0;
}

const replacement = Buffer.from('\ufffd');

function decodeMarked(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString();
  // Decoding writes U+FFFD for an invalid byte. Those that stand in the bytes themselves are taken out before.
  const parts: string[] = [];
  for (let start = 0; ; ) {
    const next = bytes.indexOf(replacement, start);
    const end = next < 0 ? bytes.length : next;
    parts.push(bytes.toString('utf8', start, end).replaceAll('\ufffd', invalidByte));
    if (next < 0) return parts.join('\ufffd');
    start = next + replacement.length;
  }
}

/** The first chunk has the bytes by which an encoding is told, however small the chunks of the source are. */
async function* buffersOf(source: AsyncIterable<string | Uint8Array>): AsyncGenerator<Buffer> {
  let start: Buffer | undefined = Buffer.alloc(0);
  for await (const chunk of source) {
    const bytes = Buffer.from(chunk as Uint8Array);
    if (start === undefined) yield bytes;
    else {
      start = Buffer.concat([start, bytes]);
      if (start.length < tellingBytes) continue;
      yield start;
      start = undefined;
    }
  }
  if (start !== undefined) yield start;
}

const tellingBytes = 4;

/** The first of the items that is not empty, and all of them from there on. */
export async function peekFirst<Item extends { length: number }>(items: AsyncGenerator<Item>) {
  let { value: first, done } = await items.next();
  while (!done && first.length === 0) ({ value: first, done } = await items.next());
  async function* all(): AsyncGenerator<Item> {
    if (done) return;
    yield first;
    yield* items;
  }
  return { first: done ? undefined : (first as Item), all: all() };
}

async function* unpacked(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip();
  // Reading `gunzip` fails with the same error.
  pipeline(bytes, gunzip).catch(() => {});
  try {
    yield* gunzip;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!code.startsWith('Z_')) throw error;
    const what = code === 'Z_BUF_ERROR' ? 'cut off' : 'damaged';
    throw new UnreadableSourceError(`the compressed data is ${what}; import a whole copy`);
  }
}
