import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { clampLines, estimateTokens, fit as leading } from '../../src/present/tokens.ts';

const render = (items: readonly string[]) => items.join('\n');

describe('a list larger than its budget', () => {
  test('is rendered once when it fits', () => {
    let renders = 0;
    const count = leading({
      items: ['a', 'b'],
      budget: 100,
      render: (items) => {
        renders++;
        return render(items);
      },
    });
    expect([count, renders]).toEqual([2, 1]);
  });

  test('shows as many leading items as fit, and no more', () => {
    fc.assert(
      fc.property(
        fc.array(fc.lorem(), { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 400 }),
        (items, budget) => {
          const count = leading({ items, budget, render });
          const cost = (n: number) => estimateTokens(render(items.slice(0, n)));
          expect(count).toBeGreaterThanOrEqual(1);
          if (count > 1) expect(cost(count)).toBeLessThanOrEqual(budget);
          if (count < items.length) expect(cost(count + 1)).toBeGreaterThan(budget);
        },
      ),
    );
  });

  test('is rendered four times at most where its items are about as long, however many there are', () => {
    const length = fc.integer({ min: 20, max: 200 });
    const lists = length.chain((usual) =>
      fc.array(fc.integer({ min: usual, max: Math.ceil(1.2 * usual) }), { minLength: 2, maxLength: 400 }),
    );
    fc.assert(
      fc.property(lists, fc.integer({ min: 50, max: 4000 }), (lengths, budget) => {
        let renders = 0;
        const items = lengths.map((words) => 'word '.repeat(words / 5));
        const counted = (some: readonly string[]) => {
          renders++;
          return `${some.length} items:\n${render(some)}`;
        };
        leading({ items, budget, render: counted });
        expect(renders).toBeLessThanOrEqual(4);
      }),
    );
  });

  test('is empty where the list is empty', () => {
    expect(leading({ items: [], budget: 10, render })).toBe(0);
  });

  test('is cut within the line where there is but one', () => {
    const cut = clampLines('words that never end '.repeat(1000), 100);
    expect(estimateTokens(cut)).toBeLessThanOrEqual(110);
    expect(cut).toMatch(/^words that .*… \(\+\d+ chars\)\n\(cut to fit: \d+ more characters\)$/);
  });

  test('is cut at a line, and says so, when even one item is too much', () => {
    const text = Array.from({ length: 100 }, (_, line) => `line number ${line}`).join('\n');
    const cut = clampLines(text, 100);
    expect(estimateTokens(cut)).toBeLessThanOrEqual(100);
    expect(cut).toMatch(/line number \d+\n\(cut to fit: \d+ more characters\)$/);
  });
});
