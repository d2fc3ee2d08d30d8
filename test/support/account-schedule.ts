import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import type { Call } from '../../src/api/call.ts';
import { operations } from '../../src/api/operations.ts';
import type {
  Admission,
  CreditAccount,
  CreditLedger,
  Lease,
  ReserveRequest,
  Settlement,
} from '../../src/credits/ledger.ts';
import { learnPrice, maxPrice } from '../../src/credits/prices.ts';
import type { ReadResult, Store, SwapResult } from '../../src/storage/storage.ts';
import { Documents } from '../../src/storage/store/documents.ts';
import { noEncryption } from '../../src/storage/store/encryption.ts';
import { createUnavailableError } from '../../src/storage/store/guarded-store.ts';
import { Leases } from '../../src/storage/store/leases.ts';
import { type Account, openLedger, summarizeAccount } from '../../src/storage/store/ledger.ts';
import { WriteQueue } from '../../src/storage/store/write-queue.ts';

/** How long the lease of a call lasts at most, and how often a replica attempts what failed, in milliseconds. */
const leaseMs = 8000;
const attemptMs = 2000;

const fates = ['arrives', 'arrives', 'arrives', 'is lost', 'answer is lost', 'is given up'] as const;
type Fate = (typeof fates)[number];

const credits = fc.constantFrom(0, 0.1, 1, 2, 3, 5);
const request = fc
  .record({
    credits,
    atLeast: credits,
    paid: fc.boolean(),
    line: fc.constantFrom(undefined, undefined, 'paid'),
    ifLost: fc.constantFrom(undefined, 0, 1, 4),
  })
  .map((one) => ({ ...one, atLeast: Math.min(one.atLeast, one.credits) }));
const settlement = fc.record({
  charged: credits,
  uncertain: fc.constantFrom(0, 0, 0, 2),
  isPaidAnswer: fc.boolean(),
  learns: fc.boolean(),
});
const which = fc.nat(11);

/** One thing that happens. Numbers choose among those that there are. */
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ reserve: which, request }) },
  { weight: 5, arbitrary: fc.record({ settle: which, settlement }) },
  { weight: 1, arbitrary: fc.record({ charge: which, settlement }) },
  { weight: 1, arbitrary: fc.record({ read: which }) },
  { weight: 2, arbitrary: fc.record({ look: which }) },
  { weight: 22, arbitrary: fc.record({ next: which, fate: fc.constantFrom(...fates) }) },
  { weight: 4, arbitrary: fc.record({ together: fc.array(which, { minLength: 2, maxLength: 6 }) }) },
  { weight: 4, arbitrary: fc.record({ pass: fc.constantFrom(50, 100, 100, 150, 5000, 9000) }) },
  { weight: 2, arbitrary: fc.record({ calm: fc.constantFrom(100, 3000, 12_000) }) },
  { weight: 1, arbitrary: fc.record({ dies: which }) },
  { weight: 2, arbitrary: fc.record({ stalls: which }) },
  { weight: 1, arbitrary: fc.record({ goesOn: which }) },
);

export const accountSchedules = fc.record({
  budget: fc.constantFrom(0, 3, 8, 12, 30),
  replicas: fc.integer({ min: 1, max: 3 }),
  steps: fc.array(step, { maxLength: 80, size: 'max' }),
});

type Generated<Some> = Some extends fc.Arbitrary<infer One> ? One : never;
export type AccountSchedule = Generated<typeof accountSchedules>;
type Charge = Generated<typeof settlement>;

interface Sent {
  replica: Replica;
  perform(): Promise<unknown>;
  resolve(reply: unknown): void;
  reject(): void;
  reply?: unknown;
  isGivenUp: boolean;
}

interface Timer {
  replica: Replica;
  at: number;
  resume(): void;
}

interface Written {
  expected: string;
  version: string;
  account: Account | undefined;
  at: number;
}

/** A request whose highest price seen is that of the account. */
type FixedRequest = Omit<ReserveRequest, 'maxPrice'>;

/** What somebody asked, between which changes of the account, and what the answer was. */
interface Asked {
  from: number;
  to?: number;
  replica: Replica;
  id: string;
  request?: FixedRequest;
  admission?: Admission;
  account?: CreditAccount;
  isRefusedByStore?: boolean;
  /** Whether everything arrived at that time. */
  isCalm?: boolean;
}

/** The account as one ledger would keep it through which everything goes, one after the other. */
class OneLedger {
  spent = 0;
  uncertain = 0;
  calls = 0;
  maxCharged = 0;
  readonly open = new Map<string, FixedRequest>();
  readonly booked = new Map<string, number>();
  readonly ended = new Set<string>();

  answerTo({ budget, credits, atLeast, paid, line }: FixedRequest): Admission['kind'] {
    const { reserved, reservedAtLeast, paidInFlight } = this.figures();
    if (line !== undefined && [...this.open.values()].some((one) => one.line === line)) return 'wait';
    const unspent = budget - this.spent - this.uncertain + 1e-6;
    if ((paid || atLeast > 0) && atLeast > unspent - reservedAtLeast) return 'refused';
    if (!paid) return 'granted';
    if (reserved > 0 && credits > unspent - reserved) return 'wait';
    return paidInFlight >= (4 * this.maxCharged <= unspent - reserved ? 4 : 1) ? 'wait' : 'granted';
  }

  reserve(id: string, asked: FixedRequest): void {
    assert.ok(!this.ended.has(id) && !this.open.has(id), 'a reservation counts once');
    assert.equal(this.answerTo(asked), 'granted', 'a reservation that does not fit was granted');
    this.open.set(id, asked);
  }

  book(id: string): void {
    const lost = this.open.get(id);
    assert.ok(lost, 'what is counted for a process that died was reserved');
    const counted = lost.ifLost ?? Math.max(1, lost.budget - this.spent - this.uncertain);
    this.open.delete(id);
    this.booked.set(id, counted);
    this.uncertain += counted;
  }

  end(id: string, { charged, uncertain, isPaidAnswer, learn }: Settlement): void {
    assert.ok(!this.ended.has(id), 'a settlement counts once');
    this.ended.add(id);
    this.open.delete(id);
    this.spent += charged;
    this.uncertain += uncertain - (this.booked.get(id) ?? 0);
    this.booked.delete(id);
    if (isPaidAnswer) this.calls++;
    if (learn) this.maxCharged = Math.max(this.maxCharged, charged);
  }

  figures() {
    const open = [...this.open.values()];
    return {
      spent: this.spent,
      uncertain: this.uncertain,
      calls: this.calls,
      maxCharged: this.maxCharged,
      reserved: open.reduce((sum, one) => sum + one.credits, 0),
      reservedAtLeast: open.reduce((sum, one) => sum + one.atLeast, 0),
      paidInFlight: open.filter(({ paid }) => paid).length,
    };
  }
}

const figuresOf = ({ prices, spent, uncertain, calls, reserved, reservedAtLeast, paidInFlight }: CreditAccount) => ({
  ...{ spent, uncertain, calls, maxCharged: maxPrice(prices), reserved, reservedAtLeast, paidInFlight },
});

function same(one: object, other: object): boolean {
  return Object.entries(one).every(
    ([name, value]) => Math.abs(value - ((other as Record<string, number>)[name] ?? Number.NaN)) < 1e-6,
  );
}

class Replica {
  isDead = false;
  isStalled = false;
  readonly documents: Documents;
  readonly ledger: CreditLedger;
  readonly leases = new Leases({ hasEnded: (_, ageMs) => ageMs > leaseMs });
  // The world runs the queue: a timer would run it after the replica has died.
  readonly queue = new WriteQueue({ maxBytes: 1e9, runAfter: () => {} });
  readonly openLeases: Lease[] = [];
  lastId = '';

  constructor(world: World) {
    this.documents = new Documents({
      store: world.storeOf(this),
      encryption: noEncryption,
      processNow: () => world.time,
      wait: (ms) => world.wait(this, ms),
    });
    const newId = () => {
      this.lastId = `id ${world.ids++}`;
      return this.lastId;
    };
    this.ledger = openLedger({ ...this, keyOf: () => world.accountKey }, { newId, isShared: true });
  }

  get runs(): boolean {
    return !this.isDead && !this.isStalled;
  }
}

class World {
  time = 0;
  ids = 0;
  readonly accountKey: string;
  readonly #store: Store;
  readonly #budget: number;
  readonly replicas: Replica[];
  readonly #sent = new Set<Sent>();
  #timers: Timer[] = [];
  readonly #written: Written[] = [];
  readonly #asked: Asked[] = [];
  readonly #settlements = new Map<string, { replica: Replica; settlement: Settlement }>();

  constructor(store: Store, name: string, { budget, replicas }: AccountSchedule) {
    this.#store = store;
    this.accountKey = `{${name}}:account`;
    this.#budget = budget;
    this.replicas = Array.from({ length: replicas }, () => this.#join());
  }

  storeOf(replica: Replica): Pick<Store, 'readDocument' | 'swapDocument'> {
    return {
      readDocument: (key, known) =>
        this.#send(replica, async () => this.#timed(await this.#store.readDocument(key, known))),
      swapDocument: (key, expected, next) =>
        this.#send(replica, async () => {
          const swapped: SwapResult = this.#timed(await this.#store.swapDocument(key, expected, next));
          if (!swapped.isDone) return swapped;
          const doc = next.body && JSON.parse(String(next.body));
          this.#written.push({ expected, version: next.version, account: doc, at: swapped.now });
          return swapped;
        }),
    };
  }

  wait(replica: Replica, ms: number): Promise<void> {
    return new Promise((resume) => void this.#timers.push({ replica, at: this.time + ms, resume }));
  }

  async run(steps: AccountSchedule['steps']): Promise<void> {
    await this.#pass(0);
    for (const one of steps) {
      await this.#happen(one);
      await nextTurn();
    }
    await this.#calmDown();
    this.#compare();
  }

  async #happen(one: Generated<typeof step>): Promise<void> {
    const choose = <Item>(items: readonly Item[], number: number) => items[number % Math.max(1, items.length)];
    const replicaOf = (number: number) => choose(this.replicas, number) as Replica;
    const sentOf = (number: number) => choose(this.#movable(), number);
    if ('reserve' in one) this.#reserve(replicaOf(one.reserve), { ...one.request, budget: this.#budget }, 3);
    else if ('settle' in one) this.#settle(replicaOf(one.settle), one.settlement);
    else if ('charge' in one) this.#charge(replicaOf(one.charge), one.settlement);
    else if ('read' in one) this.#read(replicaOf(one.read));
    else if ('look' in one) this.#look(replicaOf(one.look));
    else if ('next' in one) await this.#move(sentOf(one.next), one.fate);
    else if ('together' in one)
      await Promise.all([...new Set(one.together.map(sentOf))].map((sent) => this.#move(sent, 'arrives')));
    else if ('pass' in one) await this.#pass(one.pass);
    else if ('calm' in one) await this.#pass(one.calm, true);
    else if ('stalls' in one) replicaOf(one.stalls).isStalled = true;
    else if ('goesOn' in one) replicaOf(one.goesOn).isStalled = false;
    else {
      replicaOf(one.dies).isDead = true;
      this.replicas[one.dies % this.replicas.length] = this.#join();
    }
  }

  #join(): Replica {
    return new Replica(this);
  }

  #timed<Reply extends ReadResult>(seen: Reply): Reply {
    return { ...seen, now: 1e12 + this.time };
  }

  #send<Reply>(replica: Replica, perform: () => Promise<Reply>): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const refuse = () => reject(createUnavailableError('the network'));
      const settle = { resolve: resolve as (reply: unknown) => void, reject: refuse };
      this.#sent.add({ replica, perform, ...settle, isGivenUp: false });
    });
  }

  /** What was sent arrives whatever becomes of who sent it; answers wait until they can be read. */
  #movable(): Sent[] {
    return [...this.#sent].filter((sent) => !('reply' in sent) || sent.replica.runs);
  }

  async #move(sent: Sent | undefined, fate: Fate): Promise<void> {
    if (sent === undefined) return;
    const isHeard = () => !sent.isGivenUp && !sent.replica.isDead;
    const lose = () => {
      this.#sent.delete(sent);
      if (isHeard()) sent.reject();
    };
    const isAnswered = 'reply' in sent;
    if (fate === 'is lost' || (isAnswered && fate === 'answer is lost')) lose();
    else if (isAnswered) {
      this.#sent.delete(sent);
      sent.resolve(sent.reply);
    } else if (fate === 'is given up') {
      if (isHeard()) sent.reject();
      sent.isGivenUp = true;
    } else {
      const reply = await sent.perform();
      if (fate === 'answer is lost' || !isHeard()) lose();
      else sent.reply = reply;
    }
  }

  /** Lets time pass, in which replicas attempt again what failed. */
  async #pass(ms: number, isCalm = false): Promise<void> {
    const end = this.time + ms;
    do {
      this.time = Math.min(end, this.time + attemptMs);
      for (const replica of this.replicas) if (replica.runs) void replica.queue.run();
      const isDue = ({ replica, at }: Timer) => at <= this.time && !replica.isStalled;
      const due = this.#timers.filter(isDue);
      this.#timers = this.#timers.filter((timer) => !due.includes(timer));
      for (const { replica, resume } of due) if (!replica.isDead) resume();
      await nextTurn();
      if (isCalm) await this.#deliverAll();
    } while (this.time < end);
  }

  /** Everything arrives, what is in progress ends, and those that died are missed. */
  async #calmDown(): Promise<void> {
    for (const replica of this.replicas) replica.isStalled = false;
    for (let turn = 0; turn < 16; turn++) {
      await this.#deliverAll();
      for (const replica of this.replicas)
        while (replica.openLeases.length > 0)
          this.#settle(replica, { charged: 1, uncertain: 0, isPaidAnswer: true, learns: false });
      await this.#pass(attemptMs);
      if (turn === 8) for (const replica of this.replicas) this.#read(replica, true);
    }
    const waiting = this.#asked.filter(({ to, replica }) => to === undefined && !replica.isDead);
    assert.deepEqual(waiting, [], 'everybody has an answer');
  }

  async #deliverAll(): Promise<void> {
    for (let moves = 0; this.#movable().length > 0; moves++) {
      assert.ok(moves < 5000, 'there is no end to it');
      await this.#move(this.#movable()[0], 'arrives');
      await nextTurn();
    }
  }

  #ask(asked: Omit<Asked, 'from'>, answer: Promise<Partial<Asked>>): Promise<Asked> {
    const one: Asked = { ...asked, from: this.#written.length };
    this.#asked.push(one);
    const refused = () => ({ isRefusedByStore: true });
    return answer.catch(refused).then((is) => Object.assign(one, is, { to: this.#written.length }));
  }

  #reserve(replica: Replica, asked: FixedRequest, tries: number): void {
    if (!replica.runs || tries === 0) return;
    const requestOf = ({ prices }: CreditAccount) => ({ ...asked, maxPrice: maxPrice(prices) });
    const answer = replica.ledger.reserve('t', requestOf).then((admission) => ({ admission }));
    void this.#ask({ replica, id: replica.lastId, request: asked }, answer).then(async ({ admission }) => {
      if (admission?.kind === 'granted') replica.openLeases.push(admission.lease);
      if (admission?.kind !== 'wait') return;
      await replica.ledger.changed('t', admission.version, new AbortController().signal).catch(() => {});
      this.#reserve(replica, asked, tries - 1);
    });
  }

  #settle(replica: Replica, charge: Charge): void {
    const lease = replica.runs ? replica.openLeases.shift() : undefined;
    if (lease) this.#end(replica, lease.id, charge, lease);
  }

  #charge(replica: Replica, charge: Charge): void {
    if (replica.runs) this.#end(replica, `charge ${this.ids++}`, { ...charge, isPaidAnswer: true });
  }

  #end(replica: Replica, id: string, { learns, ...figures }: Charge, lease?: Lease): void {
    const call = { operation: operations.getAd, query: {} } as Call;
    const learn: Settlement['learn'] = (prices) => learnPrice(prices, call, { value: {} }, figures.charged);
    const ended: Settlement = { id, ...figures, ...(learns && { learn }) };
    this.#settlements.set(id, { replica, settlement: ended });
    void replica.ledger.settle('t', ended, lease);
  }

  #read(replica: Replica, isCalm = false): void {
    if (!replica.runs) return;
    const answer = replica.ledger.read('t').then((account) => ({ account }));
    void this.#ask({ replica, id: 'read', isCalm }, answer);
  }

  /** Reads what others may be changing, without waiting for its turn. */
  #look(replica: Replica): void {
    if (!replica.runs) return;
    const answer = replica.documents
      .read<Account>(this.accountKey)
      .then(({ doc }) => ({ account: summarizeAccount(doc) }));
    void this.#ask({ replica, id: 'look' }, answer);
  }

  /** Does one after the other what the store took, and compares. */
  #compare(): void {
    const one = new OneLedger();
    const requests = new Map(this.#asked.flatMap(({ id, request }) => (request ? [[id, request] as const] : [])));
    const nothing: Settlement = { charged: 0, uncertain: 0, isPaidAnswer: false };
    const states = [{ figures: one.figures(), answers: this.#answers(one) }];
    let before: Account | undefined;
    let version = '';
    for (const { expected, version: next, account, at } of this.#inOrder()) {
      assert.equal(expected, version, 'every change is of the one before');
      assert.ok(account, 'nobody removes an account');
      const [was, is] = [before?.leases ?? {}, account.leases];
      for (const [id, lease] of Object.entries(was)) {
        if (lease.booked || !is[id]?.booked) continue;
        assert.ok(at - lease.at > leaseMs, 'a lease counts as lost only after the deadline of its call');
        one.book(id);
      }
      const reserved = Object.keys(is).filter((id) => !was[id]);
      const ended = Object.keys(was).filter((id) => !is[id]);
      const charged = account.settled.filter((id) => !before?.settled.includes(id));
      assert.ok(reserved.length + ended.length + charged.length <= 1, 'a change does one thing');
      for (const id of reserved) one.reserve(id, requests.get(id) as ReserveRequest);
      for (const id of [...ended, ...charged]) one.end(id, this.#settlements.get(id)?.settlement ?? nothing);
      const [figures, kept] = [one.figures(), figuresOf(summarizeAccount(account))];
      assert.ok(same(figures, kept), `one ledger has ${JSON.stringify(figures)}, the store ${JSON.stringify(kept)}`);
      states.push({ figures, answers: this.#answers(one) });
      [before, version] = [account, next];
    }
    for (const asked of this.#asked) this.#check(asked, states, one);
    for (const [id, { replica }] of this.#settlements)
      assert.ok(one.ended.has(id) || replica.isDead, 'what a living process has settled counts');
    assert.deepEqual([...one.open.keys()], [], 'nothing is reserved once all calls have ended, or are lost');
  }

  #answers(one: OneLedger): Map<string, Admission['kind']> {
    return new Map(this.#asked.flatMap(({ id, request }) => (request ? [[id, one.answerTo(request)] as const] : [])));
  }

  /** The changes, each after the one that it replaced: several may have been written at once. */
  #inOrder(): Written[] {
    const next = new Map(this.#written.map((one) => [one.expected, one]));
    assert.equal(next.size, this.#written.length, 'one change follows another');
    const ordered: Written[] = [];
    for (let one = next.get(''); one; one = next.get(one.version)) ordered.push(one);
    assert.equal(ordered.length, this.#written.length, 'no change is of an account that was not there');
    return ordered;
  }

  #check(asked: Asked, states: { figures: object; answers: Map<string, string> }[], one: OneLedger): void {
    const { id, from, to = this.#written.length, admission, account, replica, isRefusedByStore, isCalm } = asked;
    assert.ok(!isRefusedByStore || !isCalm, 'a store that answers lets nobody wait');
    if (isRefusedByStore && asked.request && !replica.isDead)
      assert.ok(!one.booked.has(id), 'a call that was not sent counts nothing');
    const during = states.slice(from, to + 1);
    const figures = account ?? (admission && 'account' in admission ? admission.account : undefined);
    if (figures)
      assert.ok(
        during.some((state) => same(state.figures, figuresOf(figures))),
        `an answer shows an account that there was not: ${JSON.stringify(figuresOf(figures))}`,
      );
    if (admission?.kind === 'granted')
      assert.ok(one.ended.has(id) || one.booked.has(id), 'what was granted is reserved');
    else if (admission)
      assert.ok(
        during.some((state) => state.answers.get(id) === admission.kind),
        `a call had to ${admission.kind} that did not have to`,
      );
  }
}

let worlds = 0;

/** Lets a schedule happen to replicas that share a store, and compares them with one ledger for all. */
export async function assertOneLedger(schedule: AccountSchedule, store: Store): Promise<void> {
  const name = `schedule ${process.pid} ${performance.timeOrigin} ${worlds++}`;
  await new World(store, name, schedule).run(schedule.steps);
}
