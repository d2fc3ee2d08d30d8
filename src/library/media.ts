import { createHash } from 'node:crypto';
import type { Ad } from '../api/resource-schemas.ts';
import { silhouetteFor } from './silhouettes.ts';

/**
 * Pictures for ads: a scene in the advertiser's colours with the advertiser's name, a headline and the call to action.
 * The same ad always gets the same picture. All text in it comes from the ad, and is escaped.
 */
const side = 1080;

/** @param nr 0 for the main picture, 1 and up for cards @param moving whether to draw the ad's video */
export function drawAd(ad: Ad, nr: number, moving: boolean): string {
  const advertiser = ad.page?.pageName ?? ad.displayUrl ?? '';
  const card = nr > 0 ? ad.cards?.[nr - 1] : undefined;
  const title = String(card?.title ?? ad.headline ?? ad.productTitle ?? advertiser);
  const sub = String(card?.body ?? ad.linkDescription ?? '');
  const colours = paletteOf(ad.pageId ?? advertiser);
  const chance = numbersFrom(`${ad.id} ${nr}`);
  const label = (ad.ctaType ?? 'LEARN_MORE').replaceAll('_', ' ');
  return svg(side, [
    `<rect width="${side}" height="${side}" fill="url(#sky)"/>`,
    gradient(colours),
    scene(
      chance,
      colours,
      silhouetteFor([card ? title : ad.productTitle, ad.headline, ad.ctaType], colours[0]),
      moving,
    ),
    textLine(advertiser, { y: 110, size: 40, maxColumns: 30, weight: 600, colour: colours[2] }),
    `<rect y="690" width="${side}" height="390" fill="#fffffff0"/>`,
    ...wrapped(title, 28).map((line, at) =>
      textLine(line, { y: 775 + at * 70, size: 54, maxColumns: 28, weight: 800, colour: colours[2] }),
    ),
    textLine(sub, { y: 925, size: 36, maxColumns: 46, weight: 400, colour: '#444' }),
    `<rect x="60" y="960" width="${80 + label.length * 25}" height="76" rx="38" fill="${colours[2]}"/>`,
    textLine(label, { y: 1010, x: 100, size: 34, maxColumns: 24, weight: 700 }),
    moving ? '<circle cx="540" cy="380" r="88" fill="#0009"/><path d="M512 332l82 48-82 48z" fill="#fff"/>' : '',
  ]);
}

/** The advertiser's logo: its first letter on its colours. */
export function drawLogo(ad: Ad): string {
  const name = ad.page?.pageName ?? ad.displayUrl ?? '?';
  const colours = paletteOf(ad.pageId ?? name);
  const [letter = '?'] = name;
  return svg(240, [
    gradient(colours),
    '<rect width="240" height="240" fill="url(#sky)"/>',
    `<circle cx="120" cy="120" r="92" fill="${colours[2]}"/>`,
    `<text x="120" y="158" text-anchor="middle" font-size="108" font-weight="800" fill="#fff">${escaped(letter.toUpperCase())}</text>`,
  ]);
}

const svg = (size: number, parts: string[]) =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" width="${size}" height="${size}" font-family="system-ui, 'Noto Sans', sans-serif">${parts.join('')}</svg>`;

type Palette = [light: string, bright: string, dark: string];

function paletteOf(advertiser: string): Palette {
  const hue = Math.floor((numbersFrom(advertiser)[0] ?? 0) * 360);
  return [`hsl(${hue} 70% 88%)`, `hsl(${(hue + 30) % 360} 65% 66%)`, `hsl(${hue} 55% 26%)`];
}

const gradient = ([light, bright]: Palette) =>
  `<defs><linearGradient id="sky" x2="0.4" y2="1"><stop stop-color="${light}"/><stop offset="1" stop-color="${bright}"/></linearGradient></defs>`;

/** 32 numbers from 0 to 1, derived from a text. */
const numbersFrom = (text: string) => [...createHash('sha256').update(text).digest()].map((byte) => byte / 255);

/** Hills, a sun and a silhouette of the product. */
function scene(chance: number[], [light, , dark]: Palette, silhouette: string, moving: boolean): string {
  const at = (index: number, low: number, high: number) => Math.round(low + (chance[index] ?? 0.5) * (high - low));
  const drift = moving
    ? '<animateTransform attributeName="transform" type="translate" values="0 0;0 -36;0 0" dur="4s" repeatCount="indefinite"/>'
    : '';
  return [
    `<circle cx="${at(11, 150, 930)}" cy="${at(12, 180, 320)}" r="${at(13, 70, 150)}" fill="#fff8"/>`,
    `<path d="M0 ${at(14, 480, 600)}q270-${at(15, 60, 220)} 540 0t540 0V720H0z" fill="${light}"/>`,
    `<path d="M0 ${at(16, 560, 640)}q360-${at(17, 30, 160)} 720 0t720 0V720H0z" fill="#ffffffa0"/>`,
    `<ellipse cx="${540 + at(1, -60, 60)}" cy="625" rx="230" ry="22" fill="#0002"/>`,
    `<g fill="${dark}" color="${dark}" transform="translate(${at(1, -60, 60)})"><g>${silhouette}${drift}</g></g>`,
  ].join('');
}

type TextLine = { y: number; x?: number; size: number; maxColumns: number; weight: number; colour?: string };

function textLine(text: string, { y, x = 60, size, maxColumns, weight, colour = '#fff' }: TextLine): string {
  const shown = width(text) > maxColumns ? `${cut(text, maxColumns - 1)}…` : text;
  const rightToLeft = /\p{Script=Arabic}|\p{Script=Hebrew}/u.test(shown);
  const start = rightToLeft ? `x="${side - x}" text-anchor="end"` : `x="${x}"`;
  return `<text ${start} y="${y}" font-size="${size}" font-weight="${weight}" fill="${colour}">${escaped(shown)}</text>`;
}

/** The columns that a text takes; East Asian letters are wider. */
const width = (text: string) =>
  [...text].reduce((sum, letter) => sum + (/[\u1100-\u11ff\u2e80-\uffef]/.test(letter) ? 1.8 : 1), 0);

function cut(text: string, columns: number): string {
  let kept = '';
  for (const letter of text) {
    if (width(kept + letter) > columns) break;
    kept += letter;
  }
  return kept;
}

/** At most two lines. */
function wrapped(text: string, columns: number): string[] {
  const line = cut(text, columns);
  if (line === text) return [text];
  const space = line.lastIndexOf(' ');
  const first = space > 0 ? line.slice(0, space) : line;
  return [first, text.slice(first.length).trim()];
}

/** Escapes text for XML, and drops characters that XML 1.0 forbids. */
const escaped = (text: string) =>
  text
    .replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '')
    .replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
