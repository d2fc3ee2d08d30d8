import { createHmac, timingSafeEqual } from 'node:crypto';
import { invalid } from './refusal.ts';

/**
 * Makes and reads cursors: bytes, sealed for one list, so that an altered or foreign one is refused and not guessed at.
 * Whoever reads an answer reads its cursor, too: it holds as little as it can, and the list is not in it but in its seal.
 */
export type Cursors = {
  seal(list: string, content: Uint8Array): string;
  /** @throws Refusal 422 */
  open(list: string, cursor: string): Buffer;
};

const sealBytes = 8;

export function cursorsWith(secret: string): Cursors {
  const sealOf = (list: string, content: Uint8Array) =>
    createHmac('sha256', secret).update(`${list}\n`).update(content).digest().subarray(0, sealBytes);
  return {
    seal: (list, content) => Buffer.concat([sealOf(list, content), content]).toString('base64url'),
    open(list, cursor) {
      const bytes = Buffer.from(cursor, 'base64url');
      const [seal, content] = [bytes.subarray(0, sealBytes), bytes.subarray(sealBytes)];
      // Compared as text too: several spellings of base64 decode to the same bytes.
      const genuine =
        bytes.toString('base64url') === cursor &&
        seal.length === sealBytes &&
        timingSafeEqual(seal, sealOf(list, content));
      if (!genuine) {
        throw invalid(
          'This cursor is not one that this service gave for this list. Pass a returned cursor unchanged, and to the list it came from, or leave it out to start anew.',
        );
      }
      return content;
    },
  };
}
