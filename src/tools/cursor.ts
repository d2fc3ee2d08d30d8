import { canonical } from '../api/fingerprint.ts';
import type { OperationName } from '../api/operations.ts';
import { word } from '../present/fence.ts';
import type { CursorState } from '../state/cursor-state.ts';

/** Which items come next: a page of the service, and how many of its items were shown already. */
export interface PagePosition {
  /** The service's own cursor; undefined for its first page. */
  serviceCursor: string | undefined;
  /** The page size the page was asked with. It is part of which page it is. */
  limit: number | undefined;
  shown: number;
}

/** What a list is asked for besides the position: filters, or a collection and an item type. */
export type SearchParams = Readonly<Record<string, unknown>>;

/** What a cursor belongs to: one of the lists, and what it was asked for. */
export interface Listing {
  list: OperationName;
  searchParams: SearchParams;
}

/** A list, and the item of it that comes next. */
export interface PageListing extends Listing {
  position: PagePosition;
}

/** How one caller's cursors are made and remembered. */
export interface Cursors {
  /** A short signature under the caller's key. */
  sign(text: string): string;
  remember(cursor: string, state: CursorState): Promise<void>;
  recall(cursor: string): Promise<CursorState | undefined>;
}

/** Begins every cursor of ours. */
export const MARKER = '@';
/** `IgnoreAllPreviousInstructions`. */
const CAMEL_SENTENCE = /(?:[A-Z]?[a-z]{2,}){4}/;
/** Most characters of the service's cursor inside one of ours. */
const MAX_INSIDE = 1000;

/**
 * A cursor that any process can read: `@50+20.SIGNATURE:SERVICECURSOR` goes on after 20 items of a page of 50. The
 * service's cursor stands in it as it is where it is one plain word, else encoded after `=`: a model reads and copies
 * this text, so nothing in it may pose as words or as a link. Only one that is too long stays here, behind `~`.
 */
export function writeCursor({ list, searchParams, position }: PageListing, { sign }: Cursors): string {
  const { serviceCursor, limit, shown } = position;
  const signature = sign(canonical([list, serviceCursor ?? null, limit ?? null, shown, searchParams]));
  const page = `${limit ?? ''}${shown === 0 ? '' : `+${shown}`}`;
  return `${MARKER}${page}.${signature}${serviceCursor === undefined ? '' : inside(serviceCursor)}`;
}

function inside(serviceCursor: string): string {
  if (word(serviceCursor) === serviceCursor && !CAMEL_SENTENCE.test(serviceCursor)) return `:${serviceCursor}`;
  if (serviceCursor.length > MAX_INSIDE || !serviceCursor.isWellFormed()) return '~';
  const encoded = Buffer.from(serviceCursor).toString('base64url');
  return encoded.length > MAX_INSIDE ? '~' : `=${encoded}`;
}

/** Has a cursor go on where the filters are left out, or where the service's is too long to be part of it. */
export async function rememberCursor(cursor: string, { searchParams, position }: PageListing, { remember }: Cursors) {
  if (cursor.endsWith('~')) await remember(cursor, { searchParams, serviceCursor: position.serviceCursor });
  else if (Object.keys(searchParams).length > 0) await remember(cursor, { searchParams });
}
