import { expect, test } from 'vitest';
import { TenantTurns } from '../../src/workers/pool.ts';

const limits = { maxRunning: 4, perTenant: 3, maxWaiting: 10, of: 'pictures' };

/** Takes a turn, and tells in which order turns began. */
function taker(turns: TenantTurns) {
  const began: string[] = [];
  const ends = new Map<string, () => void>();
  const take = async (name: string, signal?: AbortSignal) => {
    const end = await turns.take(name.split(' ')[0] ?? '', signal);
    began.push(name);
    ends.set(name, end);
  };
  const end = async (name: string) => {
    ends.get(name)?.();
    await new Promise(setImmediate);
  };
  return { began, take, end };
}

test('a tenant that asks for much leaves room for others, and who has fewer turns comes first', async () => {
  const { began, take, end } = taker(new TenantTurns(limits));
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

test.for([1, 2])('%i at once: long queues of some tenants hold up nobody who asks for little', async (maxRunning) => {
  const { began, take, end } = taker(new TenantTurns({ ...limits, maxRunning, perTenant: 1, maxWaiting: 200 }));
  const names = ['one', 'two'].flatMap((tenant) => Array.from({ length: 60 }, (_, index) => `${tenant} ${index}`));
  for (const name of names) void take(name);
  for (let asked = 0; asked < 10; asked++) {
    void take(`third ${asked}`);
    for (let ended = 0; !began.includes(`third ${asked}`); ended++) {
      expect(ended).toBeLessThan(3);
      await end(began.at(-maxRunning) ?? '');
    }
  }
});

test('equally many turns are running: the tenant whose last turn began longest ago comes first', async () => {
  const { began, take, end } = taker(new TenantTurns({ ...limits, maxRunning: 1 }));
  for (const name of ['a 1', 'a 2', 'a 3', 'b 1', 'b 2', 'c 1']) void take(name);
  await new Promise(setImmediate);
  for (let turn = 0; turn < 5; turn++) await end(began.at(-1) ?? '');
  expect(began).toEqual(['a 1', 'b 1', 'c 1', 'a 2', 'b 2', 'a 3']);
});

test('whoever stops waiting takes no turn', async () => {
  const { began, take, end } = taker(new TenantTurns({ ...limits, maxRunning: 1 }));
  await take('first');
  const leaving = new AbortController();
  const left = take('left', leaving.signal);
  const last = take('last');
  leaving.abort(new Error('gone'));
  await expect(left).rejects.toThrow('gone');
  await end('first');
  await last;
  expect(began).toEqual(['first', 'last']);
  await expect(take('aborted', AbortSignal.abort(new Error('before')))).rejects.toThrow('before');
});

test('one tenant may hold half of the queue, all together the whole', async () => {
  const turns = new TenantTurns({ ...limits, maxRunning: 1 });
  await turns.take('first');
  const waiting = (tenant: string, count: number) =>
    Array.from({ length: count }, () => turns.take(tenant).catch(() => {}));
  waiting('greedy', 5);
  await expect(turns.take('greedy')).rejects.toMatchObject({ failure: { kind: 'busy' } });
  waiting('other', 5);
  await expect(turns.take('third')).rejects.toThrow('Too many pictures are waiting');
});
