import { crc32, deflateSync } from 'node:zlib';

/** How a pixel is stored (PNG specification, *IHDR*). */
const colourTypes = { rgb: 2, rgba: 6 };

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** A PNG with 8 bits a channel. @param rows as it stores them, each after a byte that names its filter */
export function pngOf(
  { width, height, pixel }: { width: number; height: number; pixel: keyof typeof colourTypes },
  rows: Buffer,
): Buffer {
  const header = Buffer.from([...bytesOf(width), ...bytesOf(height), 8, colourTypes[pixel], 0, 0, 0]);
  const content = deflateSync(rows, { level: 9 });
  return Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', content), chunk('IEND', Buffer.alloc(0))]);
}

function bytesOf(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function chunk(type: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type), content]);
  return Buffer.concat([bytesOf(content.length), named, bytesOf(crc32(named))]);
}
