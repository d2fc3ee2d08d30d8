import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fullView } from '../../src/present/full.ts';
import { sanitizeLine } from '../../src/present/text.ts';

const part = fc.constantFrom('id', 'body', '\u200b', '\u202e', ' ', '\n', '…', ' (2)');
const name = fc.array(part, { maxLength: 3 }).map((parts) => parts.join(''));

describe('names in a full view', () => {
  it('that were safe stand for their own field, whatever else would read the same', () => {
    expect(
      fullView({ 'endDate\u200b': 'never', body: 'ours', 'body\u200b': 'theirs', '\u200bbody': 'x' }, 500),
    ).toEqual({ endDate: 'never', body: 'ours', 'body (2)': 'theirs', 'body (3)': 'x' });
    fc.assert(
      fc.property(fc.dictionary(name, fc.oneof(fc.integer(), fc.constant(null))), (sent) => {
        for (const view of [fullView(sent, 5000), fullView({ sent }, 5000).sent as Record<string, unknown>]) {
          const kept = Object.entries(sent).filter(([, value]) => value !== null);
          expect(Object.values(view).sort()).toEqual(kept.map(([, value]) => value).sort());
          for (const [own, value] of Object.entries(sent)) {
            if (own === '…' || sanitizeLine(own) !== own) continue;
            expect(view[own]).toBe(value ?? undefined);
          }
        }
      }),
    );
  });
});
