import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import fc from 'fast-check';
import { type App, openApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { AdRowReader } from '../../src/dataset/ad-rows.ts';
import { snapshotOf } from '../../src/dataset/snapshot.ts';
import { createLog } from '../../src/log/log.ts';
import { bindV1 } from '../../src/mcp/sdk-v1.ts';
import type { Datasets } from '../../src/state/dataset.ts';
import { MemoryExports } from '../../src/state/exports.ts';
import { FileDatasets } from '../../src/state/files/file-datasets.ts';
import { MemoryDatasets } from '../../src/state/memory-datasets.ts';
import { memoryState } from '../../src/state/memory-state.ts';
import { NamedTurns } from '../../src/state/named-turns.ts';
import type { ReplicaState } from '../../src/state/redis/replica-state.ts';
import type { State } from '../../src/state/state.ts';
import {
  type DatasetView,
  GatheringBooks,
  keptForSeconds,
  type MadeCall,
  otherGatherings,
  type Problem,
} from './gathering-books.ts';
import {
  adId,
  collectionId,
  dayMs,
  GatheringService,
  never,
  type ServiceRule,
  type Totals,
  userIdOfKey,
} from './gathering-service.ts';
import { type Result, readResult } from './server.ts';

type Filters = Record<string, unknown>;

export interface Question {
  filters?: Filters;
  split?: Filters[];
  collectionId?: string;
}

/** A tool call. */
export type Call =
  | { gather: Question; fresh: boolean; maxAds: number; maxCredits: number }
  | { search: Filters; limit: number; fresh: boolean; isNext: boolean }
  | { ad: number; fresh: boolean }
  | { count: Filters; split: Filters[] | undefined; fresh: boolean };

/** What changes without a call. */
export type Change =
  | { ad: number; version: number }
  | { gone: number }
  | { passMs: number }
  | { clockOf: 0 | 1; jumpMs: number }
  | { expireCursors: true }
  /** The key is refused from then on, or accepted again. */
  | { rejectedBy: 'service' | 'gateway' | undefined }
  /** Gatherings of other questions are made, until there is room for so many more; unless in files. */
  | { roomLeft: number };

/** What happens while a page is under way. */
type Interruption =
  | 'cancel'
  | 'kill'
  | 'stop'
  | 'break off'
  | { change: Change }
  /** Another call by the same process. */
  | { call: Call };

/** One thing after the other. `by` is the process that is called. */
export type Step =
  | { call: Call; by: 0 | 1; during?: { page: number; happens: Interruption } | undefined }
  | { change: Change }
  | { restart: 0 | 1 };

/** A service, where the server keeps what it brings, and what happens in which order. */
export interface GatheringSchedule {
  rule: Omit<ServiceRule, 'padding'>;
  /** Ads at the beginning. */
  ads: number;
  keptIn: 'memory' | 'files' | 'replicas';
  hasCache: boolean;
  /** What one process may spend, or all replicas together. */
  budget: number | undefined;
  /** Bytes that the dataset may have, unless in files. */
  room: number | undefined;
  /** Whether the dataset is read by SQL at the end, which takes long. */
  asksSql: boolean;
  steps: Step[];
}

const image = { displayFormat: 'IMAGE' };
const video = { displayFormat: 'VIDEO' };
const german = { countries: ['DE'] };

const filters = fc.constantFrom<Filters>({}, image, video, german, { ...german, ...video });
const question = fc.oneof(
  { weight: 3, arbitrary: filters.map((filters): Question => ({ filters })) },
  {
    weight: 3,
    arbitrary: fc.constantFrom<Question>(
      { split: [image, video] },
      { split: [image, image] },
      { split: [image, german] },
      { split: [{}, image] },
      { filters: german, split: [video, image] },
      { split: [video, { ...german, ...video }, image, video] },
    ),
  },
  { weight: 1, arbitrary: fc.constant<Question>({ collectionId }) },
);
const rarely = (times: number) =>
  fc.oneof({ weight: times, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) });

const most = 12;
const ad = fc.nat(most - 1);

/** Calls that are about a few questions, so that they meet. */
const callsAbout = (questions: Question[]): fc.Arbitrary<Call> => {
  const gather = fc.constantFrom(...questions);
  const someFilters = fc.constantFrom<Filters>(...questions.flatMap(filtersOf));
  const arbitraries: [weight: number, arbitrary: fc.Arbitrary<Call>][] = [
    [6, fc.record({ gather, fresh: fc.boolean(), maxAds, maxCredits })],
    [2, fc.record({ search: someFilters, limit: fc.constantFrom(2, 100), fresh: fc.boolean(), isNext: rarely(3) })],
    [1, fc.record({ ad, fresh: fc.boolean() })],
    [
      1,
      fc.record({
        count: someFilters,
        split: fc.constantFrom<Filters[] | undefined>(undefined, [image, video]),
        fresh: rarely(3),
      }),
    ],
  ];
  return fc.oneof(...arbitraries.map(([weight, arbitrary]) => ({ weight, arbitrary })));
};
const maxAds = fc.constantFrom(1000, 1000, 1000, 1, 3, 4, 7);
const maxCredits = fc.constantFrom(1000, 1000, 1000, 1000, 0, 2, 5);
/** The filters of a question and of its parts. */
const filtersOf = ({ filters = {}, split = [] }: Question): Filters[] => [
  filters,
  ...split.map((part) => ({ ...filters, ...part })),
];

const hourMs = 3_600_000;
const times = [20, 60_000, hourMs, 20 * hourMs, 3 * dayMs, 40 * dayMs];
const change = fc.oneof(
  { weight: 4, arbitrary: fc.record({ ad, version: fc.nat(3) }) as fc.Arbitrary<Change> },
  { weight: 2, arbitrary: fc.record({ gone: ad }) as fc.Arbitrary<Change> },
  { weight: 3, arbitrary: fc.record({ passMs: fc.constantFrom(...times) }) as fc.Arbitrary<Change> },
  {
    weight: 2,
    arbitrary: fc.record({
      clockOf: fc.constantFrom(0, 1),
      jumpMs: fc.constantFrom(...times.flatMap((ms) => [ms, -ms])),
    }) as fc.Arbitrary<Change>,
  },
  { weight: 1, arbitrary: fc.constant<Change>({ expireCursors: true }) },
  {
    weight: 3,
    arbitrary: fc.record({
      rejectedBy: fc.constantFrom('service', 'gateway', undefined, undefined),
    }) as fc.Arbitrary<Change>,
  },
);
/** With -1, the one that was read longest ago has to go. */
const others = fc.record({ roomLeft: fc.integer({ min: -1, max: 2 }) }) as fc.Arbitrary<Change>;

const by = fc.constantFrom<0 | 1>(0, 1);

const stepsAbout = ([questions, isCrowded]: [Question[], boolean]): fc.Arbitrary<Step[]> => {
  const call = callsAbout(questions);
  const happens = fc.oneof(
    { weight: 3, arbitrary: fc.constant<Interruption>('cancel') },
    { weight: 2, arbitrary: fc.constantFrom<Interruption>('kill', 'stop', 'break off') },
    { weight: 2, arbitrary: change.map((change): Interruption => ({ change })) },
    { weight: 3, arbitrary: call.map((call): Interruption => ({ call })) },
  );
  const during = fc.option(fc.record({ page: fc.nat(4), happens }), { nil: undefined });
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 8, arbitrary: fc.record({ call, by, during: fc.oneof(fc.constant(undefined), during) }) },
    { weight: 5, arbitrary: change.map((change): Step => ({ change })) },
    { weight: 1, arbitrary: fc.record({ restart: by }) },
    { weight: isCrowded ? 3 : 0, arbitrary: others.map((change): Step => ({ change })) },
  );
  return fc.array(step, { maxLength: 14, size: 'max' });
};

export const gatheringSchedules: fc.Arbitrary<GatheringSchedule> = fc.record({
  rule: fc.record({
    pageSize: fc.constantFrom(1, 2, 3, 5, 100),
    perCall: fc.constantFrom(1, 0),
    perAd: fc.constantFrom(0, 1),
    totals: fc.constantFrom<Totals>('right', 'right', 'right', 'none', 'none at the end', 'zero', 'low', 'high'),
  }),
  ads: fc.nat(most),
  keptIn: fc.constantFrom('memory', 'files', 'replicas'),
  hasCache: fc.boolean(),
  budget: fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.constantFrom(3, 12) }),
  room: fc.oneof(
    { weight: 8, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom(60_000, 90_000) },
  ),
  asksSql: rarely(1000),
  steps: fc.tuple(fc.array(question, { minLength: 1, maxLength: 2 }), rarely(8)).chain(stepsAbout),
});

const baseUrl = 'https://service.invalid';
/** So long that few ads fit where there is little room. */
const adBytes = 8000;

/** So many gatherings are kept. */
const mostGatherings = 500;

/** A gathering of another question, which was complete. */
const otherGathering = {
  ...{ filters: {}, collectionId: null, parts: [], found: 0, ended: true, cursor: null, adIds: [] },
  ...{ startedAt: 0, gatheredAt: 0 },
};

/** What belongs to one schedule. */
interface Scene {
  apiKey: string;
  service: GatheringService;
  /** By how much the clock of each process is fast. */
  clocks: [number, number];
  /** The datasets of all processes, as another process reads them. */
  datasets: Datasets;
}

/** A server that every schedule calls by a key of its own. */
interface Server {
  app: App;
  /** Whose budget it spends. */
  account: string;
  isDead: boolean;
  isKilled: boolean;
  /** Ends the turns that it has taken. */
  endTurns: (() => void)[];
}

/** The servers of all schedules, which run one after the other. */
export class GatheringServers {
  /** In memory where the machine has such a folder, because everything that is written is also synced. */
  readonly #files = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'ad-library-'));
  readonly #servers = new Map<string, Promise<Server>>();
  #scene: Scene | undefined;
  #scenes = 0;

  /** Begins a schedule. */
  begin({ rule, ads, keptIn, room }: GatheringSchedule): Scene {
    const padding = room === undefined ? 0 : adBytes;
    // It goes only on, as that by which the servers measure durations.
    const time = (this.#scene?.service.time ?? Date.parse('2026-11-20T10:00:00Z')) + dayMs;
    const service = new GatheringService({ ...rule, padding }, { ads, time });
    const apiKey = `svc_live_${++this.#scenes}`;
    const now = () => service.time;
    const userIdOf = async () => userIdOfKey(apiKey);
    const datasets =
      keptIn === 'files'
        ? new FileDatasets({ folder: this.#files, baseUrl, now, elapsed: now, userIdOf, warn: () => {} })
        : new MemoryDatasets(room === undefined ? {} : { maxBytesEach: room });
    this.#scene = { apiKey, service, clocks: [0, 0], datasets };
    return this.#scene;
  }

  async server(schedule: GatheringSchedule, number: number): Promise<Server> {
    const { keptIn, hasCache, budget } = schedule;
    const name = `${keptIn} ${hasCache} ${budget} ${number}`;
    const known = await this.#servers.get(name);
    if (known && !known.isDead) return known;
    const opened = this.#open(schedule, number);
    this.#servers.set(name, opened);
    return opened;
  }

  /** Nothing it does reaches anybody any more, and its turns are free, as those of a process that is gone. */
  kill(server: Server): void {
    server.isKilled = true;
    for (const end of server.endTurns) end();
    rmSync(join(this.#files, 'turns'), { recursive: true, force: true });
  }

  async close(): Promise<void> {
    for (const server of this.#servers.values()) await (await server).app.close();
    rmSync(this.#files, { recursive: true });
  }

  #opened = 0;

  async #open({ keptIn, hasCache, budget }: GatheringSchedule, number: number): Promise<Server> {
    const account = keptIn === 'replicas' ? keptIn : `${++this.#opened}`;
    const about = { account, isDead: false, isKilled: false, endTurns: [] as Server['endTurns'] };
    const scene = () => this.#scene as Scene;
    const time = () => scene().service.time;
    const limits = { cacheSeconds: hasCache ? keptForSeconds : 0, creditBudget: budget };
    const config = { ...readConfig({}), baseUrl, ...limits };
    const app = await openApp({
      config: keptIn === 'files' ? { ...config, files: this.#files } : config,
      log: createLog('silent', () => {}),
      now: () => time() + (scene().clocks[number] ?? 0),
      elapsed: time,
      random: () => 0,
      fetch: (url, request) => (server.isKilled ? never(request) : scene().service.fetchFor(account)(url, request)),
      ...(keptIn !== 'files' && { shared: this.#shared(keptIn, scene, about) }),
    });
    const server: Server = Object.assign(about, { app });
    return server;
  }

  #sharedState: State | undefined;
  readonly #turns = new NamedTurns();

  /** What replicas share, in the memory of this process; a server in memory shares it with nobody. */
  #shared(keptIn: 'memory' | 'replicas', scene: () => Scene, server: Omit<Server, 'app'>): ReplicaState {
    const shared: Partial<ReplicaState> = {
      now: () => scene().service.time,
      isUp: () => true,
      datasets: () => ({
        of: (caller, purpose) => scene().datasets.of(caller, purpose),
        close: async () => {},
      }),
      state: (limits) => {
        if (keptIn === 'memory') return memoryState(limits);
        // What is shared has a clock of its own, which is right.
        this.#sharedState ??= memoryState({ ...limits, now: () => scene().service.time });
        return this.#sharedState;
      },
      exports: (now) => new MemoryExports({ now, elapsed: now }),
      turns: () => ({
        take: async (name, signal) => {
          const end = await this.#turns.take(name, signal);
          if (server.isKilled) end();
          else server.endTurns.push(end);
          return end;
        },
      }),
      close: () => {},
    };
    return shared as ReplicaState;
  }
}

/** A process, and its only client. */
interface Process {
  server: Server;
  client: Client;
}

/** Lets a schedule happen to real servers. Returns which promises were not kept. */
export async function runGatherings(schedule: GatheringSchedule, servers: GatheringServers): Promise<Problem[]> {
  const { keptIn, steps, budget } = schedule;
  const { service, clocks, datasets, apiKey } = servers.begin(schedule);
  const books = new GatheringBooks(service, budget);
  const adRows = new AdRowReader();
  const clients: Client[] = [];
  const ended: Server[] = [];
  const processes: Process[] = [];

  const start = async (number: number) => {
    const server = await servers.server(schedule, number);
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    await bindV1(server.app.catalog, { apiKey, tenantId: apiKey }).connect(ours);
    const client = new Client({ name: 'schedule', version: '1' });
    await client.connect(theirs);
    clients.push(client);
    processes[number] = { server, client };
    if (keptIn !== 'replicas') refusing.delete(number);
  };
  const end = (server: Server) => {
    server.isDead = true;
    ended.push(server);
  };
  const numberOf = (by: 0 | 1) => (keptIn === 'memory' ? 0 : by);

  /** Processes that have heard that the key is refused. */
  const refusing = new Set<number>();
  let [verdicts, otherOnes] = [0, 0];

  const apply = async (change: Change, sending?: Server) => {
    // A process that does not know yet whose key it is keeps in its memory what it has paid for.
    if ('rejectedBy' in change && keptIn === 'files' && sending && !service.named.has(sending.account)) return;
    service.time++;
    if ('passMs' in change) service.time += change.passMs;
    else if ('ad' in change) service.change(change.ad, change.version);
    else if ('gone' in change) service.vanish(change.gone);
    else if ('expireCursors' in change) service.expireCursors();
    else if ('rejectedBy' in change) {
      service.rejectedBy = change.rejectedBy;
      verdicts++;
      if (change.rejectedBy === undefined) {
        refusing.clear();
        // So long a process that was refused keeps in its memory what it pays for.
        service.time += 30_000;
      }
    } else if ('roomLeft' in change) {
      const dataset = await datasets.of({ tenantId: apiKey, apiKey });
      const known = (await dataset.contents()).gatherings.length;
      const end = keptIn === 'files' ? 0 : otherOnes + mostGatherings - change.roomLeft - known;
      for (; otherOnes < end; otherOnes++) {
        const other = { ...otherGathering, id: `${otherGatherings}${otherOnes}`, question: `${otherOnes}` };
        await dataset.saveGathering(other);
      }
    } else if ('clockOf' in change) {
      clocks[numberOf(change.clockOf)] += change.jumpMs;
      books.clocksJumped = true;
    }
  };

  /** What follows the last page of a search, for whoever turns to the next. */
  let searched: { filters: Filters; cursor: string } | undefined;
  const argsOf = (call: Call): [name: string, args: Record<string, unknown>] => {
    if ('gather' in call) {
      const { gather, ...limits } = call;
      return ['gather_ads', { ...gather, ...limits }];
    }
    if ('ad' in call) return ['get_ad', { adId: adId(call.ad), fresh: call.fresh }];
    if ('count' in call) return ['count_ads', { filters: call.count, split: call.split, fresh: call.fresh }];
    if (call.isNext && searched) return ['search_ads', { ...searched, limit: call.limit }];
    return ['search_ads', { filters: call.search, limit: call.limit, fresh: call.fresh }];
  };

  const make = (number: number, call: Call, signal?: AbortSignal): MadeCall => {
    const { client } = processes[number] as Process;
    service.time++;
    const [name, args] = argsOf(call);
    const made: MadeCall = { call, from: service.arrived, at: service.time };
    const [verdictsBefore, wasRejected] = [verdicts, service.rejectedBy !== undefined];
    const isRefusing = wasRejected && refusing.has(number);
    const options = { timeout: 600_000, ...(signal && { signal }) };
    made.ended = client.callTool({ name, arguments: args }, undefined, options).then(
      (raw) => {
        made.result = readResult(raw);
        const { isError, error, data } = made.result;
        const { cursor } = data;
        const isRefused = [error?.kind, data.error].includes('unauthorized');
        if (isRefused && service.rejectedBy !== undefined)
          for (const one of keptIn === 'replicas' ? [0, 1] : [number]) refusing.add(one);
        if (verdicts === verdictsBefore) books.checkVerdict({ name, isError, isRefused, wasRejected, isRefusing });
        if ('search' in call && cursor) searched = { filters: call.search, cursor };
      },
      () => {},
    );
    return made;
  };

  const stepOf = async ({ call, by, during }: Extract<Step, { call: Call }>) => {
    const number = numberOf(by);
    const process = processes[number] as Process;
    const leaving = new AbortController();
    const killed = new AbortController();
    let page = 0;
    let asking: MadeCall[] = [];
    let isBroken = false;
    service.underWay = async (served) => {
      books.asked(served, asking, calls);
      if (page++ !== during?.page) return 'sent';
      const { happens } = during;
      if (typeof happens === 'object') {
        if ('change' in happens) await apply(happens.change, process.server);
        // With a budget a search would wait, and its page would be taken for one of the gathering.
        else if (budget === undefined || !('search' in happens.call)) {
          const other = make(number, happens.call);
          const own = asking;
          asking = [other];
          calls.push(other);
          await quiet();
          asking = 'gather' in happens.call ? [...own, other] : own;
        }
        return 'sent';
      }
      isBroken = true;
      if (happens === 'break off') return 'broken off';
      if (happens === 'cancel') {
        leaving.abort();
        await quiet();
      } else if (keptIn !== 'memory') {
        end(process.server);
        // What replicas do with the budget that a dead one has reserved is a matter of the state.
        if (happens === 'kill' && (keptIn === 'files' || budget === undefined)) {
          servers.kill(process.server);
          killed.abort();
          return 'lost';
        }
        process.server.app.drain();
      }
      return 'sent';
    };
    const first = make(number, call, leaving.signal);
    const calls = [first];
    asking = [first];
    const dead = new Promise((resolve) => killed.signal.addEventListener('abort', resolve));
    await Promise.race([first.ended, dead]);
    await quiet();
    for (const other of calls.slice(1)) {
      asking = [other];
      await Promise.race([other.ended, dead]);
    }
    await quiet();
    if (leaving.signal.aborted) {
      // What goes on without its caller loads a module, which tsx does in a thread: one thing after the other.
      await import('../../src/api/client.ts');
      await quiet();
    }
    if (process.server.isDead) {
      if (!killed.signal.aborted) await process.server.app.close(1000);
      await start(number);
    }
    books.check({ calls, isBroken, after: await view() });
  };

  /** The tables as SQL sees them. */
  const view = async (): Promise<DatasetView> => {
    const contents = await (await datasets.of({ tenantId: apiKey, apiKey })).contents();
    const tables: Record<string, object[]> = {};
    for await (const { table, rows } of snapshotOf(adRows, apiKey, contents).tables({ json: true }))
      tables[table] = [...(tables[table] ?? []), ...rows];
    return { ...(tables as unknown as DatasetView), letGo: contents.letGo };
  };

  const ask = async (name: string, args: object): Promise<Result> => {
    const { client } = processes.at(-1) as Process;
    return readResult(await client.callTool({ name, arguments: { ...args } }));
  };

  try {
    for (let number = 0; number < (keptIn === 'memory' ? 1 : 2); number++) await start(number);
    for (const step of steps) {
      if ('call' in step) await stepOf(step);
      else if ('change' in step) await apply(step.change);
      else if (keptIn !== 'memory') {
        const { server } = processes[step.restart] as Process;
        end(server);
        await server.app.close();
        await start(step.restart);
      }
      if (books.problems.length > 0) return books.problems;
    }
    service.underWay = async () => 'sent';
    service.rejectedBy = undefined;
    const last = await view();
    books.checkNewest(last);
    for (const { id } of last.letGo.ads > 0 ? [] : books.mostChanged(3)) {
      const { data, isError } = await ask('get_ad', { adId: id, seen: true, detail: 'full' });
      if (!isError) books.checkSeen(id, data.ad);
    }
    if (schedule.asksSql && schedule.room === undefined) {
      const table = async (name: string, order: string) => {
        const { data } = await ask('query_ads', {
          sql: `SELECT * FROM ${name} ORDER BY ${order}`,
          limit: 1000,
          cell: 2000,
        });
        const [columns, rows] = [data.columns as string[], data.rows as unknown[][]];
        return rows.map((cells) => Object.fromEntries(cells.map((cell, index) => [columns[index], cell])));
      };
      books.checkNewest({
        ...last,
        ads: await table('ads', 'rowid'),
        ad_versions: await table('ad_versions', 'rowid'),
      } as unknown as DatasetView);
    }
    return books.problems;
  } finally {
    for (const client of clients) await client.close();
    for (const { app } of ended) await app.close();
    await datasets.close();
  }
}

/** @throws Error with all that was not as promised */
export async function assertGatherings(schedule: GatheringSchedule, servers: GatheringServers): Promise<void> {
  const problems = await runGatherings(schedule, servers);
  if (problems.length > 0) throw new Error(problems.map(({ promise, seen }) => `${promise}: ${seen}`).join('\n'));
}

/** Until all that was begun waits for the service or for a caller. */
async function quiet(): Promise<void> {
  for (let turns = 0; turns < 6; turns++) {
    await nextTurn();
    if (process.getActiveResourcesInfo().some((name) => /^(FSReq|CloseReq)/.test(name))) turns = 0;
  }
}
