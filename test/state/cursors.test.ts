import { expect, test } from 'vitest';
import { memoryState } from '../../src/state/memory-state.ts';
import { cursorsSuite } from './cursors-suite.ts';

const options = { ttl: 0, maxPerTenant: 1, maxInAll: 1 };

cursorsSuite('in memory', async () => memoryState({ ...options, now: () => 1 }).cursorsOf);

test('are remembered for a day', async () => {
  let now = 1;
  const cursors = memoryState({ ...options, now: () => now }).cursorsOf('a');
  await cursors.remember('@1.x', { searchParams: {} });
  now += 86_400_000 - 1;
  expect(await cursors.recall('@1.x')).toBeDefined();
  now += 1;
  expect(await cursors.recall('@1.x')).toBeUndefined();
});
