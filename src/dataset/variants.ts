import { hash } from 'node:crypto';
import { fnv1a, sanitize } from '../views/safe-text.ts';

/**
 * Groups the ads of one page whose texts are nearly the same. A text is broken into overlapping sequences of three
 * letters or digits ("shingles"). All digits count as the same digit, so that a new price creates no new variant. Two
 * texts are near-identical if they share most of their shingles.
 *
 * Ads are added in the order of their arrival. Each ad joins the first variant whose earliest ad it resembles, or
 * starts a new variant, which takes the id of the ad. So variants never change when ads are added. If an ad changes or
 * is removed, the caller builds the index of its page again. Similar texts are found by MinHash bands, so the time for
 * one ad does not grow with the number of ads.
 */
export class VariantIndex {
  /** The shingles of the earliest ad of each variant. */
  readonly #earliestShingles = new Map<string, Uint32Array>();
  /** The ids of earliest ads by the hashes of their bands. */
  readonly #idsByBand = new Map<number, string[]>();
  /** Variants by the hash of the whole text, because many ads have exactly the same text. */
  readonly #variantsByText = new Map<string, string>();

  /** Adds an ad and returns the id of its variant; null if its text has no visible character. */
  add(id: string, adText: string | null): string | null {
    const name = hash('sha256', adText ?? '', 'base64url');
    const variant = this.#variantsByText.get(name) ?? this.#assignVariant(id, adText ?? '');
    if (variant !== null) this.#variantsByText.set(name, variant);
    return variant;
  }

  #assignVariant(id: string, adText: string): string | null {
    const shingles = hashShingles(adText);
    if (shingles.length === 0) return null;
    const bands = hashBands(shingles);
    const similar = this.#findSimilar(bands, shingles);
    if (similar !== undefined) return similar;
    this.#earliestShingles.set(id, shingles);
    for (const band of bands) {
      const ids = this.#idsByBand.get(band);
      if (ids === undefined) this.#idsByBand.set(band, [id]);
      else if (ids.length < maxIdsPerBand) ids.push(id);
    }
    return id;
  }

  #findSimilar(bands: readonly number[], shingles: Uint32Array): string | undefined {
    const compared = new Set<string>();
    for (const band of bands) {
      for (const id of this.#idsByBand.get(band) ?? []) {
        if (compared.has(id)) continue;
        compared.add(id);
        const earliest = this.#earliestShingles.get(id);
        if (earliest && computeSimilarity(shingles, earliest) >= minSimilarity) return id;
      }
    }
  }
}

/** The share of common shingles from which two texts are near-identical. */
const minSimilarity = 0.6;
/**
 * The number of bands. Two texts that share 60 % of their shingles have a common band in 98 of 100 cases; two texts
 * that share 30 % have one in 35 of 100 cases.
 */
const bandCount = 16;
const rowsPerBand = 3;
/** The most ids that are stored for a band. A band that more ads have in common comes from a shared phrase. */
const maxIdsPerBand = 50;
const maxChars = 2000;
const shingleLength = 3;

/**
 * Returns the hashes of the shingles in ascending order. A text that is shorter than a shingle counts as one shingle.
 */
function hashShingles(adText: string): Uint32Array {
  const visibleText = sanitize(adText).trim().slice(0, maxChars);
  // A text without letters and digits, such as emoji or a link, still counts as a text.
  const text = normalizeText(visibleText) || visibleText;
  const length = Math.min(shingleLength, text.length);
  const hashes = new Set<number>();
  for (let start = 0; length > 0 && start + length <= text.length; start++)
    hashes.add(fnv1a(text.slice(start, start + length)));
  return Uint32Array.from(hashes).sort();
}

/** Returns the letters of a text in lower case, with 0 for each number and single spaces for everything else. */
const normalizeText = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/https?:\S*/g, ' ')
    .replace(/\p{Nd}+/gu, '0')
    .replace(/[^\p{L}\p{M}0]+/gu, ' ')
    .trim();

/** Returns the size of the intersection of two ascending sets, divided by the size of their union. */
function computeSimilarity(left: Uint32Array, right: Uint32Array): number {
  let shared = 0;
  for (let i = 0, j = 0; i < left.length && j < right.length; ) {
    const difference = (left[i] ?? 0) - (right[j] ?? 0);
    if (difference === 0) shared++;
    if (difference <= 0) i++;
    if (difference >= 0) j++;
  }
  const union = left.length + right.length - shared;
  return union === 0 ? 0 : shared / union;
}

function hashBands(shingles: Uint32Array): number[] {
  return Array.from({ length: bandCount }, (_, band) => {
    let hash = band;
    for (let row = 0; row < rowsPerBand; row++)
      hash = mixHash(hash ^ findSmallestHash(shingles, band * rowsPerBand + row));
    return hash;
  });
}

const mixHash = (hash: number): number => {
  const mixed = Math.imul(hash ^ (hash >>> 16), 0x9e3779b1);
  return (mixed ^ (mixed >>> 15)) >>> 0;
};

/** Returns the smallest hash after mixing all hashes with a seed, as MinHash does. */
function findSmallestHash(shingles: Uint32Array, seed: number): number {
  const salt = Math.imul(seed + 1, 0x85ebca6b);
  let least = 0xffffffff;
  for (const shingle of shingles) {
    let mixed = Math.imul(shingle ^ salt, 0xc2b2ae35);
    mixed = (mixed ^ (mixed >>> 15)) >>> 0;
    if (mixed < least) least = mixed;
  }
  return least;
}
