import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import encodePng, { init as initPng } from '@jsquash/png/encode.js';
import encodeWebp, { init as initWebp } from '@jsquash/webp/encode.js';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { Canvas } from '../../src/raster/canvas.ts';
import { decodeJpeg, decodePng, decodeWebp, encodeJpeg, type Raster } from '../../src/raster/codecs.ts';

const picture = new Canvas(90, 60, [30, 90, 200]);
picture.fillRect({ x: 0, y: 0, width: 45, height: 60 }, [250, 200, 20]);

const files: Record<string, Uint8Array> = {};
const decoders = { jpeg: decodeJpeg, png: decodePng, webp: decodeWebp };

beforeAll(async () => {
  const wasm = (name: string) => readFileSync(createRequire(import.meta.url).resolve(name));
  await initPng(wasm('@jsquash/png/codec/pkg/squoosh_png_bg.wasm'));
  await initWebp({ wasmBinary: wasm('@jsquash/webp/codec/enc/webp_enc_simd.wasm') } as never);
  const image = { width: 90, height: 60, data: picture.data, colorSpace: 'srgb' as const };
  files.jpeg = await encodeJpeg(picture, 90);
  files.png = new Uint8Array(await encodePng(image));
  files.webp = new Uint8Array(await encodeWebp(image, { lossless: 1 }));
});

const corners = ({ width, data }: Raster) =>
  [0, width - 1].flatMap((x) => [...data.slice(x * 4, x * 4 + 4)]).map((value) => Math.round(value / 8));

test.each(['jpeg', 'png', 'webp'] as const)(
  'a %s is read, and refused where it is broken, without a word',
  async (format) => {
    const printed = (['log', 'info', 'warn', 'error'] as const).map((way) => vi.spyOn(console, way));
    onTestFinished(() => void printed.map((way) => way.mockRestore()));
    const [decode, bytes] = [decoders[format], files[format] ?? new Uint8Array()];
    const broken = {
      empty: new Uint8Array(),
      cut: bytes.slice(0, 20),
      'of another format': files[format === 'png' ? 'jpeg' : 'png'] ?? new Uint8Array(),
    };
    for (const [how, wrong] of Object.entries(broken)) {
      await expect(decode(wrong), how).rejects.toThrow('The picture is broken');
      const { width, height, ...read } = await decode(bytes);
      expect([width, height]).toEqual([90, 60]);
      expect(corners({ width, height, ...read })).toEqual(corners(picture));
    }
    for (const way of printed) expect(way).not.toHaveBeenCalled();
  },
);

test('a JPEG is turned the way it was taken', async () => {
  const turned = Buffer.from('45786966000049492a000800000001001201030001000000' + '0600000000000000', 'hex');
  const header = Buffer.from([0xff, 0xd8, 0xff, 0xe1, 0, turned.length + 2]);
  const jpeg = files.jpeg ?? new Uint8Array();
  const { width, height } = await decodeJpeg(Buffer.concat([header, turned, jpeg.slice(2)]));
  expect([width, height]).toEqual([60, 90]);
});
