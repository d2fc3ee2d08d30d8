import { AdLibraryError } from '../api/errors.ts';
import { canonical } from '../api/fingerprint.ts';
import type { OperationName } from '../api/operations.ts';
import type { Asked } from './tool-context.ts';

/** Where to go on: a page of the service, and how many of its items were shown already. */
export interface Place {
  /** The service's own cursor; undefined for its first page. */
  serviceCursor: string | undefined;
  /** The page size the page was asked with. It is part of which page it is. */
  limit: number | undefined;
  shown: number;
}

/** What was asked besides the place. */
export type Question = Readonly<Record<string, unknown>>;

const ours = /^@(\d{1,6})\/(\d{1,16}|-)\.([\w-]{8})(?:(:[\s\S]*)|(~))?$/;

/** A cursor of the service's that can stand in a text as it is: one word, and not a long one. */
const presentable = /^[\x21-\x7e]{1,1000}$/;

/**
 * A cursor for the rest of a page that was cut to fit. The service's own cursors are handed out as they are, unless
 * they look like ours by accident (then they stand in one of ours) or could pose as text (then they stay here).
 */
export function writePlace(place: Place, of: Listed, asked: Asked): string | undefined {
  const { serviceCursor, limit, shown } = place;
  const plain = serviceCursor === undefined || presentable.test(serviceCursor);
  if (shown === 0 && plain && !serviceCursor?.startsWith('@')) return serviceCursor;
  const mark = markOf(place, of);
  asked.set(mark, { question: of.question, ...(!plain && { serviceCursor }) });
  const rest = serviceCursor === undefined ? '' : plain ? `:${serviceCursor}` : '~';
  return `@${shown}/${limit ?? '-'}.${mark}${rest}`;
}

/** What a cursor of ours belongs to: one question, to one of the lists. */
export interface Listed {
  list: OperationName;
  question: Question;
}

export interface Asking extends Listed {
  cursor: string | undefined;
  limit: number | undefined;
}

/**
 * Reads a cursor of ours or of the service's. One of ours goes on with its own question where the call repeats none.
 * Throws where it was changed or comes with another question.
 */
export function readPlace(
  { list, cursor, limit, question }: Asking,
  asked: Asked,
): { place: Place; question: Question } {
  if (cursor === undefined || !cursor.startsWith('@')) {
    return { place: { serviceCursor: cursor, limit, shown: 0 }, question };
  }
  const [, shown, size, mark = '', given, hidden] = ours.exec(cursor) ?? [];
  const kept = asked.get(mark);
  const serviceCursor = hidden ? kept?.serviceCursor : given?.slice(1);
  const place = { serviceCursor, limit: size === '-' ? undefined : Number(size), shown: Number(shown) };
  const own = Object.keys(question).length === 0 ? (kept?.question ?? question) : question;
  if (mark === markOf(place, { list, question: own })) return { place, question: own };
  throw foreignCursor();
}

export const foreignCursor = () =>
  new AdLibraryError({
    kind: 'invalid_request',
    problem:
      'This cursor does not belong to these arguments. Pass the cursor exactly as the result gave it, to the same tool and together with the same filters (or collection and item type); to start over, leave it out.',
    sent: false,
  });

function markOf({ serviceCursor, limit, shown }: Place, { list, question }: Listed): string {
  const text = canonical([list, serviceCursor ?? null, limit ?? null, shown, question]);
  // Not imported: Node loads its cryptography for 2 ms, which a start that lists the tools need not wait for.
  const { createHash } = process.getBuiltinModule('node:crypto');
  return createHash('sha256').update(text).digest('base64url').slice(0, 8);
}
