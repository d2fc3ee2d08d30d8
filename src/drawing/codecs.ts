import { readFile } from 'node:fs/promises';
import { createLazyGetter } from '../lazy-getter.ts';
import { locatePackagedFile } from '../packaged-files.ts';

/** A decoded picture. Pixels are stored row by row from the top left, four bytes each: red, green, blue and alpha. */
export interface Raster {
  width: number;
  height: number;
  data: Uint8ClampedArray;
}

/**
 * The paths of WebAssembly files in npm packages. The server reads each file on first use. The build copies the files
 * next to the bundled server.
 */
export const wasmFiles = {
  jpegDecoder: '@jsquash/jpeg/codec/dec/mozjpeg_dec.wasm',
  jpegEncoder: '@jsquash/jpeg/codec/enc/mozjpeg_enc.wasm',
  pngDecoder: '@jsquash/png/codec/pkg/squoosh_png_bg.wasm',
  webpDecoder: '@jsquash/webp/codec/dec/webp_dec.wasm',
} as const;

type DecodePicture = (bytes: ArrayBuffer) => Promise<Raster>;

/**
 * Loads the options for an Emscripten module. The options suppress the module's output, because the module prints
 * warnings about pictures, and standard output is reserved for MCP messages.
 */
const loadModuleOptions = async (fileKey: keyof typeof wasmFiles) => ({
  wasmBinary: await readFile(locatePackagedFile(wasmFiles[fileKey])),
  print: () => {},
  printErr: () => {},
});

/**
 * Creates a decoder. The decoder loads its WebAssembly module on first use, because most processes never decode a PNG
 * or WebP picture. After a failure, the decoder loads a new module for the next picture, because a failed call does not
 * release the memory of its module.
 */
function createDecoder(loadModule: () => Promise<DecodePicture>): (bytes: Uint8Array) => Promise<Raster> {
  let getDecodeFunction = createLazyGetter(loadModule);
  return async (bytes) => {
    const decode = await getDecodeFunction();
    try {
      return await decode(new Uint8Array(bytes).buffer);
    } catch (cause) {
      getDecodeFunction = createLazyGetter(loadModule);
      throw new Error('The picture is broken, or not of the format it was read as.', { cause });
    }
  };
}

/** Decodes a JPEG and rotates it according to its EXIF orientation. */
export const decodeJpeg = createDecoder(async () => {
  const { default: decode, init } = await import('@jsquash/jpeg/decode.js');
  await init(await loadModuleOptions('jpegDecoder'));
  return (bytes) => decode(bytes, { preserveOrientation: true });
});

/** Decodes a PNG. */
export const decodePng = createDecoder(async () => {
  const { decode, init } = await import('@jsquash/png/decode.js');
  await init(await readFile(locatePackagedFile(wasmFiles.pngDecoder)));
  return decode;
});

/** Decodes a WebP picture. */
export const decodeWebp = createDecoder(async () => {
  const { default: decode, init } = await import('@jsquash/webp/decode.js');
  await init(await loadModuleOptions('webpDecoder'));
  return decode;
});

const getJpegEncoder = createLazyGetter(async () => {
  const { default: encode, init } = await import('@jsquash/jpeg/encode.js');
  await init(await loadModuleOptions('jpegEncoder'));
  return encode;
});

/**
 * Encodes a picture as a baseline JPEG. A progressive JPEG would take twice as long and be only 5 % smaller.
 * @param quality a number from 0 (smallest file) to 100 (best picture)
 */
export async function encodeJpeg({ width, height, data }: Raster, quality: number): Promise<Uint8Array> {
  const encode = await getJpegEncoder();
  return new Uint8Array(await encode({ width, height, data, colorSpace: 'srgb' }, { quality, progressive: false }));
}
