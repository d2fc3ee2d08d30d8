import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FairStore } from '../../src/state/memory-state.ts';

const open = (maxBytes: number, now = () => 0) => new FairStore<number>({ maxBytes, ttl: 1000, now });

test('holds no more than its bound, however it is filled', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ tenant: fc.nat(5), name: fc.nat(30), bytes: fc.nat(20_000) }), { maxLength: 300 }),
      (entries) => {
        const store = open(100_000);
        for (const { tenant, name, bytes } of entries) {
          store.set(`t${tenant}`, `n${name}`, { value: name, bytes });
          expect(store.bytes).toBeLessThanOrEqual(100_000);
          expect(store.get(`t${tenant}`, `n${name}`) ?? name).toBe(name);
        }
      },
    ),
  );
});

test('counts an entry at what it costs, however small its content is', () => {
  const store = open(1_000_000);
  for (let index = 0; index < 200_000; index++) store.set('t', `n${index}`, { value: index, bytes: 0 });
  const held = Array.from({ length: 200_000 }, (_, index) => store.get('t', `n${index}`)).filter(
    (one) => one !== undefined,
  );
  expect(held.length).toBeLessThan(1000);
  expect(held.length).toBeGreaterThan(500);
});

test('a tenant who stores much evicts only its own entries', () => {
  const store = open(1_000_000);
  for (let tenant = 0; tenant < 20; tenant++) store.set(`small ${tenant}`, 'only', { value: tenant, bytes: 8000 });
  for (let index = 0; index < 5000; index++) store.set('greedy', `n${index}`, { value: index, bytes: 4000 });
  for (let tenant = 0; tenant < 20; tenant++) expect(store.get(`small ${tenant}`, 'only')).toBe(tenant);
  expect(store.get('greedy', 'n4999')).toBe(4999);
  expect(store.get('greedy', 'n0')).toBeUndefined();
});

test('of tenants who hold as much as each other only a few give something up', () => {
  const store = open(1_000_000);
  let kept = 0;
  for (let tenant = 0; kept === store.bytes; tenant++) {
    kept += 9000 + 2 * 'only'.length + 1024;
    store.set(`t${tenant}`, 'only', { value: tenant, bytes: 9000 });
  }
  expect(store.bytes).toBeGreaterThan(900_000);
});

test('of one tenant the last used entries stay', () => {
  const store = open(100_000);
  store.set('t', 'used', { value: 1, bytes: 1000 });
  for (let index = 0; index < 500; index++) {
    store.set('t', `n${index}`, { value: index, bytes: 1000 });
    expect(store.get('t', 'used')).toBe(1);
  }
});

test('drops entries that are too old, too large, or deleted', () => {
  let time = 0;
  const store = open(100_000, () => time);
  store.set('t', 'old', { value: 1, bytes: 10 });
  time = 1000;
  expect(store.get('t', 'old')).toBeUndefined();
  store.set('t', 'huge', { value: 1, bytes: 100_000 });
  expect(store.get('t', 'huge')).toBeUndefined();
  for (const name of ['items a 1', 'items a 2', 'items b 1']) store.set('t', name, { value: 1, bytes: 10 });
  store.set('other', 'items a 1', { value: 2, bytes: 10 });
  store.drop('t', 'items a');
  expect(['items a 1', 'items a 2', 'items b 1'].map((name) => store.get('t', name))).toEqual([
    undefined,
    undefined,
    1,
  ]);
  expect(store.get('other', 'items a 1')).toBe(2);
  store.drop('t', '');
  expect(store.get('t', 'items b 1')).toBeUndefined();
});

test('makes room among very many tenants without looking at all of them for each entry', () => {
  const store = open(20_000_000);
  for (let index = 0; index < 60_000; index++) store.set(`t${index}`, 'only', { value: index, bytes: 100 });
  expect(store.bytes).toBeLessThanOrEqual(20_000_000);
  expect(store.get('t59999', 'only')).toBe(59_999);
});
