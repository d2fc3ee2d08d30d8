import { expect, test } from 'vitest';
import { drawingTurns } from '../../../src/library/media/drawing-turns.ts';

test('pictures are drawn one at a time, and when too many wait, further ones are refused', async () => {
  const inTurn = drawingTurns();
  let [drawing, atOnce] = [0, 0];
  const draw = async () => {
    atOnce = Math.max(atOnce, ++drawing);
    await new Promise(setImmediate);
    drawing--;
  };
  const ended = await Promise.allSettled(Array.from({ length: 300 }, () => inTurn(draw)));
  expect(atOnce).toBe(1);
  const refused = ended.filter(({ status }) => status === 'rejected');
  expect(refused).toHaveLength(99);
  expect(refused[0]).toMatchObject({ reason: { status: 503, code: 'busy' } });
  await inTurn(draw);
});

test('a picture that cannot be drawn holds up no other', async () => {
  const inTurn = drawingTurns();
  const broken = inTurn(async () => {
    throw new Error('no paint');
  });
  const next = inTurn(async () => 'drawn');
  await expect(broken).rejects.toThrow('no paint');
  expect(await next).toBe('drawn');
});

test('between two pictures, other work of the process has its turn', async () => {
  const inTurn = drawingTurns();
  let drawn = 0;
  const all = Array.from({ length: 20 }, () => inTurn(async () => drawn++));
  await new Promise(setImmediate);
  expect(drawn).toBeLessThan(3);
  await Promise.all(all);
  expect(drawn).toBe(20);
});
