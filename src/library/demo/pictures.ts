import { readFile } from 'node:fs/promises';
import type { Ad } from '../../api/schemas.ts';
import { advertisers } from './market-tables.ts';

/**
 * Pictures of the demo's ads: files that `scripts/demo-pictures` draws. Each product has one with its price and a
 * sticker, one with a headline, and a tall one; each advertiser has a logo.
 */
type Picture = { name: string; width: number; height: number };

type Shown = Pick<Ad, 'id' | 'displayUrl' | 'productTitle' | 'headline' | 'body' | 'displayFormat' | 'cards'>;

/** @param file as in the address: `0.jpg` for the ad itself, `1.jpg` and up for its cards, `logo.jpg` */
export function pictureOf(ad: Shown, file: string): Picture | undefined {
  const advertiser = advertisers.find(({ domain }) => domain === ad.displayUrl);
  if (advertiser === undefined) return;
  const brand = advertiser.domain.replace('.example', '');
  if (file === 'logo.jpg') return { name: `${brand}-logo`, width: 160, height: 160 };
  const nr = /^\d{1,3}\.jpg$/.test(file) ? Number.parseInt(file, 10) : Number.NaN;
  const card = ad.cards?.[nr - 1];
  if (nr !== 0 && card === undefined) return;
  const title = String(card?.title ?? ad.productTitle).toLowerCase();
  const product =
    Math.max(
      0,
      advertiser.products.findIndex(({ name }) => name.toLowerCase() === title),
    ) + 1;
  const kind = nr === 0 ? kindOf(ad) : cardKinds[(nr - 1) % cardKinds.length];
  return { name: `${brand}-${product}-${kind}`, width: 384, height: kind === 'tall' ? 480 : 384 };
}

/** A carousel goes through the advertiser's products before it shows one again. */
const cardKinds = ['meet', 'meet', 'offer', 'offer'];

/** Stills of videos are tall. A discount in the copy, points aside, has its sticker in the picture. */
function kindOf({ id, displayFormat, headline, body }: Shown): string {
  if (displayFormat === 'VIDEO') return 'tall';
  const copy = `${headline}\n${body}`.replaceAll(/^✔.*$/gm, '');
  if (/%|: play free/.test(copy)) return 'offer';
  return Number.parseInt(id.slice(-1), 16) % 2 === 0 ? 'meet' : 'tall';
}

/** The build puts the files beside the code that reads them, in a folder of the same name. */
export const readPicture = ({ name }: Picture): Promise<Uint8Array<ArrayBuffer>> =>
  readFile(new URL(`pictures/${name}.webp`, import.meta.url)) as Promise<Uint8Array<ArrayBuffer>>;
