import { hash } from 'node:crypto';
import { type DatasetContents, normalizeAdId } from '../storage/dataset.ts';
import type { StoredItem } from '../storage/item-versions.ts';
import { maxRecords, type UserRecords } from '../storage/user-records.ts';
import { type AdPicture, listMediaUrls, selectPicture } from '../views/ad-media.ts';
import { getMediaPath } from '../views/media-urls.ts';
import type { UntypedFields } from '../views/view.ts';
import { createEventLoopYielder } from '../workers/event-loop-yielder.ts';

/**
 * The perceptual hash of an ad's picture, and the group of ads whose pictures look similar. Similar pictures have
 * similar hashes.
 */
export interface GroupedPicture {
  /** The perceptual hash (a difference hash) of the picture, as 16 hexadecimal digits such as `f0e4c2d1a8b09c7e`. */
  perceptualHash: string;
  /**
   * The id of the first ad in the group. Null for a picture of nearly one color, because all such pictures look
   * similar.
   */
  groupId: string | null;
}

/**
 * Matches a perceptual hash of a picture: two halves of 8 hexadecimal digits, followed by `-` if the picture has nearly
 * one color. `failed` follows the hash if the last attempt to fetch the picture failed.
 */
const perceptualHashPattern = /^([\da-f]{8})([\da-f]{8})(-?)(?: failed)?$/;
/**
 * The maximum number of bits in which the 64-bit hash of a picture may differ from the hash of the first picture in a
 * group. A picture that differs more looks different, so it does not join the group.
 */
const maxDifferingBits = 8;

/** Compares two ads by the order in which they first arrived in the dataset. */
export const compareByArrival = (firstAd: StoredItem, secondAd: StoredItem): number =>
  firstAd.firstSequenceNumber - secondAd.firstSequenceNumber ||
  (normalizeAdId(firstAd.id) < normalizeAdId(secondAd.id) ? -1 : 1);

/**
 * Groups ads whose pictures look nearly the same. Processes ads in the order of their arrival, so that every process
 * builds the same groups.
 * @param perceptualHashes perceptual hashes by ad id in lower case
 * @returns the grouped pictures by ad id in lower case
 */
export async function groupPictures(ads: DatasetContents['ads'], perceptualHashes: ReadonlyMap<string, unknown>) {
  const groupIdByHash = new Map<string, string>();
  const picturesById = new Map<string, GroupedPicture>();
  const adsWithHash = ads.filter(({ id }) => perceptualHashes.has(normalizeAdId(id)));
  const firstPictures = { ids: [] as string[], hashHalves: new Int32Array(2 * adsWithHash.length) };
  const yieldToEventLoop = createEventLoopYielder();
  for (const { id } of adsWithHash.sort(compareByArrival)) {
    await yieldToEventLoop();
    const [, firstHalf = '', secondHalf = '', singleColorMark] =
      perceptualHashPattern.exec(String(perceptualHashes.get(normalizeAdId(id)))) ?? [];
    if (firstHalf === '') continue;
    const perceptualHash = firstHalf + secondHalf;
    if (singleColorMark === '-') {
      picturesById.set(normalizeAdId(id), { perceptualHash, groupId: null });
      continue;
    }
    let groupId = groupIdByHash.get(perceptualHash);
    if (groupId === undefined) {
      const hashHalves = [Number.parseInt(firstHalf, 16), Number.parseInt(secondHalf, 16)] as const;
      groupId = findNearestGroup(firstPictures, hashHalves);
      if (groupId === undefined) firstPictures.hashHalves.set(hashHalves, 2 * firstPictures.ids.push(id) - 2);
      groupId ??= id;
      groupIdByHash.set(perceptualHash, groupId);
    }
    picturesById.set(normalizeAdId(id), { perceptualHash, groupId });
  }
  return picturesById;
}

/**
 * Returns the id of the group whose hash differs least from a picture's hash, if at most `maxDifferingBits` bits
 * differ. Each hash is stored as two 32-bit numbers in one array, because comparing thousands of pictures with
 * thousands of groups must be fast.
 */
function findNearestGroup(
  { ids: groupIds, hashHalves }: { ids: string[]; hashHalves: Int32Array },
  [firstHalf, secondHalf]: readonly [number, number],
) {
  let nearestId: string | undefined;
  let fewestDifferingBits = maxDifferingBits + 1;
  for (let index = 0; index < groupIds.length; index++) {
    const differingBits =
      countSetBits((hashHalves[2 * index] as number) ^ firstHalf) +
      countSetBits((hashHalves[2 * index + 1] as number) ^ secondHalf);
    if (differingBits < fewestDifferingBits) [nearestId, fewestDifferingBits] = [groupIds[index], differingBits];
  }
  return nearestId;
}

/** Counts the bits with the value 1 in a 32-bit number. */
function countSetBits(bitPattern: number): number {
  const pairCounts = bitPattern - ((bitPattern >>> 1) & 0x55555555);
  const fourBitCounts = (pairCounts & 0x33333333) + ((pairCounts >>> 2) & 0x33333333);
  return Math.imul((fourBitCounts + (fourBitCounts >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** A tool call's attempt to fetch the picture of an ad, with the result. */
export interface PictureAttempt {
  adId: string;
  picture: AdPicture;
  fetchResult: { perceptualHash?: string; reason?: string; isLate?: boolean } | undefined;
}

/**
 * Returns true if a picture represents its ad. The profile picture of the advertiser and the pictures of later carousel
 * cards do not represent the ad.
 */
function isPictureOfAd(picture: AdPicture): picture is Extract<AdPicture, { url: string }> {
  if ('reason' in picture || picture.origin === 'profilePicture') return false;
  return typeof picture.origin !== 'object' || picture.origin.cardNumber === 1;
}

/**
 * Marks a picture that could not be fetched. The mark is stored instead of a perceptual hash or, if the same picture
 * was fetched before, in addition to its hash.
 */
const failedPictureMarker = 'failed';
/**
 * Returns true if the last attempt to fetch a picture failed. The value may also contain the hash of an earlier
 * attempt.
 */
export const isFailedPicture = (perceptualHash: unknown): boolean =>
  String(perceptualHash).endsWith(failedPictureMarker);

/**
 * Builds the stored record of a fetched picture. It contains the perceptual hash, or `failedPictureMarker`, and
 * identifies the file, because the ad may get another picture later.
 */
const buildPictureRecord = (perceptualHash: string, pictureUrl: string): string =>
  `${perceptualHash} ${hashMediaPath(pictureUrl)}`;

const hashMediaPath = (mediaUrl: string): string =>
  hash('sha256', getMediaPath(mediaUrl) ?? '', 'base64url').slice(0, 12);

/**
 * Returns the perceptual hash, `failedPictureMarker`, or both with a space between them, from the stored record of a
 * picture. Returns undefined if the ad no longer contains this picture.
 */
export function readPictureRecord(record: unknown, ad: UntypedFields): string | undefined {
  const [perceptualHash, pathHash, failure] = String(record).split(' ');
  const isCurrent = listMediaUrls(ad).some((url) => hashMediaPath(url) === pathHash);
  if (!isCurrent) return undefined;
  return failure === undefined ? perceptualHash : `${perceptualHash} ${failure}`;
}

/**
 * Returns whether the picture of an ad can be shown:
 *
 * - `none`: the ad has no picture of its own.
 * - `expired`: the picture URLs of the ad no longer work.
 * - `available`: the last attempt to fetch the picture succeeded.
 * - `failed`: the last attempt to fetch the picture failed.
 * - null: nobody has tried to fetch the picture.
 */
export function findPictureState(
  ad: UntypedFields,
  { now, perceptualHash }: { now: number; perceptualHash: unknown },
): 'available' | 'expired' | 'none' | 'failed' | null {
  const picture = selectPicture(ad, { now });
  if ('reason' in picture && picture.expiredUrl !== undefined) return 'expired';
  if (!isPictureOfAd(picture)) return 'none';
  if (perceptualHash === undefined) return null;
  return isFailedPicture(perceptualHash) ? 'failed' : 'available';
}

/**
 * Returns the perceptual hash of an ad's picture if a local library (a server of imported ads) stores the picture. The
 * URL of such a picture contains the hash. Returns undefined for any other picture.
 */
export function readPerceptualHash(ad: UntypedFields): string | undefined {
  const picture = selectPicture(ad, { now: 0 });
  return isPictureOfAd(picture) ? storedPictureUrlPattern.exec(picture.url)?.[1] : undefined;
}

const storedPictureUrlPattern = /\/media\/kept\/[\da-f]{64}\.([\da-f]{16}-?)\.[a-z]+$/;

/**
 * Returns the record to store after an attempt to fetch a picture. A failure does not replace the hash of the same
 * file, because the URLs of many ad networks stop working after some days, and the ad would then leave its group of
 * similar pictures.
 */
function mergePictureRecords(record: string, storedRecord: unknown): string {
  const [perceptualHash, pathHash] = record.split(' ');
  const [storedHash, storedPathHash] = String(storedRecord).split(' ');
  const isKnownPicture = storedPathHash === pathHash && storedHash !== failedPictureMarker;
  return perceptualHash === failedPictureMarker && isKnownPicture
    ? `${storedHash} ${pathHash} ${failedPictureMarker}`
    : record;
}

/**
 * Stores the perceptual hashes of fetched pictures, and which pictures could not be fetched. Removes the oldest records
 * if there are too many. Ignores errors, because the pictures can be fetched again.
 * @returns the new perceptual hashes by ad id in lower case
 */
export async function storePerceptualHashes(userRecords: UserRecords, fetchedPictures: readonly PictureAttempt[]) {
  const newHashes = new Map<string, string>();
  const newRecords = new Map<string, string>();
  for (const { adId, picture, fetchResult } of fetchedPictures) {
    if (fetchResult === undefined || !isPictureOfAd(picture)) continue;
    const id = normalizeAdId(adId);
    const { perceptualHash, reason, isLate } = fetchResult;
    if (perceptualHash) {
      newHashes.set(id, perceptualHash);
      newRecords.set(id, buildPictureRecord(perceptualHash, picture.url));
    } else if (reason !== undefined && !isLate && !newHashes.has(id))
      newRecords.set(id, buildPictureRecord(failedPictureMarker, picture.url));
  }
  if (newRecords.size === 0) return newHashes;
  const recordUpdate = userRecords.update('picture', (storedRecords) => {
    const changedRecords = [...newRecords]
      .map(([id, record]) => [id, mergePictureRecords(record, storedRecords.get(id))] as const)
      .filter(([id, record]) => record !== storedRecords.get(id));
    const surplusCount =
      storedRecords.size + changedRecords.filter(([id]) => !storedRecords.has(id)).length - maxRecords.picture;
    const remove =
      surplusCount > 0 ? [...storedRecords.keys()].filter((id) => !newRecords.has(id)).slice(0, surplusCount) : [];
    return { put: changedRecords, remove, result: undefined };
  });
  await recordUpdate.catch(() => {});
  return newHashes;
}
