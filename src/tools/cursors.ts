import { createHmac } from 'node:crypto';
import { AdLibraryError, invalidRequest } from '../api/errors.ts';
import { canonical } from '../api/json.ts';
import type { OperationName } from '../api/operations.ts';
import type { CursorMemory } from '../storage/call-state.ts';

/** The memory of cursors, and the signature that binds a cursor to the caller's key. */
export interface Cursors extends CursorMemory {
  sign(text: string): string;
}

/** A place in a list: a page of the service, and the number of its items that were shown before. */
interface PagePosition {
  serviceCursor: string | undefined;
  /** The requested page size. With another size, the same service cursor would name another page. */
  limit: number | undefined;
  shown: number;
}

/** The arguments of a list without its position: filters, or a collection and an item type. */
export type SearchParams = Readonly<Record<string, unknown>>;

interface Listing {
  list: OperationName;
  searchParams: SearchParams;
}

/** A list and a place in it. */
export interface PageListing extends Listing {
  position: PagePosition;
}

/** The first character of every cursor of this server. */
const cursorPrefix = '@';
/** Returns whether this server wrote the cursor. */
export const isOwnCursor = (cursor: string | undefined): boolean => cursor?.startsWith(cursorPrefix) === true;

/** The longest service cursor that is part of a cursor of this server, in characters. */
const maxEmbeddedLength = 1000;

/**
 * Returns a cursor that any process can read: `@50+20.SIGNATURE=SERVICECURSOR` continues after 20 items of a page of 50.
 * The service's cursor is encoded in base64url, so that nothing in it can imitate a sentence or a link: a model reads and
 * copies this text. A service cursor that is too long is replaced by `~` and stored in the memory of cursors.
 */
export function writeCursor({ list, searchParams, position }: PageListing, { sign }: Cursors): string {
  const { serviceCursor, limit, shown } = position;
  const signature = sign(canonical([list, serviceCursor ?? null, limit ?? null, shown, searchParams]));
  const page = `${limit ?? ''}${shown === 0 ? '' : `+${shown}`}`;
  return `${cursorPrefix}${page}.${signature}${serviceCursor === undefined ? '' : encodeServiceCursor(serviceCursor)}`;
}

function encodeServiceCursor(serviceCursor: string): string {
  if (serviceCursor.length > maxEmbeddedLength || !serviceCursor.isWellFormed()) return '~';
  const encoded = Buffer.from(serviceCursor).toString('base64url');
  return encoded.length > maxEmbeddedLength ? '~' : `=${encoded}`;
}

/** Remembers the filters, which a caller may leave out of the next call, and a service cursor that is too long to embed. */
export async function rememberCursor(cursor: string, { searchParams, position }: PageListing, { remember }: Cursors) {
  if (cursor.endsWith('~')) await remember(cursor, { searchParams, serviceCursor: position.serviceCursor });
  else if (Object.keys(searchParams).length > 0) await remember(cursor, { searchParams });
}

/** The length of a signature in base64url characters: 66 bits. */
const signatureLength = 11;

/**
 * Signs a cursor with the caller's API key, so that every process accepts the cursors of that key and of no other key.
 * The key cannot be derived from a signature.
 */
export function signCursor(apiKey: string | undefined, text: string): string {
  if (apiKey === undefined) throw new AdLibraryError({ kind: 'no_api_key', sent: false });
  const signature = createHmac('sha256', apiKey).update(`ad-library-mcp cursor ${text}`).digest('base64url');
  return signature.slice(0, signatureLength);
}

/** A request for a page of a list, as a caller sends it. */
export interface ListRequest extends Listing {
  cursor?: string | undefined;
  limit?: number | undefined;
}

/**
 * Returns the position and the filters with which a list continues. A cursor of the service is passed on unchanged. A cursor of this
 * server must be the one that these arguments would produce. The memory of cursors may be a remote store, so it is read
 * only if the cursor and the arguments are not enough.
 * @throws AdLibraryError `invalid_request` if the cursor does not match the arguments, before anything is sent
 */
export async function readCursor(
  { list, cursor, limit, searchParams }: ListRequest,
  cursors: Cursors,
): Promise<PageListing> {
  if (!cursor?.startsWith(cursorPrefix))
    return { list, searchParams, position: { serviceCursor: cursor, limit, shown: 0 } };
  const { isLong, ...position } = parseCursor(cursor);
  const hasNoSearchParams = Object.keys(searchParams).length === 0;
  const candidates = isLong ? [] : [{ list, searchParams, position }];
  const matchesCursor = (listing: PageListing) => writeCursor(listing, cursors) === cursor;
  if (isLong || (hasNoSearchParams && !candidates.some(matchesCursor))) {
    const state = await cursors.recall(cursor);
    if (isLong && state === undefined) throw createExpiredCursorError();
    const { serviceCursor = position.serviceCursor } = state ?? {};
    for (const params of state && hasNoSearchParams ? [searchParams, state.searchParams] : [searchParams])
      candidates.push({ list, searchParams: params, position: { ...position, serviceCursor } });
  }
  const listing = candidates.find(matchesCursor);
  if (listing === undefined) throw createCursorMismatchError();
  // A new page size is possible only at the start of a page, before any of its items was shown.
  return position.shown === 0 && limit !== undefined
    ? { ...listing, position: { ...listing.position, limit } }
    : listing;
}

const cursorPattern = /^@(\d{1,16})?(?:\+(\d{1,6}))?\.[\w-]{11}(?:=(.+)|(~))?$/;

function parseCursor(cursor: string): PagePosition & { isLong: boolean } {
  const [match, limit, shown = 0, encoded, storedMark] = cursorPattern.exec(cursor) ?? [];
  if (match === undefined) throw createCursorMismatchError();
  return {
    serviceCursor: encoded && Buffer.from(encoded, 'base64url').toString(),
    limit: limit === undefined ? undefined : Number(limit),
    shown: Number(shown),
    isLong: storedMark !== undefined,
  };
}

export const createCursorMismatchError = () =>
  invalidRequest(
    'This cursor does not match these arguments, or its filters are no longer remembered. Pass it unchanged, to the same tool, with the same filters (or collection and item type); to start over, leave it out.',
  );

const createExpiredCursorError = () =>
  invalidRequest(
    "This cursor has expired: the service's own cursor was too long to fit into it, and is no longer remembered. Repeat the call that returned it and use the new cursor, or leave the cursor out to start over.",
  );
