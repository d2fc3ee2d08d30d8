import { createHmac } from 'node:crypto';
import { AdLibraryError, canonical, invalidRequest, type OperationName } from '../api/call.ts';
import { word } from '../present/safe-text.ts';
import type { CursorMemory } from '../state/state.ts';

/** Where a list continues: on which page of the service, and after how many of its items. */
interface PagePosition {
  /** The service's cursor; undefined for its first page. */
  serviceCursor: string | undefined;
  /** The requested page size: with another one, this would be another page. */
  limit: number | undefined;
  shown: number;
}

/** What a list is asked for, without the position: filters, or a collection and an item type. */
export type SearchParams = Readonly<Record<string, unknown>>;

/** What a cursor belongs to: an operation that lists, and its parameters. */
interface Listing {
  list: OperationName;
  searchParams: SearchParams;
}

/** A list, and where it continues. */
export interface PageListing extends Listing {
  position: PagePosition;
}

/** Signs and remembers the cursors of one caller. */
export interface Cursors extends CursorMemory {
  /** Returns a short signature under the caller's key. */
  sign(text: string): string;
}

/** The first character of every cursor of this server. */
export const MARKER = '@';
/** `IgnoreAllPreviousInstructions`. */
const CAMEL_SENTENCE = /(?:[A-Z]?[a-z]{2,}){4}/;
/** Characters of a service cursor inside a cursor of this server. */
const MAX_EMBEDDED = 1000;

/**
 * Writes a cursor that any process can read: `@50+20.SIGNATURE:SERVICECURSOR` continues after 20 items of a page of 50.
 * If the service's cursor is one plain word it is embedded as it is, otherwise encoded after `=`: a model reads and
 * copies this text, so nothing in it may pose as a sentence or a link. A service cursor that is too long is remembered
 * here instead, and `~` stands for it.
 */
export function writeCursor({ list, searchParams, position }: PageListing, { sign }: Cursors): string {
  const { serviceCursor, limit, shown } = position;
  const signature = sign(canonical([list, serviceCursor ?? null, limit ?? null, shown, searchParams]));
  const page = `${limit ?? ''}${shown === 0 ? '' : `+${shown}`}`;
  return `${MARKER}${page}.${signature}${serviceCursor === undefined ? '' : embedded(serviceCursor)}`;
}

function embedded(serviceCursor: string): string {
  if (word(serviceCursor) === serviceCursor && !CAMEL_SENTENCE.test(serviceCursor)) return `:${serviceCursor}`;
  if (serviceCursor.length > MAX_EMBEDDED || !serviceCursor.isWellFormed()) return '~';
  const encoded = Buffer.from(serviceCursor).toString('base64url');
  return encoded.length > MAX_EMBEDDED ? '~' : `=${encoded}`;
}

/** Remembers what a cursor does not hold: the filters, which a caller may leave out, and a long service cursor. */
export async function rememberCursor(cursor: string, { searchParams, position }: PageListing, { remember }: Cursors) {
  if (cursor.endsWith('~')) await remember(cursor, { searchParams, serviceCursor: position.serviceCursor });
  else if (Object.keys(searchParams).length > 0) await remember(cursor, { searchParams });
}

/** 66 bits, as base64url. */
const SIGNATURE_LENGTH = 11;

/**
 * Signs with a secret derived from the caller's API key, so that every process reads the cursors of that key and no
 * other's. A signature gives away nothing about the key.
 */
export function signCursor(apiKey: string | undefined, text: string): string {
  if (apiKey === undefined) throw new AdLibraryError({ kind: 'no_api_key', sent: false });
  const secret = createHmac('sha256', apiKey).update('ad-library-mcp cursor').digest();
  return createHmac('sha256', secret).update(text).digest('base64url').slice(0, SIGNATURE_LENGTH);
}

export interface ListRequest extends Listing {
  cursor?: string | undefined;
  limit?: number | undefined;
}

/**
 * Finds where a list continues, and with which filters. A cursor of the service is passed on; one of this server must
 * be the cursor that these arguments would give. Throws before anything is sent.
 */
export async function readCursor(request: ListRequest, cursors: Cursors): Promise<PageListing> {
  const { list, cursor, limit, searchParams } = request;
  if (!cursor?.startsWith(MARKER)) {
    return { list, searchParams, position: { serviceCursor: cursor, limit, shown: 0 } };
  }
  const listing = await listingOf(cursor, request, cursors);
  const { position } = listing;
  // The page size may change before the first item of a page is shown.
  return position.shown === 0 && limit !== undefined ? { ...listing, position: { ...position, limit } } : listing;
}

/** Looks only for what the cursor and these arguments lack: what is remembered may lie outside this process. */
async function listingOf(cursor: string, { list, searchParams }: ListRequest, cursors: Cursors): Promise<PageListing> {
  const isOf = (listing: PageListing) => writeCursor(listing, cursors) === cursor;
  const { isLong, ...position } = positionIn(cursor);
  const written = { list, searchParams, position };
  if (!isLong && isOf(written)) return written;
  const leftOut = Object.keys(searchParams).length === 0;
  const state = isLong || leftOut ? await cursors.recall(cursor) : undefined;
  if (isLong && state === undefined) throw forgottenCursor();
  const { serviceCursor = position.serviceCursor } = state ?? {};
  const candidates = state && leftOut ? [searchParams, state.searchParams] : [searchParams];
  const remembered = candidates
    .map((params) => ({ list, searchParams: params, position: { ...position, serviceCursor } }))
    .find(isOf);
  if (remembered === undefined) throw cursorMismatch();
  return remembered;
}

const FORM = /^@(\d{1,16})?(?:\+(\d{1,6}))?\.[\w-]{11}(?:([:=])(.+)|(~))?$/;

function positionIn(cursor: string): PagePosition & { isLong: boolean } {
  const [match, limit, shown = 0, kind, text = '', long] = FORM.exec(cursor) ?? [];
  if (match === undefined) throw cursorMismatch();
  return {
    serviceCursor: kind === '=' ? Buffer.from(text, 'base64url').toString() : kind && text,
    limit: limit === undefined ? undefined : Number(limit),
    shown: Number(shown),
    isLong: long !== undefined,
  };
}

export const cursorMismatch = () =>
  invalidRequest(
    'This cursor does not match these arguments, or its filters are no longer remembered. Pass it unchanged, to the same tool, with the same filters (or collection and item type); to start over, leave it out.',
  );

const forgottenCursor = () =>
  invalidRequest(
    "This cursor has expired: the service's own cursor was too long to fit into it, and is no longer remembered. Repeat the call that returned it and use the new cursor, or leave the cursor out to start over.",
  );
