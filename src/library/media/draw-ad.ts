import { createHash } from 'node:crypto';
import type { Ad } from '../../api/resource-schemas.ts';
import { Canvas } from '../../raster/canvas.ts';
import { encodeJpeg } from '../../raster/codecs.ts';
import { canDraw } from '../../raster/text.ts';
import { bare, card, SIDE, still, withHeadline } from './layouts.ts';
import { paletteAt } from './palettes.ts';
import { drawMark, type Scene } from './scene.ts';
import { shapeFor } from './shape-for.ts';
import { shapes } from './shapes.ts';

/** Fine enough for letters, and about 25 KB. */
const QUALITY = 78;

/** The picture of an ad: the same every time. @param nr 0 for the main picture, 1 and up for cards */
export async function drawAd(ad: Ad, nr: number): Promise<Uint8Array> {
  const scene = sceneOf(ad, nr);
  layoutOf(ad, nr, scene)(scene);
  return encodeJpeg(scene.canvas, QUALITY);
}

/** The advertiser's logo: its first letter on its colours. */
export async function drawLogo(ad: Ad): Promise<Uint8Array> {
  const { paper, dark, body } = paletteOf(ad);
  const canvas = new Canvas(240, 240);
  canvas.fillRect(
    { x: 0, y: 0, width: 240, height: 240 },
    { shape: 'linear', from: [0, 0], to: [240, 240], colours: [body, dark] },
  );
  drawMark(canvas, drawable(nameOf(ad)), { x: 120, y: 120, radius: 84, colour: dark, on: paper });
  return encodeJpeg(canvas, QUALITY);
}

function sceneOf(ad: Ad, nr: number): Scene {
  const shown = ad.cards?.[nr - 1];
  const title = shown?.title ?? ad.headline ?? ad.productTitle;
  return {
    canvas: new Canvas(SIDE, SIDE),
    palette: paletteOf(ad),
    chance: numbersFrom(`${ad.id} ${nr}`),
    shape: shapes[shapeFor([shown ? String(title) : ad.productTitle, ad.headline, ad.ctaType])],
    brand: drawable(nameOf(ad)),
    headline: drawable(title),
    action: sentence(drawable(ad.ctaType) || 'LEARN_MORE'),
    discount: shown ? '' : discountIn(`${ad.headline} ${ad.body}`.slice(0, 2000)),
  };
}

function layoutOf(ad: Ad, nr: number, { headline, chance }: Scene) {
  if (nr > 0) return card(nr);
  if (ad.media?.some(({ type }) => type === 'VID')) return still;
  return (headline && withHeadline[Math.floor((chance[2] ?? 0) * (withHeadline.length - 0.001))]) || bare;
}

const nameOf = (ad: Ad) => ad.page?.pageName ?? ad.displayUrl;

/** One line of text that the font can draw, or nothing. No more than ever fits is looked at. */
function drawable(text: unknown): string {
  const line = typeof text === 'string' ? text.slice(0, 300).replace(/\s+/g, ' ').trim() : '';
  return canDraw(line) ? line : '';
}

/** As an offer says it: 98 % of something is no discount. */
const DISCOUNT = /(?<![\d.,])([1-5]\d|5) ?[%٪％]/;

function discountIn(text: string): string {
  const [, percent] = DISCOUNT.exec(text) ?? [];
  return percent === undefined ? '' : `-${percent}%`;
}

const sentence = (constant: string) => constant.charAt(0) + constant.slice(1).replaceAll('_', ' ').toLowerCase();

const paletteOf = (ad: Ad) => paletteAt(numbersFrom(ad.pageId ?? nameOf(ad) ?? '')[0] ?? 0);

/** 32 numbers from 0 to 1, derived from a text. */
const numbersFrom = (text: string) => [...createHash('sha256').update(text).digest()].map((byte) => byte / 255);
