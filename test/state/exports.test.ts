import { expect, test } from 'vitest';
import { exportTtl, MemoryExports } from '../../src/state/exports.ts';
import { exportFile, exportsSuite } from './exports-suite.ts';

exportsSuite('in memory', async () => new MemoryExports({ now: () => 1, elapsed: () => 1 }));

test('can be read for an hour', async () => {
  let now = 1;
  const exports = new MemoryExports({ now: () => 1, elapsed: () => now }).of('a');
  const { uri } = await exportFile(exports, 'x.csv', 'x');
  now += exportTtl - 1;
  expect(await exports.list()).toHaveLength(1);
  now += 1;
  expect(await exports.list()).toEqual([]);
  expect(await exports.find(uri)).toBeUndefined();
});
