import { createHmac } from 'node:crypto';
import { AdLibraryError, invalidRequest } from '../api/errors.ts';
import { toCanonicalJson } from '../api/json.ts';
import type { OperationName } from '../api/operations.ts';
import type { CursorMemory } from '../storage/call-state.ts';

/** Storage for cursors, and a function that signs a cursor with the caller's API key. */
export interface Cursors extends CursorMemory {
  sign(text: string): string;
}

/**
 * A position in a list: the cursor of a result page of the service, and how many items of that page were already shown.
 */
export interface PagePosition {
  serviceCursor: string | undefined;
  /** The requested page size. The service cursor is valid only with the same page size. */
  limit: number | undefined;
  shownCount: number;
}

/** The arguments that select a list, without the position in it: filters, or a collection and an item type. */
export type SearchParams = Readonly<Record<string, unknown>>;

interface Listing {
  list: OperationName;
  searchParams: SearchParams;
}

/** A list together with a position in it. */
export interface PageListing extends Listing {
  position: PagePosition;
}

/**
 * Every cursor that this server writes begins with this character. Cursors of the service are passed on as they are.
 */
const cursorPrefix = '@';
/** Returns true if this server, and not the service, wrote the cursor. */
export const isOwnCursor = (cursor: string | undefined): boolean => cursor?.startsWith(cursorPrefix) === true;

/** A service cursor longer than this many characters is stored instead of being embedded in the cursor. */
const maxEmbeddedLength = 1000;

/**
 * Builds a cursor that any process can parse. For example, `@50+20.SIGNATURE=SERVICECURSOR` continues after 20 items of
 * a page of 50. The service cursor is encoded in base64url, because models read and copy the text and nothing in it may
 * look like a sentence or a link. A service cursor that is too long is stored, and `~` takes its place.
 */
export function writeCursor({ list, searchParams, position }: PageListing, { sign }: Cursors): string {
  const { serviceCursor, limit, shownCount: shown } = position;
  const signature = sign(toCanonicalJson([list, serviceCursor ?? null, limit ?? null, shown, searchParams]));
  const page = `${limit ?? ''}${shown === 0 ? '' : `+${shown}`}`;
  return `${cursorPrefix}${page}.${signature}${serviceCursor === undefined ? '' : encodeServiceCursor(serviceCursor)}`;
}

function encodeServiceCursor(serviceCursor: string): string {
  if (serviceCursor.length > maxEmbeddedLength || !serviceCursor.isWellFormed()) return '~';
  const encoded = Buffer.from(serviceCursor).toString('base64url');
  return encoded.length > maxEmbeddedLength ? '~' : `=${encoded}`;
}

/**
 * Stores the filters, because a caller may leave them out of the next call. Also stores a service cursor that is too
 * long to embed.
 */
export async function rememberCursor(cursor: string, { searchParams, position }: PageListing, { remember }: Cursors) {
  if (cursor.endsWith('~')) await remember(cursor, { searchParams, serviceCursor: position.serviceCursor });
  else if (Object.keys(searchParams).length > 0) await remember(cursor, { searchParams });
}

/** Length of a cursor signature in base64url characters, which is 66 bits. */
const signatureLength = 11;

/**
 * Signs a cursor with the caller's API key. Every process accepts the cursors of the same key and rejects those of
 * other keys. The API key cannot be derived from the signature.
 */
export function signCursor(apiKey: string | undefined, text: string): string {
  if (apiKey === undefined) throw new AdLibraryError({ kind: 'no_api_key', sent: false });
  const signature = createHmac('sha256', apiKey).update(`ad-library-mcp cursor ${text}`).digest('base64url');
  return signature.slice(0, signatureLength);
}

/** A request for one page of a list, with the arguments of the tool call. */
export interface ListRequest extends Listing {
  cursor?: string | undefined;
  limit?: number | undefined;
}

/**
 * Returns the filters and the position with which to continue a list. A cursor of the service is passed on unchanged. A
 * cursor of this server is accepted only if the arguments would produce the same cursor. The stored cursors may be in a
 * remote store, so they are read only if the arguments alone do not match.
 * @throws AdLibraryError `invalid_request`, before any request is sent, if the cursor does not match the arguments
 */
export async function readCursor(
  { list, cursor, limit, searchParams }: ListRequest,
  cursors: Cursors,
): Promise<PageListing> {
  if (!cursor?.startsWith(cursorPrefix))
    return { list, searchParams, position: { serviceCursor: cursor, limit, shownCount: 0 } };
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
  // The page size can change only at the start of a page, before any of its items is shown.
  return position.shownCount === 0 && limit !== undefined
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
    shownCount: Number(shown),
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
