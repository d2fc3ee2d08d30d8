import { parentPort } from 'node:worker_threads';
import { Canvas } from '../raster/canvas.ts';
import { decodeJpeg, decodePng, decodeWebp, encodeJpeg } from '../raster/codecs.ts';
import type { Raster } from '../raster/raster.ts';
import { drawSheet } from './draw-sheet.ts';
import type { DrawReply, DrawRequest } from './messages.ts';
import type { PictureFormat } from './picture-header.ts';

/**
 * The thread in which pictures from outside are decoded: it has no environment, no standard output, little memory, and is
 * ended where it takes too long.
 */
const decoders: Record<PictureFormat, (bytes: Uint8Array) => Promise<Raster>> = {
  jpeg: decodeJpeg,
  png: decodePng,
  webp: decodeWebp,
};

const thumbnailQuality = 85;

async function answer(request: DrawRequest): Promise<DrawReply> {
  if (request.type === 'sheet') return drawSheet(request);
  const { format, bytes, side } = request;
  const raster = await decoders[format](bytes);
  return encodeJpeg(fitted(raster, side), thumbnailQuality);
}

/** Never larger than it is. */
function fitted(raster: Raster, side: number): Raster {
  const scale = Math.min(1, side / Math.max(raster.width, raster.height));
  const size = {
    width: Math.max(1, Math.round(raster.width * scale)),
    height: Math.max(1, Math.round(raster.height * scale)),
  };
  const canvas = new Canvas(size.width, size.height);
  canvas.draw(raster, { x: 0, y: 0, ...size }, 'cover');
  return canvas;
}

parentPort?.on('message', (request: DrawRequest) => {
  answer(request)
    .catch(() => undefined)
    .then((reply) => parentPort?.postMessage(reply));
});
// Ready for the first request.
parentPort?.postMessage(undefined);
