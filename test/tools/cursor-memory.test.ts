import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createCursorMemory } from '../../src/tools/cursor-memory.ts';

const state = (characters: number) => ({ searchParams: { query: 'x'.repeat(characters) } });

test('what a tenant has remembered is not given to another', () => {
  const memory = createCursorMemory();
  memory.of('a').remember('@1', state(10));
  expect(memory.of('a').recall('@1')).toEqual(state(10));
  expect(memory.of('b').recall('@1')).toBeUndefined();
});

test('a tenant who remembers without end loses its own, never a neighbour with less than a fair share', () => {
  const memory = createCursorMemory(100_000);
  for (let i = 0; i < 20; i++) memory.of('modest').remember(`@${i}`, state(1000));
  for (let i = 0; i < 20_000; i++) memory.of('greedy').remember(`@${i}`, state(1000));
  for (let i = 0; i < 20; i++) expect(memory.of('modest').recall(`@${i}`)).toEqual(state(1000));
  expect(memory.of('greedy').recall('@0')).toBeUndefined();
  expect(memory.of('greedy').recall('@19999')).toEqual(state(1000));
  expect(memory.size).toBeLessThanOrEqual(100_000);
});

test('what is larger than all there is room for is not remembered, and pushes nothing out', () => {
  const memory = createCursorMemory(100_000);
  memory.of('a').remember('@1', state(1000));
  memory.of('a').remember('@2', state(200_000));
  expect(memory.of('a').recall('@1')).toEqual(state(1000));
  expect(memory.of('a').recall('@2')).toBeUndefined();
});

test('it never holds more than its bound, whoever remembers what, and counts all it holds', () => {
  const entries = fc.array(fc.record({ tenant: fc.nat(5), cursor: fc.nat(30), characters: fc.nat(2500) }), {
    minLength: 50,
    maxLength: 300,
  });
  fc.assert(
    fc.property(entries, (remembered) => {
      const memory = createCursorMemory(20_000);
      for (const { tenant, cursor, characters } of remembered) {
        memory.of(`t${tenant}`).remember(`@${cursor}`, state(characters));
        expect(memory.size).toBeLessThanOrEqual(20_000);
        expect(memory.of(`t${tenant}`).recall(`@${cursor}`)).toBeDefined();
      }
    }),
    { numRuns: 50 },
  );
});
