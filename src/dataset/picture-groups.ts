import { type DatasetContents, normalizeAdId } from '../storage/dataset.ts';
import type { StoredItem } from '../storage/item-versions.ts';
import { maxRecords, type UserRecords } from '../storage/user-records.ts';
import { type AdPicture, selectPicture } from '../views/ad-media.ts';
import type { Fields } from '../views/view.ts';
import { createEventLoopYielder } from '../workers/event-loop-yielder.ts';

export interface GroupedPicture {
  /** Difference hash: 16 hex digits. */
  picture: string;
  /** The id of the ad whose picture is the first of its group; null for a picture that is nearly plain. */
  group: string | null;
}

/** As `picturePrint` writes it. */
const print = /^([\da-f]{8})([\da-f]{8})(-?)$/;
/** Bits in which two pictures of a group may differ. */
const maxDistance = 8;

export const compareArrival = (left: StoredItem, right: StoredItem): number =>
  left.firstOrder - right.firstOrder || (normalizeAdId(left.id) < normalizeAdId(right.id) ? -1 : 1);

/** In the order in which ads came, so every process finds the same groups. @param prints by `normalizeAdId` */
export async function groupPictures(ads: DatasetContents['ads'], prints: ReadonlyMap<string, unknown>) {
  const groups = new Map<string, string>();
  const grouped = new Map<string, GroupedPicture>();
  const hashed = ads.filter(({ id }) => prints.has(normalizeAdId(id)));
  const firsts = { ids: [] as string[], halves: new Int32Array(2 * hashed.length) };
  const pause = createEventLoopYielder();
  for (const { id } of hashed.sort(compareArrival)) {
    await pause();
    const [, first = '', second = '', isPlain] = print.exec(String(prints.get(normalizeAdId(id)))) ?? [];
    if (first === '') continue;
    const picture = first + second;
    if (isPlain === '-') {
      grouped.set(normalizeAdId(id), { picture, group: null });
      continue;
    }
    let group = groups.get(picture);
    if (group === undefined) {
      const halves = [Number.parseInt(first, 16), Number.parseInt(second, 16)] as const;
      group = nearest(firsts, halves);
      if (group === undefined) firsts.halves.set(halves, 2 * firsts.ids.push(id) - 2);
      group ??= id;
      groups.set(picture, group);
    }
    grouped.set(normalizeAdId(id), { picture, group });
  }
  return grouped;
}

/** Thousands of pictures are compared with thousands: two numbers of 32 bits for each, side by side. */
function nearest({ ids, halves }: { ids: string[]; halves: Int32Array }, [high, low]: readonly [number, number]) {
  let found: string | undefined;
  let least = maxDistance + 1;
  for (let at = 0; at < ids.length; at++) {
    const distance = bitsIn((halves[2 * at] as number) ^ high) + bitsIn((halves[2 * at + 1] as number) ^ low);
    if (distance < least) [found, least] = [ids[at], distance];
  }
  return found;
}

function bitsIn(number: number): number {
  const pairs = number - ((number >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

export interface FetchedPicture {
  adId: string;
  picture: AdPicture;
  fetched: { print?: string; reason?: string } | undefined;
}

/** Portraits of advertisers and later cards do not. */
function standsForAd(picture: AdPicture): picture is Extract<AdPicture, { address: string }> {
  if ('reason' in picture || picture.shows === 'portrait') return false;
  return typeof picture.shows !== 'object' || picture.shows.card === 1;
}

/** The print of an ad's picture where a local library keeps the picture: its address holds the print. */
export function readPerceptualHash(ad: Fields): string | undefined {
  const picture = selectPicture(ad, { now: 0 });
  return standsForAd(picture) ? pictureAddress.exec(picture.address)?.[1] : undefined;
}

const pictureAddress = /\/media\/kept\/[\da-f]{64}\.([\da-f]{16}-?)\.[a-z]+$/;

/**
 * Keeps the prints of pictures. Where there are too many, those that were kept first go; where they cannot be kept, the
 * pictures are fetched again. @returns the prints by `normalizeAdId`
 */
export async function storePerceptualHashes(userRecords: UserRecords, fetched: readonly FetchedPicture[]) {
  const prints = new Map<string, string>();
  for (const { adId, picture, fetched: came } of fetched)
    if (came?.print && standsForAd(picture)) prints.set(normalizeAdId(adId), came.print);
  if (prints.size === 0) return prints;
  const keep = userRecords.update('picture', (kept) => {
    const put = [...prints].filter(([id, one]) => kept.get(id) !== one);
    const more = kept.size + put.filter(([id]) => !kept.has(id)).length - maxRecords.picture;
    const removed = more > 0 ? [...kept.keys()].filter((id) => !prints.has(id)).slice(0, more) : [];
    return { put, removed, result: undefined };
  });
  await keep.catch(() => {});
  return prints;
}
