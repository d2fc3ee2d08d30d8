import { hash } from 'node:crypto';
import { fnv1a } from '../views/safe-text.ts';

/**
 * Groups ads of one page whose copy is nearly the same: letters and digits broken into overlapping threes (digits
 * count as one another, so that a new price is no new copy), two copies alike when they share most of them.
 *
 * Ads are added in the order they came. Each joins the first group whose earliest ad it resembles, or starts its own,
 * so the groups of those already there never change when more come. A group is called by the id of its earliest ad.
 * Where an ad changes or goes, the groups of its page are made anew.
 * Candidates are found by MinHash bands: the time for each ad does not grow with their number.
 */
export class VariantIndex {
  readonly #earliest = new Map<string, Uint32Array>();
  /** By the hash of a band and what falls into it: the earliest ads found there. */
  readonly #bands = new Map<number, string[]>();
  /** By the hash of a copy: many ads say exactly the same. */
  readonly #same = new Map<string, string>();

  add(id: string, copy: string | null): string | null {
    const name = hash('sha256', copy ?? '', 'base64url');
    const variant = this.#same.get(name) ?? this.#variantOf(id, copy ?? '');
    if (variant !== null) this.#same.set(name, variant);
    return variant;
  }

  #variantOf(id: string, copy: string): string | null {
    const shingles = shinglesOf(copy);
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
/** Two copies that share 60 % meet in one of these bands 98 times of 100, two that share 30 % 35 times. */
const bandCount = 16;
const rowsEach = 3;
/** Where more ads than these fall into one band, they share only a phrase. */
const maxIds = 50;
const maxChars = 2000;
const shingleLength = 3;

function shinglesOf(copy: string): Uint32Array {
  const text = normalize(copy);
  const hashes = new Set<number>();
  for (let start = 0; start + shingleLength <= text.length; start++)
    hashes.add(fnv1a(text.slice(start, start + shingleLength)));
  return Uint32Array.from(hashes).sort();
}

const normalize = (copy: string): string =>
  copy
    .slice(0, maxChars)
    .normalize('NFKC')
    .toLowerCase()
    .replace(/https?:\S*/g, ' ')
    .replace(/\p{Nd}+/gu, '0')
    .replace(/[^\p{L}\p{M}0]+/gu, ' ')
    .trim();

/** The share of the union of two ascending sets that both have. */
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

/** The smallest of all under one of many ways to shuffle them. */
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
