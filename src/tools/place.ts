import { createHash } from 'node:crypto';
import { AdLibraryError } from '../api/errors.ts';
import { canonical } from '../api/fingerprint.ts';
import type { Asked } from '../context.ts';

/** Where to go on: a page of the service, and how many of its items were shown already. */
export interface Place {
  /** The service's own cursor; undefined for its first page. */
  serviceCursor: string | undefined;
  /** The page size the page was asked with. It is part of which page it is. */
  limit: number | undefined;
  shown: number;
}

/** What was asked besides the place: a cursor of ours belongs to that question alone. */
export type Question = Readonly<Record<string, unknown>>;

const ours = /^@(\d{1,6})\/(\d{1,9}|-)\.([\w-]{8})(?::([\s\S]*))?$/;

/**
 * A cursor for the rest of a page that was cut to fit. The service's own cursors are handed out as they are, and look
 * like ours only by accident: then they are wrapped as well.
 */
export function writePlace(place: Place, question: Question, asked: Asked): string | undefined {
  const { serviceCursor, limit, shown } = place;
  if (shown === 0 && !serviceCursor?.startsWith('@')) return serviceCursor;
  const mark = markOf(place, question);
  asked.set(mark, question);
  return `@${shown}/${limit ?? '-'}.${mark}${serviceCursor === undefined ? '' : `:${serviceCursor}`}`;
}

export interface Asking {
  cursor: string | undefined;
  limit: number | undefined;
  question: Question;
}

/**
 * Reads a cursor of ours or of the service's. One of ours goes on with its own question where the call repeats none.
 * Throws where it was changed or comes with another question.
 */
export function readPlace({ cursor, limit, question }: Asking, asked: Asked): { place: Place; question: Question } {
  if (cursor === undefined || !cursor.startsWith('@')) {
    return { place: { serviceCursor: cursor, limit, shown: 0 }, question };
  }
  const [, shown, size, mark, serviceCursor] = ours.exec(cursor) ?? [];
  const place = { serviceCursor, limit: size === '-' ? undefined : Number(size), shown: Number(shown) };
  const own = mark !== undefined && Object.keys(question).length === 0 ? (asked.get(mark) ?? question) : question;
  if (mark !== undefined && mark === markOf(place, own)) return { place, question: own };
  throw new AdLibraryError({
    kind: 'invalid_request',
    problem:
      'This cursor does not belong to these arguments. Pass the cursor exactly as the result gave it, together with the same filters (or collection and item type); to start over, leave it out.',
    sent: false,
  });
}

function markOf({ serviceCursor, limit, shown }: Place, question: Question): string {
  const text = canonical([serviceCursor ?? null, limit ?? null, shown, question]);
  return createHash('sha256').update(text).digest('base64url').slice(0, 8);
}
