import { createRequire } from 'node:module';
import { basename } from 'node:path';

/** Files of packages, which are read when they are first needed. The build puts them beside the bundle. */
export const packagedFiles = {
  jpegDecoder: '@jsquash/jpeg/codec/dec/mozjpeg_dec.wasm',
  jpegEncoder: '@jsquash/jpeg/codec/enc/mozjpeg_enc.wasm',
  pngDecoder: '@jsquash/png/codec/pkg/squoosh_png_bg.wasm',
  webpDecoder: '@jsquash/webp/codec/dec/webp_dec.wasm',
  regularFont: '@fontsource/inter/files/inter-latin-400-normal.woff',
  boldFont: '@fontsource/inter/files/inter-latin-700-normal.woff',
} as const;

export function packagedFile(name: keyof typeof packagedFiles): string | URL {
  const path = packagedFiles[name];
  const fromSources = import.meta.url.endsWith('.ts');
  return fromSources ? createRequire(import.meta.url).resolve(path) : new URL(basename(path), import.meta.url);
}
