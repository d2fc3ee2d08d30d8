import { invalidRequest } from '../api/errors.ts';
import { type Cursors, type Listing, MARKER, type PageListing, type PagePosition, writeCursor } from './cursor.ts';

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
