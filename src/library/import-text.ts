import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';

/** Bytes that cannot be read on. What came before them can be used. */
export class UnreadableSource extends Error {}

/** Characters that are handed on at once. */
const batchLength = 256 * 1024;

/**
 * The text of a source in batches: UTF-8 or UTF-16, compressed by gzip or not, as its first bytes say.
 * @param warn receives what may have been lost
 * @throws UnreadableSource
 */
export async function* textOf(
  source: AsyncIterable<string | Uint8Array>,
  warn: (message: string) => void,
): AsyncGenerator<string> {
  let { head, bytes } = await withHead(bytesOf(source));
  if (isGzip(head)) ({ head, bytes } = await withHead(unpacked(bytes)));
  if (isGzip(head)) throw new UnreadableSource('compressed twice; unpack the file once and import the result');
  if (head.subarray(0, 4).equals(Buffer.from('PK\x03\x04')))
    throw new UnreadableSource('a ZIP archive or a workbook; unpack it, or save it as CSV, and import the file inside');
  let batch = '';
  for await (const text of decoded(bytes, charsetOf(head), warn)) {
    batch += text;
    if (batch.length < batchLength) continue;
    yield batch;
    batch = '';
  }
  yield batch;
}

const isGzip = (head: Buffer) => head[0] === 0x1f && head[1] === 0x8b;

/** JSON and CSV begin with an ASCII character, so a zero byte beside it gives UTF-16 away. */
function charsetOf([one, two]: Buffer): string {
  if ((one === 0xff && two === 0xfe) || (one !== 0 && two === 0)) return 'utf-16le';
  return (one === 0xfe && two === 0xff) || (one === 0 && two !== undefined && two !== 0) ? 'utf-16be' : 'utf-8';
}

async function* bytesOf(source: AsyncIterable<string | Uint8Array>): AsyncGenerator<Buffer> {
  for await (const chunk of source) yield Buffer.from(chunk as Uint8Array);
}

/** The first bytes, four if there are so many, and all of them. */
async function withHead(source: AsyncGenerator<Buffer>): Promise<{ head: Buffer; bytes: AsyncGenerator<Buffer> }> {
  let head = Buffer.alloc(0);
  while (head.length < 4) {
    const { value, done } = await source.next();
    if (done) break;
    head = Buffer.concat([head, value]);
  }
  async function* bytes() {
    yield head;
    yield* source;
  }
  return { head, bytes: bytes() };
}

async function* unpacked(bytes: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip();
  const fed = pipeline(bytes, gunzip);
  // Reading `gunzip` fails with the same error.
  fed.catch(() => {});
  try {
    yield* gunzip;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'Z_BUF_ERROR') throw new UnreadableSource('the compressed data is cut off; import a whole copy');
    if (code?.startsWith('Z_')) throw new UnreadableSource('the compressed data is damaged; import a whole copy');
    throw error;
  }
}

async function* decoded(bytes: AsyncIterable<Buffer>, charset: string, warn: (message: string) => void) {
  const decoder = new TextDecoder(charset);
  const check = checkOf(charset, () =>
    warn(`bytes that are not ${charset.toUpperCase()} were stored as �; save the file as UTF-8 and import it again`),
  );
  for await (const chunk of bytes) {
    check(chunk);
    yield decoder.decode(chunk, { stream: true });
  }
  check();
  yield decoder.decode();
}

/** Decodes a second time, and calls `onInvalid` at the first bytes that fit no character. */
function checkOf(charset: string, onInvalid: () => void) {
  const decoder = new TextDecoder(charset, { fatal: true });
  let isValid = true;
  return (chunk?: Buffer) => {
    if (!isValid) return;
    try {
      decoder.decode(chunk, { stream: chunk !== undefined });
    } catch {
      isValid = false;
      onInvalid();
    }
  };
}
