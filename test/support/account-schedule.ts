import assert from 'node:assert/strict';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import fc from 'fast-check';
import { operations } from '../../src/api/operations.ts';
import type {
  Admission,
  CreditAccount,
  CreditLedger,
  Lease,
  ReserveRequest,
  Settlement,
} from '../../src/credits/ledger.ts';
import { getOverallMaxPrice, learnPrice } from '../../src/credits/prices.ts';
import type { ReadResult, Store, SwapResult } from '../../src/storage/storage.ts';
import { createUnavailableError } from '../../src/storage/store/circuit-breaker-store.ts';
import { DocumentAccess } from '../../src/storage/store/documents.ts';
import { noEncryption } from '../../src/storage/store/encryption.ts';
import { LeaseTracker } from '../../src/storage/store/leases.ts';
import { openLedger, type StoredAccount, summarizeAccount } from '../../src/storage/store/ledger.ts';
import { WriteQueue } from '../../src/storage/store/write-queue.ts';

/**
 * How long the reservation of a call (its lease) lasts at most, and the pause before a replica retries a failed write,
 * in milliseconds.
 */
const leaseMs = 8000;
const retryIntervalMs = 2000;

/**
 * What can happen to a message between a replica and the store. `arrives` occurs three times to make it more likely.
 */
const fates = ['arrives', 'arrives', 'arrives', 'is lost', 'answer is lost', 'caller stops waiting'] as const;
type Fate = (typeof fates)[number];

const credits = fc.constantFrom(0, 0.1, 1, 2, 3, 5);
const request = fc
  .record({
    credits,
    atLeast: credits,
    isPaid: fc.boolean(),
    queue: fc.constantFrom(undefined, undefined, 'paid'),
    creditsIfLost: fc.constantFrom(undefined, 0, 1, 4),
  })
  .map((generatedRequest) => ({
    ...generatedRequest,
    atLeast: Math.min(generatedRequest.atLeast, generatedRequest.credits),
  }));
const settlement = fc.record({
  chargedCredits: credits,
  uncertainCredits: fc.constantFrom(0, 0, 0, 2),
  isPaidResponse: fc.boolean(),
  learns: fc.boolean(),
});
const selector = fc.nat(11);

/**
 * Generates one step of a schedule (a random sequence of events), e.g. `{ dies: 4 }`, which ends a replica. The number
 * selects one of the replicas or messages that exist when the step runs.
 */
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ reserve: selector, request }) },
  { weight: 5, arbitrary: fc.record({ settle: selector, settlement }) },
  { weight: 1, arbitrary: fc.record({ charge: selector, settlement }) },
  { weight: 1, arbitrary: fc.record({ read: selector }) },
  { weight: 2, arbitrary: fc.record({ look: selector }) },
  { weight: 22, arbitrary: fc.record({ next: selector, fate: fc.constantFrom(...fates) }) },
  { weight: 4, arbitrary: fc.record({ together: fc.array(selector, { minLength: 2, maxLength: 6 }) }) },
  { weight: 4, arbitrary: fc.record({ pass: fc.constantFrom(50, 100, 100, 150, 5000, 9000) }) },
  { weight: 2, arbitrary: fc.record({ calm: fc.constantFrom(100, 3000, 12_000) }) },
  { weight: 1, arbitrary: fc.record({ dies: selector }) },
  { weight: 2, arbitrary: fc.record({ stalls: selector }) },
  { weight: 1, arbitrary: fc.record({ goesOn: selector }) },
);

/** Generates the budget, the number of replicas and the steps of a schedule. */
export const accountSchedules = fc.record({
  budget: fc.constantFrom(0, 3, 8, 12, 30),
  replicas: fc.integer({ min: 1, max: 3 }),
  steps: fc.array(step, { maxLength: 80, size: 'max' }),
});

type Generated<Some> = Some extends fc.Arbitrary<infer Value> ? Value : never;
/** A random sequence of events in which replicas share a credit account. */
export type AccountSchedule = Generated<typeof accountSchedules>;
type Charge = Generated<typeof settlement>;

interface Message {
  replica: Replica;
  perform(): Promise<unknown>;
  resolve(reply: unknown): void;
  reject(): void;
  reply?: unknown;
  isAbandoned: boolean;
}

interface Timer {
  replica: Replica;
  at: number;
  resume(): void;
}

interface AcceptedChange {
  expected: string;
  version: string;
  account: StoredAccount | undefined;
  at: number;
}

/** A request for a reservation, without `maxPrice`. The simulation adds the highest observed price of the account. */
type FixedRequest = Omit<ReserveRequest, 'maxPrice'>;

/** A request to a ledger, its result, and the range of account versions that existed while it ran. */
interface LedgerQuery {
  firstChange: number;
  lastChange?: number;
  replica: Replica;
  id: string;
  request?: FixedRequest;
  admission?: Admission;
  account?: CreditAccount;
  isRefusedByStore?: boolean;
  /** True if every message was delivered while the request ran. */
  isFullyDelivered?: boolean;
}

/** The model that computes the expected account: a single ledger that handles all requests in sequence. */
class ExpectedLedger {
  spent = 0;
  uncertain = 0;
  calls = 0;
  maxCharged = 0;
  readonly openRequests = new Map<string, FixedRequest>();
  readonly bookedCredits = new Map<string, number>();
  readonly settledIds = new Set<string>();

  decideAdmission({ budget, credits, atLeast, isPaid, queue }: FixedRequest): Admission['kind'] {
    const { reserved, reservedAtLeast, paidCallsInProgress } = this.readTotals();
    const isBlockedBy = (open: FixedRequest) =>
      open.queue !== undefined && (open.queue === queue || (open.isPaid && isPaid));
    if ([...this.openRequests.values()].some(isBlockedBy)) return 'wait';
    const unspent = budget - this.spent - this.uncertain + 1e-6;
    if ((isPaid || atLeast > 0) && atLeast > unspent - reservedAtLeast) return 'refused';
    if (!isPaid) return 'granted';
    if (reserved > 0 && credits > unspent - reserved) return 'wait';
    return paidCallsInProgress >= (4 * this.maxCharged <= unspent - reserved ? 4 : 1) ? 'wait' : 'granted';
  }

  reserve(id: string, request: FixedRequest): void {
    assert.ok(!this.settledIds.has(id) && !this.openRequests.has(id), 'the store counted a reservation twice');
    assert.equal(this.decideAdmission(request), 'granted', 'the ledger granted a reservation that does not fit');
    this.openRequests.set(id, request);
  }

  bookLost(id: string): void {
    const lostRequest = this.openRequests.get(id);
    assert.ok(lostRequest, 'the ledger counted a lost call that had no reservation');
    const countedCredits = lostRequest.creditsIfLost ?? Math.max(1, lostRequest.budget - this.spent - this.uncertain);
    this.openRequests.delete(id);
    this.bookedCredits.set(id, countedCredits);
    this.uncertain += countedCredits;
  }

  settle(id: string, { chargedCredits, uncertainCredits, isPaidResponse, updatePrices: learn }: Settlement): void {
    assert.ok(!this.settledIds.has(id), 'the store counted a settlement twice');
    this.settledIds.add(id);
    this.openRequests.delete(id);
    this.spent += chargedCredits;
    this.uncertain += uncertainCredits - (this.bookedCredits.get(id) ?? 0);
    this.bookedCredits.delete(id);
    if (isPaidResponse) this.calls++;
    if (learn) this.maxCharged = Math.max(this.maxCharged, chargedCredits);
  }

  readTotals() {
    const openRequests = [...this.openRequests.values()];
    return {
      spent: this.spent,
      uncertain: this.uncertain,
      calls: this.calls,
      maxCharged: this.maxCharged,
      reserved: openRequests.reduce((sum, request) => sum + request.credits, 0),
      reservedAtLeast: openRequests.reduce((sum, request) => sum + request.atLeast, 0),
      paidCallsInProgress: openRequests.filter(({ isPaid }) => isPaid).length,
    };
  }
}

const readFigures = ({
  prices,
  spentCredits,
  uncertainCredits,
  paidCallCount,
  reservedCredits,
  minReservedCredits,
  runningPaidCallCount,
}: CreditAccount) => ({
  ...{
    spent: spentCredits,
    uncertain: uncertainCredits,
    calls: paidCallCount,
    maxCharged: getOverallMaxPrice(prices),
    reserved: reservedCredits,
    reservedAtLeast: minReservedCredits,
    paidCallsInProgress: runningPaidCallCount,
  },
});

function hasEqualFigures(first: object, second: object): boolean {
  return Object.entries(first).every(
    ([name, value]) => Math.abs(value - ((second as Record<string, number>)[name] ?? Number.NaN)) < 1e-6,
  );
}

class Replica {
  isDead = false;
  isStalled = false;
  readonly documents: DocumentAccess;
  readonly ledger: CreditLedger;
  readonly leases = new LeaseTracker({ hasEnded: (_, ageMs) => ageMs > leaseMs });
  // The simulation runs the queue itself, because a timer would run it even after the replica has died.
  readonly queue = new WriteQueue({ maxBytes: 1e9, runAfter: () => {} });
  readonly openLeases: Lease[] = [];
  lastId = '';

  constructor(simulation: Simulation) {
    this.documents = new DocumentAccess({
      store: simulation.connectStore(this),
      encryption: noEncryption,
      getProcessTime: () => simulation.time,
      wait: (ms) => simulation.wait(this, ms),
    });
    const createId = () => {
      this.lastId = `id ${simulation.ids++}`;
      return this.lastId;
    };
    this.ledger = openLedger({ ...this, buildKey: () => simulation.accountKey }, { createId, isShared: true });
  }

  get isRunning(): boolean {
    return !this.isDead && !this.isStalled;
  }
}

class Simulation {
  time = 0;
  ids = 0;
  readonly accountKey: string;
  readonly #store: Store;
  readonly #budget: number;
  readonly replicas: Replica[];
  readonly #messages = new Set<Message>();
  #timers: Timer[] = [];
  readonly #changes: AcceptedChange[] = [];
  readonly #queries: LedgerQuery[] = [];
  readonly #settlements = new Map<string, { replica: Replica; settlement: Settlement }>();

  constructor(store: Store, name: string, { budget, replicas }: AccountSchedule) {
    this.#store = store;
    this.accountKey = `{${name}}:account`;
    this.#budget = budget;
    this.replicas = Array.from({ length: replicas }, () => this.#createReplica());
  }

  connectStore(replica: Replica): Pick<Store, 'readDocument' | 'swapDocument'> {
    return {
      readDocument: (key, known) =>
        this.#send(replica, async () => this.#addStoreTime(await this.#store.readDocument(key, known))),
      swapDocument: (key, expected, next) =>
        this.#send(replica, async () => {
          const swapped: SwapResult = this.#addStoreTime(await this.#store.swapDocument(key, expected, next));
          if (!swapped.isDone) return swapped;
          const doc = next.body && JSON.parse(String(next.body));
          this.#changes.push({ expected, version: next.version, account: doc, at: swapped.now });
          return swapped;
        }),
    };
  }

  wait(replica: Replica, ms: number): Promise<void> {
    return new Promise((resume) => void this.#timers.push({ replica, at: this.time + ms, resume }));
  }

  async run(steps: AccountSchedule['steps']): Promise<void> {
    await this.#advanceClock(0);
    for (const step of steps) {
      await this.#runStep(step);
      await yieldToEventLoop();
    }
    await this.#finishAllCalls();
    this.#compareWithExpectedLedger();
  }

  async #runStep(step: AccountSchedule['steps'][number]): Promise<void> {
    const choose = <Item>(items: readonly Item[], number: number) => items[number % Math.max(1, items.length)];
    const selectReplica = (number: number) => choose(this.replicas, number) as Replica;
    const selectMessage = (number: number) => choose(this.#listMovableMessages(), number);
    if ('reserve' in step) this.#reserve(selectReplica(step.reserve), { ...step.request, budget: this.#budget }, 3);
    else if ('settle' in step) this.#settle(selectReplica(step.settle), step.settlement);
    else if ('charge' in step) this.#charge(selectReplica(step.charge), step.settlement);
    else if ('read' in step) this.#read(selectReplica(step.read));
    else if ('look' in step) this.#readWithoutLock(selectReplica(step.look));
    else if ('next' in step) await this.#moveMessage(selectMessage(step.next), step.fate);
    else if ('together' in step)
      await Promise.all(
        [...new Set(step.together.map(selectMessage))].map((sent) => this.#moveMessage(sent, 'arrives')),
      );
    else if ('pass' in step) await this.#advanceClock(step.pass);
    else if ('calm' in step) await this.#advanceClock(step.calm, true);
    else if ('stalls' in step) selectReplica(step.stalls).isStalled = true;
    else if ('goesOn' in step) selectReplica(step.goesOn).isStalled = false;
    else {
      selectReplica(step.dies).isDead = true;
      this.replicas[step.dies % this.replicas.length] = this.#createReplica();
    }
  }

  #createReplica(): Replica {
    return new Replica(this);
  }

  #addStoreTime<Reply extends ReadResult>(reply: Reply): Reply {
    return { ...reply, now: 1e12 + this.time };
  }

  #send<Reply>(replica: Replica, perform: () => Promise<Reply>): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const refuse = () => reject(createUnavailableError('the network'));
      const settle = { resolve: resolve as (reply: unknown) => void, reject: refuse };
      this.#messages.add({ replica, perform, ...settle, isAbandoned: false });
    });
  }

  /**
   * Returns the messages that can be delivered now. Requests arrive even if the sender has died, but replies need a
   * running replica.
   */
  #listMovableMessages(): Message[] {
    return [...this.#messages].filter((sent) => !('reply' in sent) || sent.replica.isRunning);
  }

  async #moveMessage(message: Message | undefined, fate: Fate): Promise<void> {
    if (message === undefined) return;
    const isWaitingForAnswer = () => !message.isAbandoned && !message.replica.isDead;
    const lose = () => {
      this.#messages.delete(message);
      if (isWaitingForAnswer()) message.reject();
    };
    const isAnswered = 'reply' in message;
    if (fate === 'is lost' || (isAnswered && fate === 'answer is lost')) lose();
    else if (isAnswered) {
      this.#messages.delete(message);
      message.resolve(message.reply);
    } else if (fate === 'caller stops waiting') {
      if (isWaitingForAnswer()) message.reject();
      message.isAbandoned = true;
    } else {
      const reply = await message.perform();
      if (fate === 'answer is lost' || !isWaitingForAnswer()) lose();
      else message.reply = reply;
    }
  }

  /** Advances the clock. Replicas retry failed writes while time passes. */
  async #advanceClock(ms: number, deliversMessages = false): Promise<void> {
    const endTime = this.time + ms;
    do {
      this.time = Math.min(endTime, this.time + retryIntervalMs);
      for (const replica of this.replicas) if (replica.isRunning) void replica.queue.retryWrites();
      const isDue = ({ replica, at }: Timer) => at <= this.time && !replica.isStalled;
      const dueTimers = this.#timers.filter(isDue);
      this.#timers = this.#timers.filter((timer) => !dueTimers.includes(timer));
      for (const { replica, resume } of dueTimers) if (!replica.isDead) resume();
      await yieldToEventLoop();
      if (deliversMessages) await this.#deliverAllMessages();
    } while (this.time < endTime);
  }

  /** Delivers all messages, ends all running calls and waits until the leases of dead replicas have expired. */
  async #finishAllCalls(): Promise<void> {
    for (const replica of this.replicas) replica.isStalled = false;
    for (let round = 0; round < 16; round++) {
      await this.#deliverAllMessages();
      for (const replica of this.replicas)
        while (replica.openLeases.length > 0)
          this.#settle(replica, { chargedCredits: 1, uncertainCredits: 0, isPaidResponse: true, learns: false });
      await this.#advanceClock(retryIntervalMs);
      if (round === 8) for (const replica of this.replicas) this.#read(replica, true);
    }
    const waiting = this.#queries.filter(({ lastChange, replica }) => lastChange === undefined && !replica.isDead);
    assert.deepEqual(waiting, [], 'some queries never received an answer');
  }

  async #deliverAllMessages(): Promise<void> {
    for (let moves = 0; this.#listMovableMessages().length > 0; moves++) {
      assert.ok(moves < 5000, 'the replicas exchange messages without end');
      await this.#moveMessage(this.#listMovableMessages()[0], 'arrives');
      await yieldToEventLoop();
    }
  }

  #recordQuery(query: Omit<LedgerQuery, 'firstChange'>, answer: Promise<Partial<LedgerQuery>>): Promise<LedgerQuery> {
    const recordedQuery: LedgerQuery = { ...query, firstChange: this.#changes.length };
    this.#queries.push(recordedQuery);
    const buildRefusal = () => ({ isRefusedByStore: true });
    return answer
      .catch(buildRefusal)
      .then((outcome) => Object.assign(recordedQuery, outcome, { lastChange: this.#changes.length }));
  }

  #reserve(replica: Replica, request: FixedRequest, tries: number): void {
    if (!replica.isRunning || tries === 0) return;
    const buildRequest = ({ prices }: CreditAccount) => ({ ...request, maxPrice: getOverallMaxPrice(prices) });
    const answer = replica.ledger.reserve('t', buildRequest).then((admission) => ({ admission }));
    void this.#recordQuery({ replica, id: replica.lastId, request }, answer).then(async ({ admission }) => {
      if (admission?.kind === 'granted') replica.openLeases.push(admission.lease);
      if (admission?.kind !== 'wait') return;
      await replica.ledger.waitForChange('t', admission.version, new AbortController().signal).catch(() => {});
      this.#reserve(replica, request, tries - 1);
    });
  }

  #settle(replica: Replica, charge: Charge): void {
    const lease = replica.isRunning ? replica.openLeases.shift() : undefined;
    if (lease) this.#endCall(replica, lease.id, charge, lease);
  }

  #charge(replica: Replica, charge: Charge): void {
    if (replica.isRunning) this.#endCall(replica, `charge ${this.ids++}`, { ...charge, isPaidResponse: true });
  }

  #endCall(replica: Replica, id: string, { learns, ...figures }: Charge, lease?: Lease): void {
    const request = { operation: operations.getAd, query: {} };
    const learn: Settlement['updatePrices'] = (prices) =>
      learnPrice(prices, request, { validatedBody: {} }, figures.chargedCredits);
    const settlement: Settlement = { id, ...figures, ...(learns && { updatePrices: learn }) };
    this.#settlements.set(id, { replica, settlement });
    void replica.ledger.settle('t', settlement, lease);
  }

  #read(replica: Replica, isFullyDelivered = false): void {
    if (!replica.isRunning) return;
    const answer = replica.ledger.read('t').then((account) => ({ account }));
    void this.#recordQuery({ replica, id: 'read', isFullyDelivered }, answer);
  }

  /** Reads the account without waiting for a lock, while other replicas may change it. */
  #readWithoutLock(replica: Replica): void {
    if (!replica.isRunning) return;
    const answer = replica.documents
      .read<StoredAccount>(this.accountKey)
      .then(({ doc }) => ({ account: summarizeAccount(doc) }));
    void this.#recordQuery({ replica, id: 'look' }, answer);
  }

  /** Applies the accepted changes to the expected account in order, and compares both accounts after each change. */
  #compareWithExpectedLedger(): void {
    const expectedLedger = new ExpectedLedger();
    const requests = new Map(this.#queries.flatMap(({ id, request }) => (request ? [[id, request] as const] : [])));
    const zeroSettlement: Settlement = { chargedCredits: 0, uncertainCredits: 0, isPaidResponse: false };
    const states = [{ figures: expectedLedger.readTotals(), answers: this.#listExpectedAdmissions(expectedLedger) }];
    let previousAccount: StoredAccount | undefined;
    let version = '';
    for (const { expected, version: next, account, at } of this.#sortChanges()) {
      assert.equal(expected, version, 'a change does not follow the change before it');
      assert.ok(account, 'an account was removed');
      const [previousLeases, leases] = [previousAccount?.leases ?? {}, account.leases];
      for (const [id, lease] of Object.entries(previousLeases)) {
        if (lease.possibleCharge || !leases[id]?.possibleCharge) continue;
        assert.ok(at - lease.takenAt > leaseMs, 'a lease was counted as lost before the deadline of its call');
        expectedLedger.bookLost(id);
      }
      const newIds = Object.keys(leases).filter((id) => !previousLeases[id]);
      const removedIds = Object.keys(previousLeases).filter((id) => !leases[id]);
      const directlySettledIds = account.settledCallIds.filter((id) => !previousAccount?.settledCallIds.includes(id));
      assert.ok(
        newIds.length + removedIds.length + directlySettledIds.length <= 1,
        'one change contains several operations',
      );
      for (const id of newIds) expectedLedger.reserve(id, requests.get(id) as ReserveRequest);
      for (const id of [...removedIds, ...directlySettledIds])
        expectedLedger.settle(id, this.#settlements.get(id)?.settlement ?? zeroSettlement);
      const [expectedTotals, storedTotals] = [expectedLedger.readTotals(), readFigures(summarizeAccount(account))];
      assert.ok(
        hasEqualFigures(expectedTotals, storedTotals),
        `a single ledger would have ${JSON.stringify(expectedTotals)}, but the store has ${JSON.stringify(storedTotals)}`,
      );
      states.push({ figures: expectedTotals, answers: this.#listExpectedAdmissions(expectedLedger) });
      [previousAccount, version] = [account, next];
    }
    for (const query of this.#queries) this.#checkQuery(query, states, expectedLedger);
    for (const [id, { replica }] of this.#settlements)
      assert.ok(
        expectedLedger.settledIds.has(id) || replica.isDead,
        'the settlement of a running replica was not counted',
      );
    assert.deepEqual(
      [...expectedLedger.openRequests.keys()],
      [],
      'credits are still reserved after all calls have ended or were lost',
    );
  }

  #listExpectedAdmissions(ledger: ExpectedLedger): Map<string, Admission['kind']> {
    return new Map(
      this.#queries.flatMap(({ id, request }) => (request ? [[id, ledger.decideAdmission(request)] as const] : [])),
    );
  }

  /**
   * Sorts the accepted changes by the version of the account that each one replaced. The order of their arrival is not
   * reliable, because the store may write several changes in one step.
   */
  #sortChanges(): AcceptedChange[] {
    const changeByPredecessor = new Map(this.#changes.map((change) => [change.expected, change]));
    assert.equal(
      changeByPredecessor.size,
      this.#changes.length,
      'two changes replaced the same version of the account',
    );
    const sortedChanges: AcceptedChange[] = [];
    for (let change = changeByPredecessor.get(''); change; change = changeByPredecessor.get(change.version))
      sortedChanges.push(change);
    assert.equal(
      sortedChanges.length,
      this.#changes.length,
      'a change replaced a version of the account that never existed',
    );
    return sortedChanges;
  }

  #checkQuery(
    query: LedgerQuery,
    states: { figures: object; answers: Map<string, string> }[],
    ledger: ExpectedLedger,
  ): void {
    const {
      id,
      firstChange,
      lastChange = this.#changes.length,
      admission,
      account,
      replica,
      isRefusedByStore,
      isFullyDelivered,
    } = query;
    assert.ok(!isRefusedByStore || !isFullyDelivered, 'the store refused a query although every message was delivered');
    if (isRefusedByStore && query.request && !replica.isDead)
      assert.ok(!ledger.bookedCredits.has(id), 'the ledger counted a call that was never sent');
    const statesDuringQuery = states.slice(firstChange, lastChange + 1);
    const answeredAccount = account ?? (admission && 'account' in admission ? admission.account : undefined);
    if (answeredAccount)
      assert.ok(
        statesDuringQuery.some((state) => hasEqualFigures(state.figures, readFigures(answeredAccount))),
        `an answer shows a state that the account never had: ${JSON.stringify(readFigures(answeredAccount))}`,
      );
    if (admission?.kind === 'granted')
      assert.ok(ledger.settledIds.has(id) || ledger.bookedCredits.has(id), 'a granted reservation was not counted');
    else if (admission)
      assert.ok(
        statesDuringQuery.some((state) => state.answers.get(id) === admission.kind),
        `the ledger answered "${admission.kind}", which no state of the account justifies`,
      );
  }
}

let simulationCount = 0;

/** Runs a schedule on replicas that share a store. Fails if their account differs from that of a single ledger. */
export async function assertOneLedger(schedule: AccountSchedule, store: Store): Promise<void> {
  const name = `schedule ${process.pid} ${performance.timeOrigin} ${simulationCount++}`;
  await new Simulation(store, name, schedule).run(schedule.steps);
}
