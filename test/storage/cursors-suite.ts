import { describe, expect, test } from 'vitest';
import type { CursorMemory } from '../../src/storage/call-state.ts';

/** Defines the tests of a cursor store. */
export function testCursors(name: string, open: () => Promise<(tenantId: string) => CursorMemory>): void {
  describe(`Stored cursors ${name}`, () => {
    test('a stored cursor returns its search only to its own API key', async () => {
      const cursorsOf = await open();
      const [own, other] = [cursorsOf('a'), cursorsOf('b')];
      const short = { searchParams: { query: 'tea', countries: ['DE'] } };
      const long = { searchParams: {}, serviceCursor: 'x'.repeat(5000) };
      await own.remember('@1.short', short);
      await own.remember('@1.long~', long);
      await other.remember('@1.short', long);
      expect(await own.recall('@1.short')).toEqual(short);
      expect(await own.recall('@1.long~')).toEqual(long);
      expect(await other.recall('@1.short')).toEqual(long);
      expect(await other.recall('@1.long~')).toBeUndefined();
      for (const odd of ['', ':started', ':bytes', '__proto__', '@1.shor'])
        expect(await own.recall(odd)).toBeUndefined();
    });

    test('storing a cursor again replaces its search', async () => {
      const cursors = (await open())('a');
      for (const query of ['one', 'two']) await cursors.remember('@1.x', { searchParams: { query } });
      expect(await cursors.recall('@1.x')).toEqual({ searchParams: { query: 'two' } });
    });
  });
}
