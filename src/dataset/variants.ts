import { hash } from 'node:crypto';
import { computeFnv1a, sanitize } from '../views/safe-text.ts';

/**
 * Groups the ads of one advertiser page whose texts are nearly the same. Such a group is called a variant.
 *
 * Two texts are nearly the same if they share most of their overlapping sequences of three characters (shingles). All
 * digits count as the same digit, so that a changed price does not create a new variant. Similar texts are found by
 * MinHash bands, so the time per ad does not grow with the number of ads.
 *
 * Ads are added in the order of their arrival. An ad joins the first variant whose earliest ad is similar, or starts a
 * new variant with its own id. Adding an ad therefore never changes existing variants. If an ad changes or is removed,
 * the caller must rebuild the index of its page.
 */
export class VariantIndex {
  /** The hashes of the shingles (sequences of three characters) in the earliest ad of each variant, by variant id. */
  readonly #shingleHashesByVariantId = new Map<string, Uint32Array>();
  /** Variant ids by MinHash band, a hash of a sample of the shingles. Similar texts probably have a band in common. */
  readonly #variantIdsByBand = new Map<number, string[]>();
  /** Variant ids by the hash of the whole ad text. For the many ads with identical texts, no other lookup is needed. */
  readonly #variantIdsByTextHash = new Map<string, string>();

  /**
   * Adds an ad and returns the id of its variant, a group of ads with nearly the same text. Returns null for a text
   * without visible characters.
   */
  addAd(adId: string, adText: string | null): string | null {
    const textHash = hash('sha256', adText ?? '', 'base64url');
    const variantId = this.#variantIdsByTextHash.get(textHash) ?? this.#assignVariant(adId, adText ?? '');
    if (variantId !== null) this.#variantIdsByTextHash.set(textHash, variantId);
    return variantId;
  }

  #assignVariant(id: string, adText: string): string | null {
    const shingleHashes = hashShingles(adText);
    if (shingleHashes.length === 0) return null;
    const bands = hashBands(shingleHashes);
    const similarId = this.#findSimilar(bands, shingleHashes);
    if (similarId !== undefined) return similarId;
    this.#shingleHashesByVariantId.set(id, shingleHashes);
    for (const band of bands) {
      const ids = this.#variantIdsByBand.get(band);
      if (ids === undefined) this.#variantIdsByBand.set(band, [id]);
      else if (ids.length < maxIdsPerBand) ids.push(id);
    }
    return id;
  }

  #findSimilar(bands: readonly number[], shingleHashes: Uint32Array): string | undefined {
    const comparedIds = new Set<string>();
    for (const band of bands) {
      for (const id of this.#variantIdsByBand.get(band) ?? []) {
        if (comparedIds.has(id)) continue;
        comparedIds.add(id);
        const earliestShingleHashes = this.#shingleHashesByVariantId.get(id);
        if (earliestShingleHashes && computeSimilarity(shingleHashes, earliestShingleHashes) >= minSimilarity)
          return id;
      }
    }
  }
}

/**
 * The lowest similarity at which two texts count as nearly the same. Of all shingles (sequences of three characters) in
 * the two texts, at least 60 % must occur in both.
 */
const minSimilarity = 0.6;
/**
 * The number of MinHash bands, each of which combines `hashesPerBand` hashes. Two texts that share 60 % of their
 * shingles have a common band with a probability of 98 %. For two texts that share 30 %, the probability is 35 %.
 */
const bandCount = 16;
const hashesPerBand = 3;
/**
 * The maximum number of variant ids to store per MinHash band. If more variants share a band, the band comes from a
 * common phrase and does not help to find similar texts.
 */
const maxIdsPerBand = 50;
const maxComparedChars = 2000;
const shingleLength = 3;

/**
 * Returns the sorted hashes of a text's shingles, that is, of all its sequences of three characters. A text of fewer
 * than three characters is hashed as a whole.
 */
function hashShingles(adText: string): Uint32Array {
  const visibleText = sanitize(adText).trim().slice(0, maxComparedChars);
  // Compare the unchanged text if it has no letters or digits, e.g. only emojis, because its normalized form is empty.
  const comparedText = normalizeText(visibleText) || visibleText;
  const comparedLength = Math.min(shingleLength, comparedText.length);
  const hashes = new Set<number>();
  for (let start = 0; comparedLength > 0 && start + comparedLength <= comparedText.length; start++)
    hashes.add(computeFnv1a(comparedText.slice(start, start + comparedLength)));
  return Uint32Array.from(hashes).sort();
}

/**
 * Normalizes a text for comparison, e.g. `Only $9.99 – today!` to `only 0 0 today`. Each number becomes 0. URLs and all
 * characters that are neither letters nor digits become single spaces.
 */
const normalizeText = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/https?:\S*/g, ' ')
    .replace(/\p{Nd}+/gu, '0')
    .replace(/[^\p{L}\p{M}0]+/gu, ' ')
    .trim();

/**
 * Returns the Jaccard similarity of two sorted sets: the size of their intersection, divided by the size of their
 * union.
 */
function computeSimilarity(firstHashes: Uint32Array, secondHashes: Uint32Array): number {
  let sharedCount = 0;
  for (let i = 0, j = 0; i < firstHashes.length && j < secondHashes.length; ) {
    const difference = (firstHashes[i] ?? 0) - (secondHashes[j] ?? 0);
    if (difference === 0) sharedCount++;
    if (difference <= 0) i++;
    if (difference >= 0) j++;
  }
  const unionCount = firstHashes.length + secondHashes.length - sharedCount;
  return unionCount === 0 ? 0 : sharedCount / unionCount;
}

function hashBands(shingleHashes: Uint32Array): number[] {
  return Array.from({ length: bandCount }, (_, band) => {
    let hash = band;
    for (let hashIndex = 0; hashIndex < hashesPerBand; hashIndex++)
      hash = mixHash(hash ^ findSmallestHash(shingleHashes, band * hashesPerBand + hashIndex));
    return hash;
  });
}

const mixHash = (hash: number): number => {
  const mixedHash = Math.imul(hash ^ (hash >>> 16), 0x9e3779b1);
  return (mixedHash ^ (mixedHash >>> 15)) >>> 0;
};

/** Mixes each shingle hash with a seed and returns the smallest mixed hash, as in MinHash. */
function findSmallestHash(shingleHashes: Uint32Array, seed: number): number {
  const salt = Math.imul(seed + 1, 0x85ebca6b);
  let smallestHash = 0xffffffff;
  for (const shingleHash of shingleHashes) {
    let mixedHash = Math.imul(shingleHash ^ salt, 0xc2b2ae35);
    mixedHash = (mixedHash ^ (mixedHash >>> 15)) >>> 0;
    if (mixedHash < smallestHash) smallestHash = mixedHash;
  }
  return smallestHash;
}
