import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AnswerMemory } from '../../src/serve/limits.ts';

const maxBytes = 100;
const maxPerTenant = 40;
const step = fc.record({
  does: fc.constantFrom('reserve', 'make', 'leave', 'give up'),
  answer: fc.nat(11),
  bytes: fc.integer({ min: 1, max: 50 }),
});

test('answers never hold more than there is room for, and whoever waits gets room in the end', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const held = new Map<number, number>();
      const tenantOf = (answer: number) => `tenant ${answer % 4}`;
      const ended: number[] = [];
      const answers = new AnswerMemory<number>({
        maxBytes,
        maxPerTenant,
        end: (answer) => {
          ended.push(answer);
          held.delete(answer);
        },
      });
      const waiting = new Map<Promise<void>, { answer: number; leave: AbortController }>();
      const settle = () => new Promise((resolve) => setImmediate(resolve));
      const isWithin = () => {
        const sum = (of: [number, number][]) => of.reduce((total, [, bytes]) => total + bytes, 0);
        expect(sum([...held])).toBeLessThanOrEqual(maxBytes);
        for (const tenant of [0, 1, 2, 3])
          expect(sum([...held].filter(([answer]) => answer % 4 === tenant))).toBeLessThanOrEqual(maxPerTenant);
      };
      for (const { does, answer, bytes } of steps) {
        const isNew = !held.has(answer) && ![...waiting.values()].some((one) => one.answer === answer);
        if (does === 'reserve' && isNew) {
          const leave = new AbortController();
          const reserved = answers
            .reserve(answer, tenantOf(answer), bytes, () => leave.signal)
            .then(
              (isHeld) => {
                expect(isHeld).toBe(bytes <= maxPerTenant);
                if (isHeld) held.set(answer, bytes);
              },
              () => expect(leave.signal.aborted).toBe(true),
            );
          waiting.set(reserved, { answer, leave });
          void reserved.then(() => waiting.delete(reserved));
        }
        if (does === 'make' && held.has(answer)) {
          held.set(answer, Math.min(bytes, held.get(answer) ?? 0));
          answers.made(answer, held.get(answer) ?? 0);
        }
        if (does === 'leave') {
          held.delete(answer);
          answers.left(answer);
        }
        if (does === 'give up') for (const { answer: of, leave } of waiting.values()) if (of === answer) leave.abort();
        await settle();
        isWithin();
      }
      // Once each answer has left, none waits.
      for (let round = 0; round <= steps.length && waiting.size > 0; round++) {
        for (const answer of held.keys()) answers.left(answer);
        held.clear();
        await settle();
      }
      expect(waiting.size).toBe(0);
    }),
    { numRuns: 100 },
  );
});
