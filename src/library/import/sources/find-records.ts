import { isObject } from '../../../views/view.ts';
import { isUnambiguousRecord } from '../formats/formats.ts';

/** A value and its place: `data[3]`. */
export interface LocatedValue {
  path: string;
  value: unknown;
}

/** Lists and objects around a record. */
export const maxWrapperDepth = 16;

/** Keys under which everything in a list is meant to be a record. */
export const recordListKeys = ['data', 'items'];

/**
 * The records in a value: the value itself, or those that lists and objects around them hold at any depth, such as an
 * answer of a service. Where a list has records, its other items are returned as well, so that they are reported.
 * `isSure` is false where nothing is surely a record, and the result is what was probably meant to be one.
 */
export function findRecords(value: unknown, path = ''): { records: LocatedValue[]; isSure: boolean } {
  const records = find(value, path, 0);
  return records.length > 0 ? { records, isSure: true } : { records: attempts(value, path, 0), isSure: false };
}

function find(value: unknown, path: string, depth: number): LocatedValue[] {
  if (isUnambiguousRecord(value)) return [{ path, value }];
  if (depth >= maxWrapperDepth) return [];
  if (Array.isArray(value)) {
    const found = value.map((item, at) => find(item, `${path}[${at}]`, depth + 1));
    if (!found.some((items) => items.length > 0)) return [];
    return found.flatMap((items, at) => (items.length > 0 ? items : attempts(value[at], `${path}[${at}]`, depth + 1)));
  }
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, child]) =>
    typeof child === 'object' && child !== null ? find(child, joinPath(path, key), depth + 1) : [],
  );
}

/** What was probably meant to be a record, where none is found: the items of lists, or else the value itself. */
function attempts(value: unknown, path: string, depth: number): LocatedValue[] {
  if (depth < maxWrapperDepth && Array.isArray(value))
    return value.flatMap((item, at) => attempts(item, `${path}[${at}]`, depth + 1));
  if (depth < maxWrapperDepth && isObject(value) && !('id' in value) && !('pageId' in value)) {
    const lists = recordListKeys.filter((key) => Array.isArray(value[key]));
    if (lists.length > 0) return lists.flatMap((key) => attempts(value[key], joinPath(path, key), depth + 1));
  }
  return [{ path, value }];
}

export const joinPath = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`);
