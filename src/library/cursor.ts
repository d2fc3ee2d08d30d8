import { createHmac, timingSafeEqual } from 'node:crypto';
import { invalid } from './api-error.ts';

/**
 * Writes and reads cursors: JSON, signed for one list, so that an altered or foreign one is refused and not guessed at.
 * Whoever reads an answer reads its cursor, too: the list is not in it but in its signature, and that is short.
 */
export type Cursors = {
  write(list: string, content: unknown[]): string;
  /** @throws ApiError 422 */
  read(list: string, cursor: string): unknown[];
};

const signatureLength = 11;

export function cursorsWith(secret: string): Cursors {
  const signatureOf = (list: string, content: string) =>
    createHmac('sha256', secret).update(`${list}\n${content}`).digest('base64url').slice(0, signatureLength);
  return {
    write(list, content) {
      const text = Buffer.from(JSON.stringify(content)).toString('base64url');
      return signatureOf(list, text) + text;
    },
    read(list, cursor) {
      const content = cursor.slice(signatureLength);
      if (!isSame(cursor.slice(0, signatureLength), signatureOf(list, content))) {
        throw invalid(
          'This cursor is not one that this service gave for this list. Pass a returned cursor unchanged, and to the list it came from, or leave it out to start anew.',
        );
      }
      return JSON.parse(Buffer.from(content, 'base64url').toString());
    },
  };
}

/** Compares secrets in a time that does not tell how alike they are. */
export function isSame(given: string, expected: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}
