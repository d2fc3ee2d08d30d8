import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { CreditLedger } from '../../../src/credits/ledger.ts';
import { creditsFolder, dailyCreditLedger } from '../../../src/state/files/daily-ledger.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { asking, charged, leaseOf, ledgerSuite } from '../ledger-suite.ts';

const root = temporaryFolder();
let folders = 0;
const newFolder = () => join(root, `${++folders}`);
const noon = Date.parse('2026-11-22T12:00:00Z');
const hour = 3_600_000;

/** Each call opens the ledger of one more process; all have one clock. */
function dayOf(folder = newFolder()) {
  const clock = { now: noon };
  const warnings: string[] = [];
  const open = (apiKey = 'key') =>
    dailyCreditLedger({
      ...{ folder, baseUrl: 'https://api.example.com', apiKey },
      now: () => clock.now,
      warn: (message) => warnings.push(message),
    });
  const file = () => join(creditsFolder(folder), readdirSync(creditsFolder(folder))[0] ?? '');
  return { clock, open, file, folder, warnings };
}

describe('what calls spend on one day', () => {
  ledgerSuite(async () => {
    const { open } = dayOf();
    const ledgers = new Map<string, CreditLedger>();
    const of = (tenantId: string) => {
      const ledger = ledgers.get(tenantId) ?? open(tenantId);
      ledgers.set(tenantId, ledger);
      return ledger;
    };
    return {
      read: (id) => of(id).read(id),
      estimate: (id) => of(id).estimate(id),
      reserve: (id, request) => of(id).reserve(id, request),
      changed: (id, version, signal) => of(id).changed(id, version, signal),
      settle: (id, settlement, lease) => of(id).settle(id, settlement, lease),
      saved: (id, credits) => of(id).saved(id, credits),
      readBalance: (id, credits) => of(id).readBalance(id, credits),
    };
  });
});

const full = asking({ credits: 10 });

test('twenty processes at once reserve no more than the budget of the day', async () => {
  const { open } = dayOf();
  const kinds = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const ledger = open();
      const admission = await ledger.reserve('t', asking({ credits: 3 }));
      if (admission.kind === 'granted') await ledger.settle('t', charged(3), admission.lease);
      return admission.kind;
    }),
  );
  expect(kinds.filter((kind) => kind === 'granted').length).toBeLessThanOrEqual(3);
  expect((await open().read('t')).spent).toBeLessThanOrEqual(10);
});

test('each day has its budget, and a clock that jumps opens none twice', async () => {
  const { clock, open } = dayOf();
  const spend = async () => {
    const admission = await open().reserve('t', full);
    if (admission.kind === 'granted') await open().settle('t', charged(10), admission.lease);
    return admission.kind;
  };
  const at = async (hours: number) => {
    clock.now = noon + hours * hour;
    return spend();
  };
  expect([await at(0), await at(-13), await at(0), await at(11.9)]).toEqual([
    'granted',
    'refused',
    'refused',
    'refused',
  ]);
  expect([await at(12.1), await at(0), await at(30), await at(36.1)]).toEqual([
    'granted',
    'refused',
    'refused',
    'granted',
  ]);
  expect(await open().read('t')).toMatchObject({ day: '2026-11-24', spent: 10 });
});

test('what is in progress at midnight counts on the day on which it ends, and is reserved until then', async () => {
  const { clock, open } = dayOf();
  const lease = leaseOf(await open().reserve('t', full));
  clock.now = noon + 12 * hour + 1;
  const ledger = open();
  // By the clock it lasts too long, so it counts as lost, until it says what it cost.
  expect((await ledger.reserve('t', full)).kind).toBe('refused');
  await open().settle('t', charged(4), lease);
  expect(await ledger.read('t')).toMatchObject({ spent: 4, uncertain: 0, reserved: 0 });
});

test('a file that is damaged closes the budget, and says what to do', async () => {
  const { open, file, folder, warnings } = dayOf();
  await open().settle('t', charged(4));
  expect(readFileSync(file(), 'utf8')).not.toContain('key');
  for (const text of ['', '{"day":"2026-11-22"', '{"day":"2026-11-22","version":1,"account":{}}']) {
    writeFileSync(file(), text);
    await expect(open().reserve('t', full)).rejects.toThrow(/delete it to begin the day anew/);
    await open().settle('t', charged(1));
  }
  expect(warnings).toHaveLength(3);
  const other = dayOf(join(folder, 'other'));
  mkdirSync(join(folder, 'other'));
  writeFileSync(creditsFolder(join(folder, 'other')), '');
  await expect(other.open().reserve('t', full)).rejects.toMatchObject({ failure: { kind: 'unavailable' } });
});
