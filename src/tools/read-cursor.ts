import { AdLibraryError } from '../api/errors.ts';
import type { CursorState } from '../state/cursor-state.ts';
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
  const state = await cursors.recall(cursor);
  const position = positionIn(cursor, state);
  const leftOut = Object.keys(searchParams).length === 0;
  const candidates = state && leftOut ? [searchParams, state.searchParams] : [searchParams];
  const matching = candidates.find(
    (params) => writeCursor({ list, searchParams: params, position }, cursors) === cursor,
  );
  if (matching === undefined) throw cursorMismatch();
  // The page size may change before the first item of a page is shown.
  const resized = position.shown === 0 && limit !== undefined;
  return { list, searchParams: matching, position: resized ? { ...position, limit } : position };
}

const FORM = /^@(\d{1,16})?(?:\+(\d{1,6}))?\.[\w-]{11}(?:([:=])(.+)|(~))?$/;

function positionIn(cursor: string, state: CursorState | undefined): PagePosition {
  const [match, limit, shown = 0, kind, text = '', isLong] = FORM.exec(cursor) ?? [];
  if (match === undefined) throw cursorMismatch();
  if (isLong && state === undefined) throw forgottenCursor();
  const written = kind === '=' ? Buffer.from(text, 'base64url').toString() : kind && text;
  return {
    serviceCursor: isLong ? state?.serviceCursor : written,
    limit: limit === undefined ? undefined : Number(limit),
    shown: Number(shown),
  };
}

const refused = (problem: string) => new AdLibraryError({ kind: 'invalid_request', problem, sent: false });

export const cursorMismatch = () =>
  refused(
    'This cursor does not match these arguments, or its filters are no longer remembered. Pass it unchanged, to the same tool, with the same filters (or collection and item type); to start over, leave it out.',
  );

const forgottenCursor = () =>
  refused(
    "This cursor has expired: the service's own cursor was too long to fit into it, and is no longer remembered. Repeat the call that returned it and use the new cursor, or leave the cursor out to start over.",
  );
