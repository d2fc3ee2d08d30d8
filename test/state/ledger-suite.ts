import { expect, test } from 'vitest';
import type { Call } from '../../src/api/call.ts';
import { operations } from '../../src/api/operations.ts';
import type { Admission, CreditLedger, ReserveRequest, Settlement } from '../../src/credits/ledger.ts';
import { learnPrice } from '../../src/credits/prices.ts';

/** One settlement as a service states it. */
export const charged = (credits: number): Settlement => ({ charged: credits, uncertain: 0, isPaidAnswer: true });

/** A settlement that shows the price of an ad. */
export const learning = (credits: number): Settlement => ({
  ...charged(credits),
  learn: (prices) => learnPrice(prices, { operation: operations.getAd, query: {} } as Call, { value: {} }, credits),
});

export const asking =
  (request: Partial<ReserveRequest> = {}) =>
  () => ({
    budget: 10,
    credits: 1,
    paid: true,
    ...request,
  });

export function leaseOf(admission: Admission) {
  if (admission.kind !== 'granted') throw new Error(`not granted but ${admission.kind}`);
  return admission.lease;
}

const never = () => new AbortController().signal;

/** What every ledger does, in memory or in Redis. */
export function ledgerSuite(openLedger: () => Promise<CreditLedger>): void {
  test('counts what is charged, what may be and what is left', async () => {
    const ledger = await openLedger();
    await ledger.settle('t', { ...charged(3), remaining: 97 });
    await ledger.settle('t', { charged: 0, uncertain: 2, isPaidAnswer: false });
    expect(await ledger.read('t')).toMatchObject({
      spent: 3,
      uncertain: 2,
      calls: 1,
      remaining: 97,
      reserved: 0,
    });
    expect(await ledger.read('other')).toMatchObject({ spent: 0, uncertain: 0, calls: 0, remaining: undefined });
  });

  test('reserves until a call is settled, and refuses what does not fit beside that', async () => {
    const ledger = await openLedger();
    const lease = leaseOf(await ledger.reserve('t', asking({ credits: 6 })));
    const second = await ledger.reserve('t', asking({ credits: 5 }));
    expect(second).toMatchObject({ kind: 'refused', account: { reserved: 6, paidInFlight: 1 } });
    await ledger.settle('t', charged(2), lease);
    expect(await ledger.reserve('t', asking({ credits: 5 }))).toMatchObject({ kind: 'granted' });
    expect(await ledger.read('t')).toMatchObject({ spent: 2, reserved: 5 });
  });

  test('lets four paid calls run at once, and one where four more of the highest price would not fit', async () => {
    const ledger = await openLedger();
    await ledger.settle('t', learning(2));
    const kinds: string[] = [];
    for (let call = 0; call < 5; call++) {
      const admission = await ledger.reserve('t', asking({ budget: 100 }));
      kinds.push(admission.kind);
      if (call === 0) await ledger.settle('t', charged(0), leaseOf(admission));
    }
    expect(kinds).toEqual(['granted', 'granted', 'granted', 'granted', 'granted']);
    expect((await ledger.reserve('t', asking({ budget: 100 }))).kind).toBe('wait');
    expect((await ledger.reserve('t', asking({ budget: 100, paid: false }))).kind).toBe('granted');
    expect((await ledger.reserve('t', asking({ budget: 13 }))).kind).toBe('wait');
  });

  test('lets calls of unknown price run one at a time in each queue, and wakes those that wait', async () => {
    const ledger = await openLedger();
    const lease = leaseOf(await ledger.reserve('t', asking({ line: 'paid' })));
    const admission = await ledger.reserve('t', asking({ line: 'paid' }));
    expect((await ledger.reserve('t', asking({ line: 'other', paid: false, credits: 0 }))).kind).toBe('granted');
    if (admission.kind !== 'wait') throw new Error(admission.kind);
    const changed = ledger.changed('t', admission.version, never());
    await ledger.settle('t', charged(1), lease);
    await changed;
    expect((await ledger.reserve('t', asking({ line: 'paid' }))).kind).toBe('granted');
  });

  test('a caller that leaves stops waiting', async () => {
    const ledger = await openLedger();
    await ledger.reserve('t', asking({ line: 'paid' }));
    const admission = await ledger.reserve('t', asking({ line: 'paid' }));
    if (admission.kind !== 'wait') throw new Error(admission.kind);
    const caller = new AbortController();
    const changed = ledger.changed('t', admission.version, caller.signal);
    caller.abort(new Error('left'));
    await expect(changed).rejects.toThrow('left');
  });

  test('learns prices, and quotes by those of the account as it is', async () => {
    const ledger = await openLedger();
    for (const credits of [2, 5, 3]) await ledger.settle('t', learning(credits));
    const { prices } = await ledger.read('t');
    expect(prices.get('getAd')?.bySize.get(1)?.any).toBe(5);
    const seen: (number | undefined)[] = [];
    await ledger.reserve('t', ({ prices: known }) => {
      seen.push(known.get('getAd')?.bySize.get(1)?.any);
      return asking()();
    });
    expect(seen.at(-1)).toBe(5);
  });

  test('what ten callers learn at once is all learned', async () => {
    const ledger = await openLedger();
    const names = Object.values(operations);
    const learn = (index: number): Settlement => ({
      ...charged(1),
      learn: (prices) =>
        learnPrice(
          prices,
          { operation: names[index], query: { limit: 1 } } as unknown as Call,
          { value: {} },
          index + 1,
        ),
    });
    await Promise.all(names.map((_, index) => ledger.settle('t', learn(index))));
    const { prices, spent } = await ledger.read('t');
    expect(new Set(prices.keys())).toEqual(new Set(names.map(({ name }) => name)));
    expect(spent).toBe(names.length);
  });

  test('fractions of credits add up: ten tenths are one', async () => {
    const ledger = await openLedger();
    for (let time = 0; time < 10; time++) {
      const lease = leaseOf(await ledger.reserve('t', asking({ budget: 1, credits: 0.1 })));
      await ledger.settle('t', charged(0.1), lease);
    }
    expect((await ledger.reserve('t', asking({ budget: 1, credits: 0.1 }))).kind).toBe('refused');
  });

  test('explains a change of the balance by the charges of calls that began after it was read', async () => {
    const ledger = await openLedger();
    const early = leaseOf(await ledger.reserve('t', asking()));
    expect(await ledger.readBalance('t', 100)).toBeUndefined();
    const late = leaseOf(await ledger.reserve('t', asking()));
    await ledger.settle('t', charged(2), early);
    await ledger.settle('t', charged(3), late);
    expect(await ledger.readBalance('t', undefined)).toMatchObject({ credits: 100, explained: 3 });
    expect(await ledger.readBalance('t', undefined)).toBeUndefined();
  });

  test('huge charges stay numbers, and budgets below them refuse', async () => {
    const ledger = await openLedger();
    await ledger.settle('t', charged(999_999_999_999.999));
    await ledger.settle('t', charged(1e300));
    expect((await ledger.read('t')).spent).toBeGreaterThan(1e299);
    expect((await ledger.reserve('t', asking({ budget: 1e9, credits: 0.000_001 }))).kind).toBe('refused');
  });
}
