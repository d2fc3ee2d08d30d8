import { timeOf } from '../present/dates.ts';

/** Reads JSON that follows no schema: what is not there or of another type is `undefined`, empty or left out. */
export type Json = Record<string, unknown>;

export const isJsonObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const object = (value: unknown): Json => (isJsonObject(value) ? value : {});

export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

export const first = (value: Json, ...keys: string[]) => keys.map((key) => value[key]).find((one) => one != null);

export const firstOf = (value: unknown) => list(value)[0];

export function text(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A list of texts, or one text alone. */
export function texts(value: unknown): string[] | undefined {
  const found = (typeof value === 'string' && value !== '' ? [value] : list(value)).filter(
    (one) => typeof one === 'string',
  );
  return found.length > 0 ? found : undefined;
}

export function numeric(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

/** Unix seconds, unix milliseconds or a date text. */
export function time(value: unknown): string | undefined {
  const number = numeric(value);
  const date = new Date((number === undefined ? timeOf(value) : number < 1e11 ? number * 1000 : number) ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

export const withoutAbsent = (value: Json): Json =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined));

/** Null, an empty text, an empty list or an empty object. */
export const isEmpty = (value: unknown): boolean =>
  value == null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0);

/** The same object with `page_id` and `pageID` as `pageId`. Of two spellings of one key the first with a value counts. */
export function camelCased(value: Json): Json {
  const cased = new Map<string, unknown>();
  for (const [key, one] of Object.entries(value)) {
    const name = key.replace(/(?<=[^_])_+([a-z\d])/gi, (_, letter) => letter.toUpperCase()).replace(/ID$/, 'Id');
    cased.set(name, cased.get(name) ?? one);
  }
  return Object.fromEntries(cased);
}

/** `JSON.stringify` is recursive: it fails on values that `JSON.parse` could read. */
export const maxDepth = 64;

/** Walks level by level: recursion would fail on the very values it looks for. */
export function isTooDeep(value: unknown): boolean {
  let level: object[] = [{ value }];
  for (let depth = 0; level.length > 0 && depth <= maxDepth; depth++) {
    level = level.flatMap((parent) => Object.values(parent).filter((child) => typeof child === 'object' && child));
  }
  return level.length > 0;
}
