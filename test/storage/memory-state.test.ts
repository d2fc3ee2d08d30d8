import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../../src/storage/drivers/memory.ts';
import { exportTtlMs, openFolderExports, openMemoryExports } from '../../src/storage/exports.ts';
import { createMemoryLedger } from '../../src/storage/in-memory.ts';
import { openMemoryState } from '../../src/storage/open.ts';
import { TenantCache } from '../../src/storage/tenant-cache.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { testAnswers, ttlMs } from './answers-suite.ts';
import { chargedSettlement, getLease, requestCredits } from './charges.ts';
import { testCursors } from './cursors-suite.ts';
import { exportFile, testExports } from './exports-suite.ts';

const options = { ttlMs };

describe('Cached responses in memory', () => {
  testAnswers(async () => {
    let time = 1;
    const { responseCache } = openMemoryState({ ...options, now: () => time, monotonicNow: () => time });
    const pass = async (ms: number) => {
      time += ms;
    };
    return { responseCache, now: () => time, advanceTime: pass };
  });
});

describe('Search cursors in memory', () => {
  testCursors(
    'in memory',
    async () => openMemoryState({ ...options, now: () => 1, monotonicNow: () => 1 }).openCursors,
  );

  test('a search cursor in memory expires after one day', async () => {
    let now = 1;
    const cursors = openMemoryState({ ...options, now: () => now, monotonicNow: () => now }).openCursors('a');
    await cursors.save('@1.x', { searchParams: {} });
    now += 86_400_000 - 1;
    expect(await cursors.load('@1.x')).toBeDefined();
    now += 1;
    expect(await cursors.load('@1.x')).toBeUndefined();
  });
});

describe('Exported files in memory', () => {
  let ticks = 1;
  testExports('in memory', async () => openMemoryExports(() => ++ticks));

  test('an exported file in memory and its link expire after an hour', async () => {
    let now = 1;
    const store = openMemoryExports(() => now);
    const exports = store.forTenant('a');
    const { uri, linkPath = '' } = await exportFile(exports, 'x.csv', 'x');
    now += exportTtlMs - 1;
    expect(await exports.list()).toHaveLength(1);
    now += 1;
    expect(await exports.list()).toEqual([]);
    expect(await exports.find(uri)).toBeUndefined();
    expect(await store.links?.find(linkPath.split('/')[2] ?? '', 'x.csv')).toBe('ended');
  });

  const folder = createTemporaryFolder();
  test('the links of expired files do not stay in memory', async () => {
    let now = 1;
    const store = new MemoryStore(() => now);
    const twoDaysMs = 2 * 86_400_000;
    const writeLinks = async (count: number, firstNumber: number) => {
      for (let number = firstNumber; number < firstNumber + count; number++)
        await store.swapDocument(`link ${number}`, '', { version: '1', body: Buffer.from('{}'), ttlMs: twoDaysMs });
    };
    for (let round = 0; round < 20; round++) {
      await writeLinks(1000, round * 1000);
      now += twoDaysMs;
    }
    // The links of one round take about 1 MB.
    expect(store.bytes).toBeLessThan(3 * 1024 * 1024);
  });

  test('only the last fifty exported files are listed', async () => {
    const exports = openFolderExports({ folder }, () => 1).forTenant('a');
    const written: string[] = [];
    for (let at = 0; at < 52; at++) {
      written.unshift((await exportFile(exports, 'x.csv')).uri);
      await exports.find(written.at(-1) ?? '');
    }
    expect((await exports.list()).map(({ uri }) => uri)).toEqual(written.slice(0, 50));
  });
});

describe('The cache of data per tenant', () => {
  const open = (maxBytes: number, now = () => 0) => new TenantCache<number>({ maxBytes, ttlMs: 1000, now });

  test('the cache with separate entries for each API key never exceeds its memory limit', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ tenant: fc.nat(5), name: fc.nat(30), bytes: fc.nat(20_000) }), { maxLength: 300 }),
        (entries) => {
          const store = open(100_000);
          for (const { tenant, name, bytes } of entries) {
            store.set(`t${tenant}`, `n${name}`, { value: name, bytes });
            expect(store.bytes).toBeLessThanOrEqual(100_000);
            expect(store.get(`t${tenant}`, `n${name}`)).toBe(name);
          }
        },
      ),
    );
  });

  test('new cache entries of an API key with many entries evict only the oldest entries of the same key', () => {
    const store = open(1_000_000);
    for (let index = 0; index < 20; index++) store.set(`small ${index}`, 'only', { value: index, bytes: 8000 });
    store.set('greedy', 'used', { value: -1, bytes: 1000 });
    for (let index = 0; index < 5000; index++) {
      store.set('greedy', `n${index}`, { value: index, bytes: 4000 });
      expect(store.get('greedy', 'used')).toBe(-1);
    }
    for (let index = 0; index < 20; index++) expect(store.get(`small ${index}`, 'only')).toBe(index);
    expect(store.get('greedy', 'n4999')).toBe(4999);
    expect(store.get('greedy', 'n0')).toBeUndefined();
  });

  test('the cache evicts no more entries of other API keys than necessary', () => {
    const store = open(1_000_000);
    for (let index = 0; index < 100; index++) {
      store.set(`t${index}`, 'only', { value: index, bytes: 9000 });
      expect(store.get('t0', 'only')).toBe(0);
    }
    expect(store.get('t1', 'only')).toBeUndefined();
    expect(store.get('t99', 'only')).toBe(99);
    expect(store.bytes).toBeGreaterThan(900_000);
  });

  test('the cache never returns entries that are expired, too large or removed', () => {
    let time = 0;
    const store = open(100_000, () => time);
    store.set('t', 'old', { value: 1, bytes: 10 });
    for (const [now, isFound] of [
      [-999, true],
      [999, true],
      [-1000, false],
    ] as const) {
      time = now;
      expect(store.get('t', 'old') !== undefined).toBe(isFound);
    }
    store.set('t', 'huge', { value: 1, bytes: 100_000 });
    expect(store.get('t', 'huge')).toBeUndefined();
    for (const name of ['items a 1', 'items a 2', 'items b 1']) store.set('t', name, { value: 1, bytes: 10 });
    store.set('other', 'items a 1', { value: 2, bytes: 10 });
    store.removeByPrefix('t', 'items a');
    expect(store.get('t', 'items a 2')).toBeUndefined();
    expect(store.get('t', 'items b 1')).toBe(1);
    expect(store.get('other', 'items a 1')).toBe(2);
    store.removeByPrefix('t', '');
    expect(store.get('t', 'items b 1')).toBeUndefined();
  });
});

describe('The credit ledger in memory', () => {
  test('a call that waits for the credit ledger stops waiting when the client cancels the call', async () => {
    const ledger = createMemoryLedger({ monotonicNow: Date.now });
    await ledger.reserve('t', requestCredits({ queue: 'paid' }));
    const admission = await ledger.reserve('t', requestCredits({ queue: 'paid' }));
    if (admission.kind !== 'wait') throw new Error(admission.kind);
    const caller = new AbortController();
    const changed = ledger.waitForChange('t', admission.version, caller.signal);
    caller.abort(new Error('left'));
    await expect(changed).rejects.toThrow('left');
  });

  test('the charge of a call counts once, even if its cost is recorded twice', async () => {
    const ledger = createMemoryLedger({ monotonicNow: Date.now });
    for (const id of ['a claim', 'a claim', 'another']) await ledger.settle('t', { ...chargedSettlement(3), id });
    expect(await ledger.read('t')).toMatchObject({ spentCredits: 6, paidCallCount: 2 });
  });

  test('the total of the credit ledger stays a finite number after very large charges', async () => {
    const ledger = createMemoryLedger({ monotonicNow: Date.now });
    for (const credits of [999_999_999_999.999, 1e300]) await ledger.settle('t', chargedSettlement(credits));
    expect((await ledger.read('t')).spentCredits).toBeGreaterThan(1e299);
    expect((await ledger.reserve('t', requestCredits({ budget: 1e9, credits: 0.000_001 }))).kind).toBe('refused');
  });

  test('the spending of an API key stays recorded while thousands of other API keys make calls', async () => {
    const ledger = createMemoryLedger({ monotonicNow: () => 0, maxBytes: 100_000 });
    await ledger.settle('spender', chargedSettlement(10));
    const lease = getLease(await ledger.reserve('caller', requestCredits({ credits: 10 })));
    for (let index = 0; index < 5000; index++) {
      await ledger.reserve(`stranger ${index}`, requestCredits());
      await ledger.read(`passer-by ${index}`);
    }
    expect(await ledger.reserve('spender', requestCredits())).toMatchObject({ kind: 'refused' });
    expect(await ledger.reserve('caller', requestCredits())).toMatchObject({ kind: 'refused' });
    await ledger.settle('caller', { ...chargedSettlement(0), isPaidResponse: false }, lease);
    expect(await ledger.reserve('caller', requestCredits())).toMatchObject({ kind: 'granted' });
  });

  test('the server forgets the spending of an API key 30 days after its last charge', async () => {
    let time = 1;
    const ledger = createMemoryLedger({ monotonicNow: () => time, maxLongLivedBytes: 1 });
    await ledger.settle('t', chargedSettlement(4));
    time += 29 * 86_400_000;
    await ledger.settle('t', { ...chargedSettlement(6), isPaidResponse: false });
    time += 2 * 86_400_000;
    expect((await ledger.read('t')).spentCredits).toBe(10);
    await expect(ledger.reserve('other', requestCredits())).rejects.toMatchObject({ failure: { kind: 'busy' } });
    // A free call also extends how long the spending of a connection is remembered.
    await ledger.settle('t', { ...chargedSettlement(0), isPaidResponse: false, extendsRetention: true });
    time += 29 * 86_400_000;
    expect((await ledger.read('t')).spentCredits).toBe(10);
    time += 2 * 86_400_000;
    expect((await ledger.read('t')).spentCredits).toBe(0);
  });

  test('paid calls with new API keys are rejected while the memory for spending records is full', async () => {
    let time = 1;
    const ledger = createMemoryLedger({ monotonicNow: () => time, maxLongLivedBytes: 3200 });
    for (const tenant of ['a', 'b', 'c']) await ledger.settle(tenant, chargedSettlement(10));
    await expect(ledger.reserve('d', requestCredits())).rejects.toMatchObject({
      failure: { kind: 'busy', storage: 'full' },
    });
    expect(await ledger.reserve('a', requestCredits())).toMatchObject({ kind: 'refused' });
    time += 31 * 86_400_000;
    expect(await ledger.reserve('d', requestCredits())).toMatchObject({ kind: 'granted' });
  });
});
