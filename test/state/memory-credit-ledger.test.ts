import { expect, test } from 'vitest';
import type { Settlement } from '../../src/credits/ledger.ts';
import { memoryCreditLedger } from '../../src/state/memory-state.ts';

const charged = (credits: number): Settlement => ({ charged: credits, uncertain: 0, isPaidAnswer: true });
const paid = () => ({ budget: 10, credits: 1, paid: true });

test('what was spent is remembered, however many other keys come', async () => {
  const ledger = memoryCreditLedger({ now: () => 0, maxStrangers: 100 });
  await ledger.settle('spender', charged(10));
  for (let index = 0; index < 5000; index++) {
    await ledger.reserve(`stranger ${index}`, paid);
    await ledger.read(`passer-by ${index}`);
  }
  expect(await ledger.reserve('spender', paid)).toMatchObject({ kind: 'refused' });
});

test('reservations of calls in flight are remembered too', async () => {
  const ledger = memoryCreditLedger({ now: () => 0, maxStrangers: 100 });
  const admission = await ledger.reserve('caller', () => ({ ...paid(), credits: 10 }));
  for (let index = 0; index < 5000; index++) await ledger.read(`stranger ${index}`);
  expect(await ledger.reserve('caller', paid)).toMatchObject({ kind: 'refused' });
  if (admission.kind === 'granted')
    await ledger.settle('caller', { ...charged(0), isPaidAnswer: false }, admission.lease);
  expect(await ledger.reserve('caller', paid)).toMatchObject({ kind: 'granted' });
});

test('spending ends 30 days after the last paid call', async () => {
  let time = 1;
  const ledger = memoryCreditLedger({ now: () => time });
  await ledger.settle('t', charged(10));
  time += 29 * 86_400_000;
  expect((await ledger.read('t')).spent).toBe(10);
  time += 2 * 86_400_000;
  expect((await ledger.read('t')).spent).toBe(0);
});

test('what a failure, or a call said to be free, was charged counts as long', async () => {
  let time = 1;
  const ledger = memoryCreditLedger({ now: () => time, maxSpenders: 1 });
  await ledger.settle('t', charged(4));
  time += 29 * 86_400_000;
  await ledger.settle('t', { ...charged(6), isPaidAnswer: false });
  time += 2 * 86_400_000;
  expect((await ledger.read('t')).spent).toBe(10);
  await expect(ledger.reserve('other', paid)).rejects.toMatchObject({ failure: { kind: 'busy' } });
});

test('where the ledger is full, paid calls of new keys are refused and no other key is forgotten', async () => {
  let time = 1;
  const ledger = memoryCreditLedger({ now: () => time, maxSpenders: 3 });
  for (const tenant of ['a', 'b', 'c']) await ledger.settle(tenant, charged(10));
  await expect(ledger.reserve('d', paid)).rejects.toMatchObject({ failure: { kind: 'busy', sent: false } });
  expect(await ledger.reserve('a', paid)).toMatchObject({ kind: 'refused' });
  time += 31 * 86_400_000;
  expect(await ledger.reserve('d', paid)).toMatchObject({ kind: 'granted' });
});

test('fractions of credits add up: ten tenths are one', async () => {
  const ledger = memoryCreditLedger({ now: () => 0 });
  for (let time = 0; time < 10; time++) {
    const admission = await ledger.reserve('t', () => ({ budget: 1, credits: 0.1, paid: true }));
    if (admission.kind !== 'granted') throw new Error(`refused the call number ${time}`);
    await ledger.settle('t', charged(0.1), admission.lease);
  }
  expect(await ledger.reserve('t', () => ({ budget: 1, credits: 0.1, paid: true }))).toMatchObject({ kind: 'refused' });
});
