import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename } from 'node:path';

/** Pixels from left to right and from top to bottom, each as red, green, blue and opacity. */
export interface Raster {
  width: number;
  height: number;
  data: Uint8ClampedArray;
}

/** Files of packages, which are read when they are first needed. The build puts them beside the bundle. */
export const packagedFiles = {
  jpegDecoder: '@jsquash/jpeg/codec/dec/mozjpeg_dec.wasm',
  jpegEncoder: '@jsquash/jpeg/codec/enc/mozjpeg_enc.wasm',
  pngDecoder: '@jsquash/png/codec/pkg/squoosh_png_bg.wasm',
  webpDecoder: '@jsquash/webp/codec/dec/webp_dec.wasm',
} as const;

export function locatePackagedFile(path: string): string | URL {
  const fromSources = import.meta.url.endsWith('.ts');
  return fromSources ? createRequire(import.meta.url).resolve(path) : new URL(basename(path), import.meta.url);
}

type DecodePicture = (bytes: ArrayBuffer) => Promise<Raster>;

/**
 * The options of Emscripten modules. By default these print problems of a picture, but standard output belongs to the
 * protocol.
 */
const loadModuleOptions = async (name: keyof typeof packagedFiles) => ({
  wasmBinary: await readFile(locatePackagedFile(packagedFiles[name])),
  print: () => {},
  printErr: () => {},
});

/** Loaded with the first picture, and again after one that cannot be read, because that leaves its memory behind. */
function createDecoder(load: () => Promise<DecodePicture>): (bytes: Uint8Array) => Promise<Raster> {
  let decodePromise: Promise<DecodePicture> | undefined;
  return async (bytes) => {
    decodePromise ??= load();
    const decode = await decodePromise;
    try {
      // biome-ignore lint/nursery/useAwaitThenable: the rule does not see that `loaded` holds a function that returns a promise.
      return await decode(new Uint8Array(bytes).buffer);
    } catch (cause) {
      decodePromise = undefined;
      throw new Error('The picture is broken, or not of the format it was read as.', { cause });
    }
  };
}

/** The decoded picture, turned upright as the camera noted it. */
export const decodeJpeg = createDecoder(async () => {
  const { default: decode, init } = await import('@jsquash/jpeg/decode.js');
  await init(await loadModuleOptions('jpegDecoder'));
  return (bytes) => decode(bytes, { preserveOrientation: true });
});

export const decodePng = createDecoder(async () => {
  const { decode, init } = await import('@jsquash/png/decode.js');
  await init(await readFile(locatePackagedFile(packagedFiles.pngDecoder)));
  return decode;
});

export const decodeWebp = createDecoder(async () => {
  const { default: decode, init } = await import('@jsquash/webp/decode.js');
  await init(await loadModuleOptions('webpDecoder'));
  return decode;
});

let encoder: Promise<typeof import('@jsquash/jpeg/encode.js').default> | undefined;

async function loadEncoder() {
  const { default: encode, init } = await import('@jsquash/jpeg/encode.js');
  await init(await loadModuleOptions('jpegEncoder'));
  return encode;
}

/** Encodes a JPEG. It is not progressive: that takes twice the time for 5% fewer bytes. @param quality from 0 to 100 */
export async function encodeJpeg({ width, height, data }: Raster, quality: number): Promise<Uint8Array> {
  encoder ??= loadEncoder();
  const encode = await encoder;
  return new Uint8Array(await encode({ width, height, data, colorSpace: 'srgb' }, { quality, progressive: false }));
}
