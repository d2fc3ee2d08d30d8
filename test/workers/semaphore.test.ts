import { expect, test } from 'vitest';
import { Semaphore } from '../../src/workers/semaphore.ts';

const limits = { maxRunningCalls: 4, maxRunningCallsPerKey: 3, maxWaitingCalls: 10, workName: 'pictures' };

/** Returns functions that take and free slots. `began` lists the calls in the order in which they got slots. */
function createSlotTaker(semaphore: Semaphore) {
  const startedCalls: string[] = [];
  const ends = new Map<string, () => void>();
  const take = async (name: string, signal?: AbortSignal) => {
    const end = await semaphore.acquire(name.split(' ')[0] ?? '', signal);
    startedCalls.push(name);
    ends.set(name, end);
  };
  const end = async (name: string) => {
    ends.get(name)?.();
    await new Promise(setImmediate);
  };
  return { began: startedCalls, take, end };
}

test('the next free slot goes to the API key that uses the fewest slots', async () => {
  const { began, take, end } = createSlotTaker(new Semaphore(limits));
  const names = ['busy 1', 'busy 2', 'busy 3', 'busy 4', 'busy 5', 'late 1', 'late 2', 'other 1'];
  const all = Promise.all(names.map((name) => take(name)));
  await new Promise(setImmediate);
  expect(began).toEqual(['busy 1', 'busy 2', 'busy 3', 'late 1']);
  await end('busy 1');
  expect(began.at(-1)).toBe('other 1');
  await end('other 1');
  expect(began.at(-1)).toBe('late 2');
  for (const name of ['busy 2', 'busy 3', 'late 1', 'late 2']) await end(name);
  await all;
  expect(began.slice(-2)).toEqual(['busy 4', 'busy 5']);
});

test.for([1, 2])(
  'an API key with many waiting calls does not delay the calls of other keys (number of slots: %i)',
  async (atOnce) => {
    const { began, take, end } = createSlotTaker(
      new Semaphore({ ...limits, maxRunningCalls: atOnce, maxRunningCallsPerKey: 1, maxWaitingCalls: 200 }),
    );
    const names = ['one', 'two'].flatMap((tenant) => Array.from({ length: 60 }, (_, index) => `${tenant} ${index}`));
    for (const name of names) void take(name);
    for (let round = 0; round < 10; round++) {
      void take(`third ${round}`);
      for (let endedCalls = 0; !began.includes(`third ${round}`); endedCalls++) {
        expect(endedCalls).toBeLessThan(3);
        await end(began.at(-atOnce) ?? '');
      }
    }
  },
);

test('if several API keys use equally many slots, the key that was served least recently gets the next slot', async () => {
  const { began, take, end } = createSlotTaker(new Semaphore({ ...limits, maxRunningCalls: 1 }));
  for (const name of ['a 1', 'a 2', 'a 3', 'b 1', 'b 2', 'c 1']) void take(name);
  await new Promise(setImmediate);
  for (let round = 0; round < 5; round++) await end(began.at(-1) ?? '');
  expect(began).toEqual(['a 1', 'b 1', 'c 1', 'a 2', 'b 2', 'a 3']);
});

test('a call that the client cancels while it waits for a slot does not take the slot', async () => {
  const { began, take, end } = createSlotTaker(new Semaphore({ ...limits, maxRunningCalls: 1 }));
  await take('first');
  const leaving = new AbortController();
  const cancelledCall = take('left', leaving.signal);
  const last = take('last');
  leaving.abort(new Error('gone'));
  await expect(cancelledCall).rejects.toThrow('gone');
  await end('first');
  await last;
  expect(began).toEqual(['first', 'last']);
  await expect(take('aborted', AbortSignal.abort(new Error('before')))).rejects.toThrow('before');
});

test('a full queue rejects the newest call of the API key that has the most calls in the queue', async () => {
  const { began, take, end } = createSlotTaker(new Semaphore({ ...limits, maxRunningCalls: 1 }));
  const refused: string[] = [];
  const takeSlot = (name: string) =>
    take(name).catch(({ failure }) => {
      expect(failure).toMatchObject({ kind: 'busy', details: { retryAfterSeconds: expect.any(Number) } });
      refused.push(name);
    });
  await take('first');
  const names = Array.from({ length: 12 }, (_, index) => `greedy ${index}`);
  const waitingCalls = [...names, 'a 1', 'b 1', 'a 2', 'c 1'].map(takeSlot);
  await new Promise(setImmediate);
  expect(refused.toSorted()).toEqual([...names.slice(6)].toSorted());
  await end('first');
  for (let round = 0; round < 9; round++) await end(began.at(-1) ?? '');
  await Promise.all(waitingCalls);
  expect(began).toEqual(['first', 'greedy 0', 'a 1', 'b 1', 'c 1', 'greedy 1', 'a 2', ...names.slice(2, 6)]);
});

test('the first waiting call of each API key is never removed from a full queue', async () => {
  const { take } = createSlotTaker(new Semaphore({ ...limits, maxRunningCalls: 1 }));
  await take('first');
  for (let key = 0; key < 10; key++) void take(`key${key} 1`).catch(() => expect.unreachable());
  await expect(take('late 1')).rejects.toMatchObject({ failure: { kind: 'busy' } });
  await expect(take('key0 2')).rejects.toMatchObject({ failure: { kind: 'busy' } });
});

test('a call that times out while it waits for a slot fails as busy', async () => {
  const { take } = createSlotTaker(new Semaphore({ ...limits, maxRunningCalls: 1 }));
  await take('first');
  await expect(take('late', AbortSignal.timeout(1))).rejects.toMatchObject({
    failure: { kind: 'busy', wasSent: false },
  });
});
