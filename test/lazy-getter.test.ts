import { expect, test } from 'vitest';
import { createLazyGetter } from '../src/lazy-getter.ts';

/** Creates a function that returns the number of its calls, and fails in the first call. */
function createFailingOnce() {
  let callCount = 0;
  return () => {
    callCount++;
    if (callCount === 1) throw new Error('The first call fails.');
    return callCount;
  };
}

test('a lazy getter creates its value at the first call, and only once', () => {
  const createdValues: object[] = [];
  const getValue = createLazyGetter(() => {
    const value = {};
    createdValues.push(value);
    return value;
  });
  expect(getValue.getIfCreated()).toBeUndefined();
  expect(createdValues).toEqual([]);
  expect([getValue(), getValue(), getValue.getIfCreated()].every((value) => value === createdValues[0])).toBe(true);
  expect(createdValues).toHaveLength(1);
});

test('a lazy getter tries again if it could not create its value', () => {
  const getValue = createLazyGetter(createFailingOnce());
  expect(getValue).toThrow('The first call fails.');
  expect(getValue.getIfCreated()).toBeUndefined();
  expect([getValue(), getValue()]).toEqual([2, 2]);
});

test('a lazy getter returns one promise to concurrent callers, and a new one after this promise has rejected', async () => {
  const create = createFailingOnce();
  const getValue = createLazyGetter(async () => create());
  const results = await Promise.allSettled([getValue(), getValue()]);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(getValue.getIfCreated()).toBeUndefined();
  expect(await Promise.all([getValue(), getValue()])).toEqual([2, 2]);
});
