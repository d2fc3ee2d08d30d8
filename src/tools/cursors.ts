import { createHmac } from 'node:crypto';
import { AdLibraryError, createInvalidRequestError } from '../api/errors.ts';
import { toCanonicalJson } from '../api/json.ts';
import type { OperationName } from '../api/operations.ts';
import type { CursorStore } from '../storage/call-state.ts';

/** Stores page cursors with their searches, and signs page cursors with the caller's API key. */
export interface SigningCursorStore extends CursorStore {
  sign(cursorText: string): string;
}

/**
 * A position in a list of results: the service's cursor for one page, and the number of items of that page that were
 * already shown.
 */
export interface ListPosition {
  serviceCursor: string | undefined;
  /**
   * The requested page size, or `default` if the caller requested none. A request with another page size cannot use
   * `serviceCursor`. `unknown` if the caller continues a list of unknown page size with a cursor of the service.
   */
  pageSize: number | 'default' | 'unknown';
  shownCount: number;
}

/** The arguments of a tool call that select a list, e.g. filters, or a collection id and an item type. */
export type SearchParams = Readonly<Record<string, unknown>>;

interface ListQuery {
  operation: OperationName;
  searchParams: SearchParams;
}

/** A list of results, i.e. an API operation and its arguments, together with the current position in the list. */
export interface PositionedList extends ListQuery {
  position: ListPosition;
}

/**
 * The first character of every cursor that this server creates. Cursors of the service do not begin with this character
 * and are passed on unchanged.
 */
const cursorPrefix = '@';
/** The characters in a cursor that stand for a page size that is not a number. */
const pageSizeMarks = { default: '', unknown: '-' };

/**
 * The maximum length of a service cursor that is embedded in a cursor of this server, in characters. A longer service
 * cursor is stored instead.
 */
const maxEmbeddedServiceCursorLength = 1000;

/**
 * Builds a cursor that any replica of the server can parse. For example, `@50+20.SIGNATURE=SERVICECURSOR` continues
 * after 20 items of a page of 50 items.
 *
 * Models read cursors. Therefore, the service cursor is encoded (base64url), so that it cannot contain a sentence or a
 * link. A service cursor that is too long is stored and replaced by `~`.
 */
export function buildCursor(
  { operation, searchParams, position }: PositionedList,
  { sign }: SigningCursorStore,
): string {
  const { serviceCursor, pageSize, shownCount } = position;
  const signedPageSize = pageSize === 'default' ? null : pageSize;
  const signature = sign(toCanonicalJson([operation, serviceCursor ?? null, signedPageSize, shownCount, searchParams]));
  const pageSizeText = typeof pageSize === 'number' ? pageSize : pageSizeMarks[pageSize];
  const positionText = `${pageSizeText}${shownCount === 0 ? '' : `+${shownCount}`}`;
  return `${cursorPrefix}${positionText}.${signature}${serviceCursor === undefined ? '' : encodeServiceCursor(serviceCursor)}`;
}

function encodeServiceCursor(serviceCursor: string): string {
  if (serviceCursor.length > maxEmbeddedServiceCursorLength || !serviceCursor.isWellFormed()) return '~';
  const encodedCursor = Buffer.from(serviceCursor).toString('base64url');
  return encodedCursor.length > maxEmbeddedServiceCursorLength ? '~' : `=${encodedCursor}`;
}

/**
 * Stores the filters of a search under the `cursor` key, because the next call may contain only the cursor. If the
 * service cursor is too long to be part of `cursor`, also stores the service cursor.
 */
export async function saveCursor(
  cursor: string,
  { searchParams, position }: PositionedList,
  { save }: SigningCursorStore,
) {
  if (cursor.endsWith('~')) await save(cursor, { searchParams, serviceCursor: position.serviceCursor });
  else if (Object.keys(searchParams).length > 0) await save(cursor, { searchParams });
}

/** The length of a cursor signature, in base64url characters. 11 characters represent 66 bits. */
const signatureLength = 11;

/**
 * Signs a cursor with the caller's API key. Every replica can check the signature, but nobody can derive the API key
 * from it.
 */
export function signCursor(apiKey: string | undefined, cursorText: string): string {
  if (apiKey === undefined) throw new AdLibraryError({ kind: 'no_api_key', wasSent: false });
  const signature = createHmac('sha256', apiKey).update(`ad-library-mcp cursor ${cursorText}`).digest('base64url');
  return signature.slice(0, signatureLength);
}

/** A request for one page of a list: the arguments of a tool call, e.g. filters, cursor and page size. */
export interface ListRequest extends ListQuery {
  cursor?: string | undefined;
  limit?: number | undefined;
}

/**
 * Returns the filters and the position from which a list continues. A cursor of the service is passed on unchanged. A
 * cursor of this server must equal the cursor that `buildCursor` builds for the same arguments. If it does not, the
 * stored filters are tried last, because the store may be remote.
 * @throws AdLibraryError `invalid_request`, before any request is sent, if the cursor does not match the arguments
 */
export async function readCursor(
  { operation, cursor, limit, searchParams }: ListRequest,
  cursors: SigningCursorStore,
): Promise<PositionedList> {
  if (!cursor?.startsWith(cursorPrefix)) {
    const pageSize = limit ?? (cursor === undefined ? 'default' : 'unknown');
    return { operation, searchParams, position: { serviceCursor: cursor, pageSize, shownCount: 0 } };
  }
  const { hasStoredServiceCursor, ...position } = parseCursor(cursor);
  const hasNoSearchParams = Object.keys(searchParams).length === 0;
  const candidates = hasStoredServiceCursor ? [] : [{ operation, searchParams, position }];
  const matchesCursor = (listing: PositionedList) => buildCursor(listing, cursors) === cursor;
  if (hasStoredServiceCursor || (hasNoSearchParams && !candidates.some(matchesCursor))) {
    const storedSearch = await cursors.load(cursor);
    if (hasStoredServiceCursor && storedSearch === undefined) throw createExpiredCursorError();
    const { serviceCursor = position.serviceCursor } = storedSearch ?? {};
    for (const candidateParams of storedSearch && hasNoSearchParams
      ? [searchParams, storedSearch.searchParams]
      : [searchParams])
      candidates.push({ operation, searchParams: candidateParams, position: { ...position, serviceCursor } });
  }
  const listing = candidates.find(matchesCursor);
  if (listing === undefined) throw createCursorMismatchError();
  // If some items of a page have been shown, the remaining items need the same page size. Therefore, accept another
  // page size only at the start of a page.
  return position.shownCount === 0 && limit !== undefined
    ? { ...listing, position: { ...listing.position, pageSize: limit } }
    : listing;
}

const cursorPattern = /^@(\d{1,16}|-)?(?:\+(\d{1,6}))?\.[\w-]{11}(?:=(.+)|(~))?$/;

function parsePageSize(text = pageSizeMarks.default): ListPosition['pageSize'] {
  if (text === pageSizeMarks.default) return 'default';
  return text === pageSizeMarks.unknown ? 'unknown' : Number(text);
}

function parseCursor(cursor: string): ListPosition & { hasStoredServiceCursor: boolean } {
  const [match, pageSizeText, shownText = 0, encodedServiceCursor, storedCursorMark] = cursorPattern.exec(cursor) ?? [];
  if (match === undefined) throw createCursorMismatchError();
  return {
    serviceCursor: encodedServiceCursor && Buffer.from(encodedServiceCursor, 'base64url').toString(),
    pageSize: parsePageSize(pageSizeText),
    shownCount: Number(shownText),
    hasStoredServiceCursor: storedCursorMark !== undefined,
  };
}

/** Creates the error for a cursor that does not match the other arguments of the call. */
export const createCursorMismatchError = () =>
  createInvalidRequestError(
    'This cursor does not match these arguments, or its filters are no longer remembered. Pass it unchanged, to the same tool, with the same filters (or collection and item type); to start over, leave it out.',
  );

const createExpiredCursorError = () =>
  createInvalidRequestError(
    "This cursor has expired: the service's own cursor was too long to fit into it, and is no longer remembered. Repeat the call that returned it and use the new cursor, or leave the cursor out to start over.",
  );
