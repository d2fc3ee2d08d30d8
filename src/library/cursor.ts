import { createHmac, timingSafeEqual } from 'node:crypto';
import { invalid } from './refusal.ts';

/** Makes and reads cursors: any JSON value, sealed, so that an altered or foreign one is refused and not guessed at. */
export type Cursors = {
  seal(content: unknown): string;
  /** @throws Refusal 422 */
  open(cursor: string): unknown;
};

const sealBytes = 12;

export function cursorsWith(secret: string): Cursors {
  const sealOf = (text: string) => createHmac('sha256', secret).update(text).digest().subarray(0, sealBytes);
  return {
    seal(content) {
      const text = Buffer.from(JSON.stringify(content)).toString('base64url');
      return `${text}.${sealOf(text).toString('base64url')}`;
    },
    open(cursor) {
      const [text = '', seal = '', ...rest] = cursor.split('.');
      const given = Buffer.from(seal, 'base64url');
      // Compared as text too: several spellings of base64 decode to the same bytes.
      const genuine =
        rest.length === 0 &&
        given.length === sealBytes &&
        given.toString('base64url') === seal &&
        timingSafeEqual(given, sealOf(text));
      if (!genuine) {
        throw invalid(
          'This cursor is not one that this service gave. Pass a returned cursor unchanged, or leave it out to start anew.',
        );
      }
      return JSON.parse(Buffer.from(text, 'base64url').toString());
    },
  };
}
