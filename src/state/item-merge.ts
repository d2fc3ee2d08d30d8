import { isDeepStrictEqual } from 'node:util';

export type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Objects of which a list shows fewer fields than the single item. */
const NESTED = ['page', 'website'];

/** The newer object, in which the fields that it lacks keep their earlier values. */
export function mergeItems(newer: Fields, earlier: Fields): Fields {
  const merged = { ...earlier, ...newer };
  for (const name of NESTED) {
    const [before, after] = [earlier[name], newer[name]];
    if (isFields(before) && isFields(after)) merged[name] = { ...before, ...after };
  }
  return merged;
}

/**
 * Whether two versions say the same of an ad or a page. Links to the application, the day it was last seen and the
 * signatures in media addresses change without a change of the ad.
 */
export function sameContent(left: Fields, right: Fields): boolean {
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...names].every((name) => UNRELATED.has(name) || sameField(name, left[name], right[name]));
}

function sameField(name: string, left: unknown, right: unknown): boolean {
  if (isDeepStrictEqual(left, right)) return true;
  const comparable = NAMES_MEDIA.test(name) ? unsigned : unsignedMedia;
  return isDeepStrictEqual(comparable(left), comparable(right));
}

const UNRELATED = new Set(['appUrl', 'lastSeenAt']);
const NAMES_MEDIA = /image|video|thumb|picture|media|preview/i;
const QUERY = /[?#].*$/s;
/** Deeper than any object of the service; what lies below is compared as it is. */
const MAX_DEPTH = 8;

/** All addresses inside, without query. */
function unsigned(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return /^https?:/i.test(value) ? value.replace(QUERY, '') : value;
  return depth < MAX_DEPTH ? mapped(value, (inner) => unsigned(inner, depth + 1)) : value;
}

/** The addresses under names of media, without query; the query of a link is part of the ad. */
function unsignedMedia(value: unknown, depth = 0): unknown {
  if (depth >= MAX_DEPTH) return value;
  return mapped(value, (inner, name) =>
    NAMES_MEDIA.test(name) ? unsigned(inner, depth + 1) : unsignedMedia(inner, depth + 1),
  );
}

function mapped(value: unknown, map: (inner: unknown, name: string) => unknown): unknown {
  if (Array.isArray(value)) return value.map((inner) => map(inner, ''));
  if (!isFields(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, map(inner, name)]));
}
