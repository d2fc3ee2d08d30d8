import { describe, expect, test } from 'vitest';
import type { CursorMemory } from '../../src/storage/call-state.ts';

/** Defines the tests of a cursor store. */
export function testCursors(name: string, open: () => Promise<(tenantId: string) => CursorMemory>): void {
  describe(`Stored cursors ${name}`, () => {
    test('a stored cursor returns its search only to the API key that stored the cursor', async () => {
      const openCursors = await open();
      const [ownCursors, otherCursors] = [openCursors('a'), openCursors('b')];
      const short = { searchParams: { query: 'tea', countries: ['DE'] } };
      const long = { searchParams: {}, serviceCursor: 'x'.repeat(5000) };
      await ownCursors.remember('@1.short', short);
      await ownCursors.remember('@1.long~', long);
      await otherCursors.remember('@1.short', long);
      expect(await ownCursors.recall('@1.short')).toEqual(short);
      expect(await ownCursors.recall('@1.long~')).toEqual(long);
      expect(await otherCursors.recall('@1.short')).toEqual(long);
      expect(await otherCursors.recall('@1.long~')).toBeUndefined();
      for (const unknownCursor of ['', ':started', ':bytes', '__proto__', '@1.shor'])
        expect(await ownCursors.recall(unknownCursor)).toBeUndefined();
    });

    test('storing the same cursor again replaces its search', async () => {
      const cursors = (await open())('a');
      for (const query of ['one', 'two']) await cursors.remember('@1.x', { searchParams: { query } });
      expect(await cursors.recall('@1.x')).toEqual({ searchParams: { query: 'two' } });
    });
  });
}
