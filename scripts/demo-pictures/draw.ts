/**
 * `npx tsx scripts/demo-pictures/draw.ts [-- DOMAIN…]` draws the pictures of the demo's ads with Chromium and writes them
 * as WebP to src/library/demo/pictures. It needs the fonts of Debian's fonts-noto-core, fonts-noto-extra and
 * fonts-noto-cjk, and has to be run again only when advertisers, their products or the drawings change.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import encodeWebp, { init } from '@jsquash/webp/encode.js';
import { decodePng } from '../../src/raster/codecs.ts';
import { launchChromium } from '../../test/support/board/launch-chromium.ts';
import { advertisers } from '../demo-market/market.ts';
import { type Creative, creativeOf, css, kinds, logoOf } from './creatives.ts';

const folder = new URL('../../src/library/demo/pictures/', import.meta.url);
const only = process.argv.slice(2).filter((argument) => argument !== '--');
/** Designed 600 wide; this is what the files have. */
const scale = 0.64;
const quality = 34;

await init({
  wasmBinary: readFileSync(createRequire(import.meta.url).resolve('@jsquash/webp/codec/enc/webp_enc.wasm')),
  print: () => {},
  printErr: () => {},
} as never);
mkdirSync(folder, { recursive: true });
const browser = await launchChromium();
const page = await browser.newPage({ viewport: { width: 600, height: 750 }, deviceScaleFactor: scale });

/** A text that does not fit becomes smaller. */
const fit = `for (const box of document.querySelectorAll('.title, .sticker span, .brand span')) {
  const [wide, high] = box.matches('.sticker span') ? [96, 40] : [box.clientWidth, box.clientHeight];
  let size = Number.parseFloat(getComputedStyle(box).fontSize);
  while (size > 12 && (box.scrollHeight > high + 1 || box.scrollWidth > wide + 1)) box.style.fontSize = --size + 'px';
}`;

async function draw(name: string, { width, height, html }: Creative) {
  await page.setContent(`<!doctype html><style>${css}</style>${html}`);
  await page.evaluate(fit);
  const png = await page.screenshot({ clip: { x: 0, y: 0, width, height } });
  const { data, ...size } = await decodePng(png);
  const picture = { data, ...size, colorSpace: 'srgb' as const };
  const webp = await encodeWebp(picture, { quality, method: 6, sns_strength: 90 });
  writeFileSync(new URL(`${name}.webp`, folder), new Uint8Array(webp));
}

for (const [turn, advertiser] of advertisers.entries()) {
  const name = advertiser.domain.replace('.example', '');
  if (only.length > 0 && !only.includes(name)) continue;
  for (const nr of [0, 1])
    for (const [at, kind] of kinds.entries())
      await draw(`${name}-${nr + 1}-${kind}`, creativeOf(advertiser, nr, kind, turn + 2 * nr + at));
  await draw(`${name}-logo`, logoOf(advertiser, turn));
}
await browser.close();
