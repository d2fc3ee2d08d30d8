import { describe, expect, test } from 'vitest';
import type { CursorStore } from '../../src/storage/call-state.ts';

/** Defines the tests of a cursor store. */
export function testCursors(name: string, open: () => Promise<(tenantId: string) => CursorStore>): void {
  describe(`Stored cursors ${name}`, () => {
    test('a stored cursor returns its search only to the API key that stored the cursor', async () => {
      const openCursors = await open();
      const [ownCursors, otherCursors] = [openCursors('a'), openCursors('b')];
      const short = { searchParams: { query: 'tea', countries: ['DE'] } };
      const long = { searchParams: {}, serviceCursor: 'x'.repeat(5000) };
      await ownCursors.save('@1.short', short);
      await ownCursors.save('@1.long~', long);
      await otherCursors.save('@1.short', long);
      expect(await ownCursors.load('@1.short')).toEqual(short);
      expect(await ownCursors.load('@1.long~')).toEqual(long);
      expect(await otherCursors.load('@1.short')).toEqual(long);
      expect(await otherCursors.load('@1.long~')).toBeUndefined();
      for (const unknownCursor of ['', ':started', ':bytes', '__proto__', '@1.shor'])
        expect(await ownCursors.load(unknownCursor)).toBeUndefined();
    });

    test('storing the same cursor again replaces its search', async () => {
      const cursors = (await open())('a');
      for (const query of ['one', 'two']) await cursors.save('@1.x', { searchParams: { query } });
      expect(await cursors.load('@1.x')).toEqual({ searchParams: { query: 'two' } });
    });
  });
}
