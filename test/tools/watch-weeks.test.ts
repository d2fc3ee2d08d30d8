import fc from 'fast-check';
import { expect } from 'vitest';
import { AdService, createAd } from '../support/ad-service.ts';
import { respondWithError } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import type { TestServer } from '../support/server.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const test = freshUpstreamTest({ config: { cacheSeconds: 0 } });
const root = createTemporaryFolder({ inMemory: true });
let folders = 0;

/** Generates the changes of a day. Without a `textVersion`, the ad disappears; otherwise it has this text. */
const dayChanges = fc.array(fc.record({ number: fc.nat(29), textVersion: fc.option(fc.nat(2)) }), { maxLength: 15 });

/** Generates a fault that ends a `check_watches` call at one of its searches. */
const fault = fc.option(
  fc.record({
    kind: fc.constantFrom('cancel', 'server ends', '402', '429', '500', 'hangs'),
    at: fc.integer({ min: 1, max: 6 }),
  }),
  { nil: undefined, freq: 2 },
);

const call = fc.record({ maxCredits: fc.constantFrom(2, 6, 100), fault, gathersBefore: fc.boolean() });
const week = fc.array(fc.record({ changes: dayChanges, calls: fc.array(call, { minLength: 1, maxLength: 2 }) }), {
  minLength: 2,
  maxLength: 4,
});

type Snapshot = ReadonlyMap<string, number>;
interface CheckView extends Record<'new' | 'changed' | 'gone', string[] | null> {
  name: string;
  complete: boolean;
  since: string | null;
}

/** The watches, each with the remainder that selects its ads. Two watches have the same filters. */
const watches = { a: 0, b: 1, c: 2, again: 0 };
const hour = 3_600_000;

test('check_watches reports exactly the changes of a week even if some checks were interrupted', async ({
  upstream,
  start,
}) => {
  await fc.assert(
    fc.asyncProperty(week, async (days) => {
      const folder = `${root}/${++folders}`;
      let clock = Date.parse('2026-11-16T09:00:00Z');
      const open = () => start({ files: folder, timeoutMs: 2000 }, { now: () => clock++ });
      let server = await open();
      const service = new AdService(0);
      upstream.respondWith(service.respond);
      const texts = new Map<number, number>(Array.from({ length: 15 }, (_, number) => [number, 1]));
      const updateAds = () => {
        service.ads = [...texts].map(([number, text]) => createAd(number, { body: `Text ${text}`, number }));
      };
      const matching = ({ part }: Record<string, unknown>) =>
        service.ads.filter(({ number }) => Number(number) % 3 === part);
      service.selectAds = matching;
      updateAds();
      const readState = (remainder: number): Snapshot =>
        new Map(matching({ part: remainder }).map(({ id, body }) => [id, Number(String(body).slice(5))]));
      for (const [name, remainder] of Object.entries(watches))
        await server.call('watch_ads', { name, filters: { part: remainder }, maxCredits: 4 });
      /** The ads of each watch in its last complete check whose result reached the caller. */
      const lastCompleteStates = new Map<string, Snapshot>();

      for (const { changes, calls } of days) {
        for (const { number, textVersion } of changes) {
          if (textVersion === null) texts.delete(number);
          else texts.set(number, textVersion);
        }
        updateAds();
        clock += 25 * hour;
        for (const { maxCredits, fault, gathersBefore } of calls) {
          if (gathersBefore) await server.call('gather_ads', { filters: { part: 0 }, maxCredits: 50, fresh: true });
          const before = service.chargedCredits;
          const cachedBefore = fault?.kind === 'cancel' ? await readCachedCredits(server) : 0;
          const caller = new AbortController();
          let searches = 0;
          service.overrideResponse = () => {
            if (++searches !== fault?.at) return undefined;
            if (fault.kind === 'cancel') caller.abort();
            if (fault.kind === 'server ends') void server.stopApp();
            if (fault.kind === 'hangs') return () => {};
            return /^\d/.test(fault.kind) ? respondWithError(Number(fault.kind)) : undefined;
          };
          const result = await server
            .call('check_watches', { maxCredits }, { signal: caller.signal })
            .catch(() => undefined);
          service.overrideResponse = () => undefined;
          // Wait until the server has stored the cancelled read, because the clock advances by a day afterwards.
          if (result === undefined && fault?.kind === 'cancel')
            await expect
              .poll(() => readCachedCredits(server), { timeout: 10_000 })
              .toBe(cachedBefore + service.chargedCredits - before);
          // The result of a stopping server may be lost, so the next check reports the same changes again.
          const isServerStopping = fault?.kind === 'server ends' && searches >= fault.at;
          if (isServerStopping) server = await open();
          expect(service.chargedCredits - before).toBeLessThanOrEqual(maxCredits);
          // The server checks a reached usage limit again after a minute, so advance the clock.
          if (fault?.kind === '429') clock += 61_000;
          const checks = (result?.isError ? [] : (result?.data.watches ?? [])) as CheckView[];
          for (const check of checks) {
            const lastState = lastCompleteStates.get(check.name);
            const state = readState(watches[check.name as keyof typeof watches]);
            compareCheck(check, lastState, state);
            if (check.complete && !isServerStopping) lastCompleteStates.set(check.name, state);
          }
        }
      }
      // A final call without faults reports the remaining changes.
      clock += 25 * hour;
      const finalServer = await start({ files: folder }, { now: () => clock++ });
      const last = await finalServer.call('check_watches', { maxCredits: 1000 });
      for (const check of last.data.watches as CheckView[]) {
        expect(check.complete).toBe(true);
        compareCheck(check, lastCompleteStates.get(check.name), readState(watches[check.name as keyof typeof watches]));
      }
      for (const one of [server, finalServer]) await one.close();
    }),
    { numRuns: 6 },
  );
}, 180_000);

async function readCachedCredits(server: Pick<TestServer, 'queryRows'>): Promise<number> {
  const [row] = (await server.queryRows('SELECT coalesce(sum(charged), 0) FROM gatherings')) ?? [];
  return row ? Number(row[0]) : readCachedCredits(server);
}

function compareCheck(check: CheckView, base: Snapshot | undefined, state: Snapshot): void {
  expect(check.since === null).toBe(base === undefined);
  if (base === undefined) expect([check.new, check.changed, check.gone]).toEqual([null, null, null]);
  if (base === undefined) return;
  const truth = {
    new: [...state.keys()].filter((id) => !base.has(id)),
    changed: [...state].filter(([id, version]) => base.has(id) && base.get(id) !== version).map(([id]) => id),
    gone: [...base.keys()].filter((id) => !state.has(id)),
  };
  if (check.complete) {
    for (const kind of ['new', 'changed', 'gone'] as const)
      expect([...(check[kind] ?? ['null'])].sort()).toEqual(truth[kind].sort());
    return;
  }
  expect(check.gone).toBeNull();
  for (const kind of ['new', 'changed'] as const)
    expect(truth[kind]).toEqual(expect.arrayContaining(check[kind] ?? []));
}
