import { hash } from 'node:crypto';
import { fnv1a, sanitize } from '../views/safe-text.ts';

/**
 * Groups the ads of one page whose texts are nearly the same. A text is broken into overlapping sequences of three
 * letters or digits ("shingles"). All digits count as the same digit, so that a new price makes no new variant. Two
 * texts are near-identical if they share most of their shingles.
 *
 * Ads are added in the order in which they arrived. Each ad joins the first variant whose earliest ad it resembles, or
 * starts a new variant, which is named by its id. So variants never change when ads are added; if an ad changes or is
 * removed, the caller builds the index of its page again. Similar texts are found by MinHash bands, so the time for an
 * ad does not grow with the number of ads.
 */
export class VariantIndex {
  /** The shingles of the earliest ad of each variant. */
  readonly #earliest = new Map<string, Uint32Array>();
  /** The earliest ads whose texts have a band, by the hash of the band. */
  readonly #bands = new Map<number, string[]>();
  /** Variants by the hash of the text, because many ads have exactly the same text. */
  readonly #same = new Map<string, string>();

  /** Adds an ad and returns the id of its variant; null if its text has no visible character. */
  add(id: string, adText: string | null): string | null {
    const name = hash('sha256', adText ?? '', 'base64url');
    const variant = this.#same.get(name) ?? this.#variantOf(id, adText ?? '');
    if (variant !== null) this.#same.set(name, variant);
    return variant;
  }

  #variantOf(id: string, adText: string): string | null {
    const shingles = shinglesOf(adText);
    if (shingles.length === 0) return null;
    const bands = bandsOf(shingles);
    const similar = this.#find(bands, shingles);
    if (similar !== undefined) return similar;
    this.#earliest.set(id, shingles);
    for (const band of bands) {
      const ids = this.#bands.get(band);
      if (ids === undefined) this.#bands.set(band, [id]);
      else if (ids.length < maxIds) ids.push(id);
    }
    return id;
  }

  #find(bands: readonly number[], shingles: Uint32Array): string | undefined {
    const compared = new Set<string>();
    for (const band of bands) {
      for (const id of this.#bands.get(band) ?? []) {
        if (compared.has(id)) continue;
        compared.add(id);
        const earliest = this.#earliest.get(id);
        if (earliest && similarity(shingles, earliest) >= alike) return id;
      }
    }
  }
}

const alike = 0.6;
/** Two texts that share 60 % of their shingles have a common band 98 times of 100; two that share 30 %, 35 times. */
const bandCount = 16;
const rowsEach = 3;
/** If more ads than these have a band in common, they share only a phrase. */
const maxIds = 50;
const maxChars = 2000;
const shingleLength = 3;

/** Returns the hashes of the shingles in ascending order. A text that is too short for one is a shingle itself. */
function shinglesOf(adText: string): Uint32Array {
  const visibleText = sanitize(adText).trim().slice(0, maxChars);
  // A text of emoji, signs and links alone is a text, too.
  const text = normalize(visibleText) || visibleText;
  const length = Math.min(shingleLength, text.length);
  const hashes = new Set<number>();
  for (let start = 0; length > 0 && start + length <= text.length; start++)
    hashes.add(fnv1a(text.slice(start, start + length)));
  return Uint32Array.from(hashes).sort();
}

/** Returns the letters of a text in lower case, with 0 for each number and single spaces in place of all else. */
const normalize = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/https?:\S*/g, ' ')
    .replace(/\p{Nd}+/gu, '0')
    .replace(/[^\p{L}\p{M}0]+/gu, ' ')
    .trim();

/** Returns the size of the intersection of two ascending sets, divided by the size of their union. */
function similarity(left: Uint32Array, right: Uint32Array): number {
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

function bandsOf(shingles: Uint32Array): number[] {
  return Array.from({ length: bandCount }, (_, band) => {
    let hash = band;
    for (let row = 0; row < rowsEach; row++) hash = mix(hash ^ smallest(shingles, band * rowsEach + row));
    return hash;
  });
}

const mix = (hash: number): number => {
  const mixed = Math.imul(hash ^ (hash >>> 16), 0x9e3779b1);
  return (mixed ^ (mixed >>> 15)) >>> 0;
};

/** Returns the smallest hash after mixing all hashes with a seed, as MinHash does. */
function smallest(shingles: Uint32Array, seed: number): number {
  const salt = Math.imul(seed + 1, 0x85ebca6b);
  let least = 0xffffffff;
  for (const shingle of shingles) {
    let mixed = Math.imul(shingle ^ salt, 0xc2b2ae35);
    mixed = (mixed ^ (mixed >>> 15)) >>> 0;
    if (mixed < least) least = mixed;
  }
  return least;
}
