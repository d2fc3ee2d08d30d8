import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { crc32, deflateSync } from 'node:zlib';
import encodeWebp, { init } from '@jsquash/webp/encode.js';
import { Canvas, type Color } from '../../src/drawing/canvas.ts';
import { encodeJpeg } from '../../src/drawing/codecs.ts';
import { openPictureService, type PictureService, type PictureServiceOptions } from '../../src/pictures/pictures.ts';

// Creates valid and malicious pictures when a test needs them, so that the repository contains no third-party files.

export interface Sample {
  width?: number;
  height?: number;
  colour?: Color;
}

export const createJpeg = ({ width = 300, height = 200, colour = [200, 60, 40] }: Sample = {}): Promise<Uint8Array> =>
  encodeJpeg(new Canvas(width, height, colour), 80);

export async function createWebp({
  width = 300,
  height = 200,
  colour = [40, 60, 200],
}: Sample = {}): Promise<Uint8Array> {
  const wasm = createRequire(import.meta.url).resolve('@jsquash/webp/codec/enc/webp_enc_simd.wasm');
  await init({ wasmBinary: readFileSync(wasm) } as never);
  const { data } = new Canvas(width, height, colour);
  return new Uint8Array(await encodeWebp({ width, height, data, colorSpace: 'srgb' }));
}

interface PngParts {
  width?: number;
  height?: number;
  /** The compressed pixel data. Black by default. */
  pixels?: Uint8Array;
  /** Chunks between the header and the pixel data. */
  extra?: readonly Uint8Array[];
}

/** Creates an 8-bit grayscale PNG. */
export function createPng({ width = 300, height = 200, pixels, extra = [] }: PngParts = {}): Uint8Array {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head[8] = 8;
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    createPngChunk('IHDR', head),
    ...extra,
    createPngChunk('IDAT', pixels ?? deflateSync(Buffer.alloc((width + 1) * height))),
    createPngChunk('IEND', Buffer.alloc(0)),
  ]);
}

export function createPngChunk(type: string, data: Uint8Array): Uint8Array {
  const chunk = Buffer.concat([Buffer.alloc(4), Buffer.from(type), data, Buffer.alloc(4)]);
  chunk.writeUInt32BE(data.length, 0);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), chunk.length - 4);
  return chunk;
}

/** Creates a small JPEG whose header claims this size. */
export async function createJpegClaimingSize(width: number, height: number): Promise<Uint8Array> {
  const bytes = Buffer.from(await createJpeg());
  const frame = bytes.indexOf(Buffer.from('ffc0', 'hex'));
  bytes.writeUInt16BE(height, frame + 5);
  bytes.writeUInt16BE(width, frame + 7);
  return bytes;
}

const createSegment = (marker: number, data: readonly number[]) =>
  Buffer.from([0xff, marker, (data.length + 2) >> 8, (data.length + 2) & 255, ...data]);

/**
 * Creates a small file that takes minutes to decode: a progressive JPEG of 16 megapixels with thousands of empty scans.
 * The decoder goes through the whole picture for each scan.
 */
export function createScanBomb(scans: number): Uint8Array {
  const side = 4000;
  const high = [side >> 8, side & 255];
  // The only Huffman code stands for at least 16,384 empty blocks.
  const skipMany = createSegment(0xc4, [0x10, 1, ...new Array(15).fill(0), 0xe0]);
  const scan = Buffer.concat([createSegment(0xda, [1, 1, 0, 1, 5, 0]), Buffer.alloc(80, 0x55)]);
  return Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    createSegment(0xdb, [0, ...new Array(64).fill(1)]),
    createSegment(0xc2, [8, ...high, ...high, 1, 1, 0x11, 0]),
    skipMany,
    ...new Array(scans).fill(scan),
    Buffer.from([0xff, 0xd9]),
  ]);
}

/** Opens pictures that allow public hosts and the listed hosts. By default, DNS lookups find nothing. */
export const openTestPictures = (
  listedHosts: PictureServiceOptions['hosts']['listedHosts'],
  limits: PictureServiceOptions['limits'] = {},
  options: Partial<PictureServiceOptions> = {},
): PictureService =>
  openPictureService({
    hosts: { allowsPublicHosts: true, listedHosts },
    userAgent: 'ad-library-mcp/test',
    getTime: Date.now,
    random: () => 0,
    resolveHost: async () => [],
    limits,
    ...options,
  });
