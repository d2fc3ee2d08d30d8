import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { test } from 'vitest';
import { MemoryStore } from '../../../src/storage/drivers/memory.ts';
import { Documents } from '../../../src/storage/store/documents.ts';
import { newMs, Presence } from '../../../src/storage/store/presence.ts';
import { noSeal } from '../../../src/storage/store/seal.ts';

/** What happens to a store and to those who use it. Numbers choose among the processes. */
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ beats: fc.nat(2) }) },
    { weight: 5, arbitrary: fc.record({ ask: fc.uniqueArray(fc.nat(2), { minLength: 1 }) }) },
    { weight: 2, arbitrary: fc.record({ starts: fc.nat(2) }) },
    { weight: 2, arbitrary: fc.record({ pass: fc.constantFrom(100, newMs, 9000, 700_000) }) },
    { weight: 2, arbitrary: fc.record({ loses: fc.constantFrom('copy', 'restore', 'restore', 'everything') }) },
    { weight: 1, arbitrary: fc.record({ accepts: fc.constant(true) }) },
  ),
  { maxLength: 40, size: 'max' },
);

/** What the store holds, what was ever written to it, whether a loss is noted in it, and since when it is in use. */
interface Ghost {
  store: MemoryStore;
  written: readonly number[];
  isDoubted: boolean;
  since: number;
}

/** The last thing that a process wrote, and that it read, and when. */
interface Process {
  presence: Presence;
  wrote?: number | undefined;
  read?: number | undefined;
  at: number;
  /** Every epoch of the store that it knew, the present one last. */
  epochs: string[];
  /** Its loss was accepted, whoever noticed it. */
  isForgiven: boolean;
}

const key = 'key';
class World {
  #now = 1e12;
  #writes = 0;
  #is: Ghost = { store: new MemoryStore(() => this.#now), written: [], isDoubted: false, since: this.#now };
  #copy: Ghost | undefined;
  readonly #processes = [0, 1, 2].map(() => this.#start());

  async run(step: typeof steps extends fc.Arbitrary<(infer One)[]> ? One : never): Promise<void> {
    if ('beats' in step) await this.#look([step.beats], ({ presence }) => presence.beat());
    else if ('ask' in step) await this.#look(step.ask, (one) => this.#confirm(one));
    else if ('starts' in step) this.#processes[step.starts] = this.#start();
    else if ('pass' in step) this.#now += step.pass;
    else if ('accepts' in step) await this.#accept();
    else if (step.loses === 'copy') this.#copy = await this.#copied(this.#is);
    else if (step.loses === 'everything')
      this.#is = { store: new MemoryStore(() => this.#now), written: [], isDoubted: false, since: this.#now };
    else if (this.#copy) this.#is = await this.#copied(this.#copy);
  }

  #start(): Process {
    const one: Process = { presence: undefined as never, at: this.#now, epochs: [], isForgiven: false };
    const documents = new Documents({
      store: {
        read: (...args) => {
          one.read = this.#is.written.at(-1);
          return this.#is.store.read(...args);
        },
        swap: async (...args) => {
          const swapped = await this.#is.store.swap(...args);
          if (!swapped.isDone) return swapped;
          one.wrote = one.read = ++this.#writes;
          this.#is.written = [...this.#is.written, one.wrote];
          return swapped;
        },
      },
      seal: noSeal,
      elapsed: () => this.#now,
      wait,
    });
    const log = () => {};
    one.presence = new Presence(documents, key, { error: log, warn: log, info: log });
    return one;
  }

  /** Some of them look at the store at once: those who miss what they wrote note it, for all. */
  async #look(which: readonly number[], look: (one: Process) => Promise<unknown>): Promise<void> {
    const all = which.map((index) => this.#processes[index] as Process);
    const isGone = (write: number | undefined) => write !== undefined && !this.#is.written.includes(write);
    const isFirst = this.#is.written.length === 0;
    const judged = all.map((one) => {
      const isUnsure = one.isForgiven || this.#now - one.at > 500_000;
      return {
        one,
        misses: isGone(one.wrote) && !isUnsure,
        mayMiss: isGone(one.wrote) || isGone(one.read),
      };
    });
    await Promise.all(all.map(look));
    const isNoted = this.#is.isDoubted || judged.some(({ misses }) => misses);
    const mayBeNoted = isNoted || judged.some(({ mayMiss }) => mayMiss);
    let found = false;
    for (const { one, misses } of judged) {
      const isClosed = one.presence.problem(this.#now) === 'state went back in time';
      assert.ok(isClosed || !(this.#is.isDoubted || misses), 'what was lost is not passed over');
      assert.ok(!isClosed || mayBeNoted, 'nothing is in doubt where nothing was lost');
      found ||= isClosed;
      const { epoch } = one.presence;
      if (epoch !== one.epochs.at(-1)) {
        assert.ok(!one.epochs.includes(epoch), 'what was lost is current for nobody again');
        one.epochs.push(epoch);
      }
      one.at = this.#now;
      one.isForgiven = false;
      if (isGone(one.wrote)) one.wrote = undefined;
    }
    this.#is.isDoubted = found || isNoted;
    if (isFirst) this.#is.since = this.#now;
  }

  async #confirm({ presence }: Process): Promise<void> {
    const isOpen = await presence.confirm().then(
      () => true,
      () => false,
    );
    const problem = presence.problem(this.#now);
    assert.equal(isOpen, problem === undefined);
    assert.ok(!isOpen || this.#now - this.#is.since >= newMs, 'budgets of a new store wait for those who knew another');
  }

  async #accept(): Promise<void> {
    const somebody = this.#start();
    await somebody.presence.accept();
    if (!this.#is.isDoubted) return;
    this.#is.isDoubted = false;
    this.#is.since = 0;
    for (const one of this.#processes) one.isForgiven = true;
  }

  async #copied(ghost: Ghost): Promise<Ghost> {
    const store = new MemoryStore(() => this.#now);
    const { found } = await ghost.store.read(key);
    if (found?.body) await store.swap(key, '', { version: found.version, body: found.body, ttlMs: 1e12 });
    return { ...ghost, store };
  }
}

test('a store that lost what somebody wrote closes all budgets until it is accepted, and no other does', async () => {
  const property = fc.asyncProperty(steps, async (all) => {
    const world = new World();
    for (const one of all) await world.run(one);
  });
  await fc.assert(property, { numRuns: 1000 });
});

test('a clock of the store that is set back closes budgets for no longer than a new state does', async () => {
  let now = 1e12;
  const store = new MemoryStore(() => now);
  const documents = new Documents({ store, seal: noSeal, elapsed: () => 0, wait });
  const log = () => {};
  const presence = new Presence(documents, key, { error: log, warn: log, info: log });
  await presence.beat();
  now -= 3_600_000;
  for (let beat = 0; beat < 2; beat++) await presence.beat();
  assert.equal(presence.problem(now), 'state is new');
  assert.equal(presence.problem(now + newMs), undefined);
});
