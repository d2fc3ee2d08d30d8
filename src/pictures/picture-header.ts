export type PictureFormat = 'jpeg' | 'png' | 'webp';

/** What the first bytes say, read without decoding. */
export type PictureHeader = { format: PictureFormat; width: number; height: number } | { reason: string };

const maxPixels = 40_000_000;
const maxSide = 20_000;

/** Checks that the bytes are a whole picture of a kind and a size that may be decoded. */
export function readHeader(bytes: Uint8Array): PictureHeader {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const format = formatOf(view);
  if (format === undefined) return { reason: otherKind(view) };
  const found = readers[format](view);
  if (found === 'cut') return { reason: `the ${names[format]} is cut off` };
  if (found === undefined) return { reason: `the ${names[format]} is damaged` };
  if ('reason' in found) return found;
  const { width, height } = found;
  if (width === 0 || height === 0) return { reason: `the ${names[format]} is damaged` };
  const isTooLarge = width > maxSide || height > maxSide || width * height > maxPixels;
  return isTooLarge ? { reason: `it has ${width} x ${height} pixels, which is too many` } : { format, width, height };
}

const names: Record<PictureFormat, string> = { jpeg: 'JPEG', png: 'PNG', webp: 'WebP' };

function formatOf(bytes: Buffer): PictureFormat | undefined {
  if (bytes.subarray(0, 3).toString('hex') === 'ffd8ff') return 'jpeg';
  if (bytes.subarray(0, 8).toString('hex') === '89504e470d0a1a0a') return 'png';
  return asciiAt(bytes, 0) === 'RIFF' && asciiAt(bytes, 8) === 'WEBP' ? 'webp' : undefined;
}

const asciiAt = (bytes: Buffer, at: number) => bytes.toString('latin1', at, at + 4);

/** Pictures of other kinds, and what hosts send instead of pictures. */
function otherKind(bytes: Buffer): string {
  if (bytes.length === 0) return 'its host sent nothing';
  const start = bytes.toString('latin1', 0, 512).trimStart().toLowerCase();
  const brand = asciiAt(bytes, 4) === 'ftyp' ? asciiAt(bytes, 8) : '';
  if (start.startsWith('gif8')) return 'a GIF, which is not shown';
  if (brand === 'avif' || brand === 'avis') return 'an AVIF, which is not shown';
  if (brand === 'heic' || brand === 'heix' || brand === 'mif1') return 'a HEIC picture, which is not shown';
  if (brand !== '') return 'a video, not a picture';
  if (start.includes('<svg')) return 'an SVG, which is not shown';
  return start.startsWith('<') ? 'a web page, not a picture' : 'not a picture';
}

interface Size {
  width: number;
  height: number;
}

type Reading = Size | 'cut' | { reason: string } | undefined;

const readers: Record<PictureFormat, (bytes: Buffer) => Reading> = { jpeg: readJpeg, png: readPng, webp: readWebp };

/** From segment to segment to the end of the picture. Libraries would fill up with grey what is missing. */
function readJpeg(bytes: Buffer): Reading {
  let size: Size | undefined;
  let at = 2;
  while (at + 4 <= bytes.length) {
    if (bytes[at] !== 0xff) {
      // Picture data after the head of a scan: on to the next marker.
      at = bytes.indexOf(0xff, at);
      if (at < 0) return 'cut';
      continue;
    }
    const marker = bytes[at + 1] ?? 0;
    if (marker === 0xd9) return size;
    const hasLength = marker !== 0 && marker !== 0xff && marker !== 0x01 && !(marker >= 0xd0 && marker <= 0xd8);
    if (isFrame(marker) && at + 9 <= bytes.length) {
      // A second frame could be larger than the one that was checked.
      if (size !== undefined) return undefined;
      size = { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    }
    at += !hasLength ? (marker === 0xff ? 1 : 2) : 2 + bytes.readUInt16BE(at + 2);
  }
  return at + 2 <= bytes.length && bytes.readUInt16BE(at) === 0xffd9 ? size : 'cut';
}

/** SOF markers, without those for tables and extensions among them. */
const isFrame = (marker: number) =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;

/** From chunk to chunk to the last one. */
function readPng(bytes: Buffer): Reading {
  if (bytes.length < 24) return 'cut';
  if (asciiAt(bytes, 12) !== 'IHDR') return undefined;
  const size = { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  for (let at = 8; at + 12 <= bytes.length; at += 12 + bytes.readUInt32BE(at))
    if (asciiAt(bytes, at + 4) === 'IEND') return size;
  return 'cut';
}

function readWebp(bytes: Buffer): Reading {
  if (bytes.length < 30 || bytes.length < 8 + bytes.readUInt32LE(4)) return 'cut';
  const kind = asciiAt(bytes, 12);
  if (kind === 'VP8X') {
    if (((bytes[20] ?? 0) & 2) !== 0) return { reason: 'an animated WebP, which is not shown' };
    return { width: 1 + bytes.readUIntLE(24, 3), height: 1 + bytes.readUIntLE(27, 3) };
  }
  if (kind === 'VP8L') {
    const bits = bytes.readUInt32LE(21);
    return { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) };
  }
  if (kind !== 'VP8 ') return undefined;
  return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
}
