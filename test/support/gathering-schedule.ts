import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import fc from 'fast-check';
import { type App, openApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { createAdRowReaderFactory } from '../../src/dataset/ad-rows.ts';
import { createSnapshot } from '../../src/dataset/snapshot.ts';
import { createLogger } from '../../src/logging/log.ts';
import { createSdkV1Server } from '../../src/mcp/sdk-v1.ts';
import type { DatasetStore } from '../../src/storage/dataset.ts';
import { openFolderState } from '../../src/storage/folder.ts';
import { MemoryDatasetStore } from '../../src/storage/memory-datasets.ts';
import { openMemoryState } from '../../src/storage/open.ts';
import type { ReplicaState } from '../../src/storage/store/open-store.ts';
import { cacheSeconds, type DatasetView, GatheringOracle, isEstimate, type StartedCall } from './gathering-oracle.ts';
import { collectionId, createAdId, dayMs, GatheringService } from './gathering-service.ts';
import { readResult } from './server.ts';

type Filters = Record<string, unknown>;

/** What a `gather_ads` call reads: a search with filters, optionally split into parts, or a collection. */
export interface Question {
  filters?: Filters;
  split?: Filters[];
  collectionId?: string;
}

/** A tool call in a schedule, which is a random sequence of events. */
export type Call =
  | { gather: Question; fresh: boolean; maxAds: number; maxCredits: number }
  | { search: Filters; limit: number; fresh: boolean; isNext: boolean }
  | { ad: number; fresh: boolean };

type Change =
  | { ad: number; version: number }
  | { gone: number }
  | { passMs: number }
  | { clockOf: 0 | 1; jumpMs: number }
  | { expireCursors: true };

/** What happens while the API sends a page. A tool call goes to the process that requested the page. */
type Interruption = 'cancel' | 'stop' | 'break off' | { change: Change } | { call: Call };

/** One step of a schedule. Steps run one after another. `by` is the index of the process that handles the call. */
type Step =
  | { call: Call; by: 0 | 1; during?: { page: number; interruption: Interruption } | undefined }
  | { change: Change }
  | { restart: 0 | 1 };

const image = { displayFormat: 'IMAGE' };
const video = { displayFormat: 'VIDEO' };
const german = { countries: ['DE'] };

const generateWeighted = <Value>(...all: [weight: number, arbitrary: fc.Arbitrary<Value>][]): fc.Arbitrary<Value> =>
  fc.oneof(...all.map(([weight, arbitrary]) => ({ weight, arbitrary })));
const generateOneIn = (times: number) => generateWeighted([times, fc.constant(false)], [1, fc.constant(true)]);

const question = generateWeighted<Question>(
  [3, fc.constantFrom<Filters>({}, image, video, german, { ...german, ...video }).map((filters) => ({ filters }))],
  [
    3,
    fc.constantFrom<Question>(
      { split: [image, video] },
      { split: [image, image] },
      { split: [image, german] },
      { split: [{}, image] },
      { filters: german, split: [video, image] },
      { split: [video, { ...german, ...video }, image, video] },
    ),
  ],
  [1, fc.constant({ collectionId })],
);

const maxServedAds = 12;
const ad = fc.nat(maxServedAds - 1);
const fresh = fc.boolean();
const limits = {
  maxAds: generateWeighted([2, fc.constant(1000)], [1, fc.constantFrom(1, 3, 4, 7)]),
  maxCredits: generateWeighted([3, fc.constant(1000)], [1, fc.constantFrom(0, 2, 5)]),
};

const times = [20, 60_000, dayMs / 24, (20 * dayMs) / 24, 3 * dayMs, 40 * dayMs];
const jumpMs = fc.constantFrom(...times.flatMap((ms) => [ms, -ms]), 40 * dayMs, 40 * dayMs);
const by = fc.constantFrom<0 | 1>(0, 1);
const passMs = fc.constantFrom(...times);

const change = generateWeighted<Change>(
  [4, fc.record({ ad, version: fc.nat(3) })],
  [2, fc.record({ gone: ad })],
  [3, fc.record({ passMs })],
  [3, fc.record({ clockOf: by, jumpMs })],
  [1, fc.constant({ expireCursors: true })],
);

/** Generates calls about only a few searches, so that their ads overlap. Some calls repeat the previous one. */
function generateSteps(questions: Question[]): fc.Arbitrary<Step[]> {
  const filters = questions.flatMap(({ filters = {}, split = [] }) => [
    filters,
    ...split.map((part) => ({ ...filters, ...part })),
  ]);
  const call = generateWeighted<Call>(
    [6, fc.record({ gather: fc.constantFrom(...questions), fresh, ...limits })],
    [
      2,
      fc.record({
        search: fc.constantFrom(...filters),
        limit: fc.constantFrom(2, 100),
        fresh,
        isNext: generateOneIn(3),
      }),
    ],
    [1, fc.record({ ad, fresh })],
  );
  const interruption = generateWeighted<Interruption>(
    [3, fc.constant('cancel')],
    [2, fc.constantFrom('stop', 'break off')],
    [2, fc.record({ change })],
    [3, fc.record({ call })],
  );
  const during = fc.option(fc.record({ page: fc.nat(4), interruption }), { nil: undefined, freq: 2 });
  const step = generateWeighted<Step & { isRepeat?: boolean }>(
    [8, fc.record({ call, by, during, isRepeat: generateOneIn(3) })],
    [5, fc.record({ change })],
    [1, fc.record({ restart: by })],
  );
  return fc.array(step, { maxLength: 14, size: 'max' }).map((steps) => {
    let previousCall: Call | undefined;
    return steps.map(({ isRepeat, ...step }) => {
      if (!('call' in step)) return step;
      previousCall = (isRepeat && previousCall) || step.call;
      return { ...step, call: previousCall };
    });
  });
}

/** Generates an API, the place where the server stores its state, and a sequence of steps. */
export const gatheringSchedules = fc.record({
  rule: fc.record({
    pageSize: fc.constantFrom(1, 2, 3, 5, 100),
    pricePerCall: fc.constantFrom(1, 0),
    pricePerAd: fc.constantFrom(0, 1),
    reportsTotals: generateOneIn(1),
  }),
  ads: fc.nat(maxServedAds),
  storedIn: fc.constantFrom('memory', 'files'),
  hasCache: fc.boolean(),
  steps: fc.array(question, { minLength: 1, maxLength: 2 }).chain(generateSteps),
});

type GatheringSchedule = typeof gatheringSchedules extends fc.Arbitrary<infer Value> ? Value : never;

const baseUrl = 'https://service.invalid';

interface ScheduleRun {
  apiKey: string;
  service: GatheringService;
  /** How far each process's clock is ahead, in milliseconds. */
  clockAdvances: [number, number];
  /** The shared datasets, opened as a separate process would open them. */
  datasets: DatasetStore;
}

/** A running server. Every schedule calls it with a new API key. */
interface Server {
  app: App;
  isDead: boolean;
}

/** Starts servers and reuses them for all schedules, because starting a server takes longer than most schedules. */
export class GatheringServers {
  /** A folder in memory if possible, because the server syncs every write to the disk. */
  readonly #files = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'ad-library-'));
  readonly #servers = new Map<string, Server>();
  #currentRun: ScheduleRun | undefined;
  #runCount = 0;

  beginRun({ rule, ads, storedIn }: GatheringSchedule): ScheduleRun {
    const time = (this.#currentRun?.service.time ?? Date.parse('2026-11-20T10:00:00Z')) + dayMs;
    const apiKey = `svc_live_${++this.#runCount}`;
    const service = new GatheringService(rule, { apiKey, ads, time });
    const now = () => service.time;
    const folder = { folder: this.#files, baseUrl, apiKey, ttlMs: 0, now, monotonicNow: now };
    const fetchUserId = async () => service.userId;
    const datasets =
      storedIn === 'files'
        ? openFolderState({ ...folder, fetchUserId, warn: () => {} }).datasets
        : new MemoryDatasetStore();
    this.#currentRun = { apiKey, service, clockAdvances: [0, 0], datasets };
    return this.#currentRun;
  }

  async server({ storedIn, hasCache }: GatheringSchedule, processIndex: number): Promise<Server> {
    // A server with a data folder has a single API key, so each schedule needs its own server.
    const name = `${storedIn} ${hasCache} ${processIndex} ${storedIn === 'files' ? this.#runCount : ''}`;
    const runningServer = this.#servers.get(name);
    if (runningServer && !runningServer.isDead) return runningServer;
    const getRun = () => this.#currentRun as ScheduleRun;
    const getTime = () => getRun().service.time;
    const datasets: DatasetStore = { open: (...args) => getRun().datasets.open(...args), close: async () => {} };
    const shared: Partial<ReplicaState> = { state: (options) => ({ ...openMemoryState(options), datasets }) };
    const config = { ...readConfig({}), baseUrl, cacheSeconds: hasCache ? cacheSeconds : 0 };
    const app = await openApp({
      config: storedIn === 'files' ? { ...config, apiKey: getRun().apiKey, files: this.#files } : config,
      log: createLogger('silent', () => {}),
      now: () => getTime() + (getRun().clockAdvances[processIndex] ?? 0),
      monotonicNow: getTime,
      random: () => 0,
      fetch: (url, request) => getRun().service.fetch(url, request),
      ...(storedIn === 'memory' && { replicaState: shared as ReplicaState }),
    });
    const server = { app, isDead: false };
    this.#servers.set(name, server);
    return server;
  }

  async close(): Promise<void> {
    for (const { app } of this.#servers.values()) await app.close();
    rmSync(this.#files, { recursive: true });
  }
}

/**
 * Returns true if the API requests of two calls differ. An estimate requests one ad, and a small `gather_ads` call may
 * do the same.
 */
const canDistinguishPages = (first: Call, other: Call): boolean =>
  ![
    [first, other],
    [other, first],
  ].some(
    ([one, two]) =>
      one && two && isEstimate(one) && 'gather' in two && Math.min(two.maxAds, two.maxCredits || 1000) < 1000,
  );

/**
 * Runs a schedule on real servers, with a real client for each process.
 * @throws Error that lists all violations
 */
export async function assertGatherings(schedule: GatheringSchedule, servers: GatheringServers): Promise<void> {
  const { storedIn, steps } = schedule;
  const { service, clockAdvances, datasets, apiKey } = servers.beginRun(schedule);
  const oracle = new GatheringOracle(service);
  const adRows = createAdRowReaderFactory(() => service.time).forTenant(apiKey);
  const closeFunctions: (() => Promise<void>)[] = [() => datasets.close()];
  const processes: { server: Server; client: Client }[] = [];
  const getProcessIndex = (by: 0 | 1) => (storedIn === 'memory' ? 0 : by);

  const startProcess = async (processIndex: number) => {
    const server = await servers.server(schedule, processIndex);
    const [serverTransport, clientTransport] = InMemoryTransport.createLinkedPair();
    await createSdkV1Server(server.app.catalog, { apiKey, tenantId: apiKey }).connect(serverTransport);
    const client = new Client({ name: 'schedule', version: '1' });
    await client.connect(clientTransport);
    closeFunctions.unshift(() => client.close());
    processes[processIndex] = { server, client };
  };
  const killServer = (server: Server) => {
    server.isDead = true;
    closeFunctions.push(() => server.app.close());
  };

  const applyChange = (change: Change) => {
    service.time++;
    if ('passMs' in change) service.time += change.passMs;
    if ('clockOf' in change) clockAdvances[getProcessIndex(change.clockOf)] += change.jumpMs;
    else if ('ad' in change) service.ads.set(change.ad, change.version);
    else if ('gone' in change) service.ads.delete(change.gone);
    else if ('expireCursors' in change) service.expireCursors();
    oracle.hasClockJump ||= 'clockOf' in change;
  };

  let nextPage: { filters: Filters; cursor: string } | undefined;
  const buildParams = (call: Call): { name: string; arguments: Record<string, unknown> } => {
    if ('gather' in call) {
      const { gather, ...rest } = call;
      return { name: 'gather_ads', arguments: { ...gather, ...rest } };
    }
    if ('ad' in call) return { name: 'get_ad', arguments: { adId: createAdId(call.ad), fresh: call.fresh } };
    const { search, limit, fresh, isNext } = call;
    const position = isNext && nextPage ? nextPage : { filters: search, fresh };
    return { name: 'search_ads', arguments: { ...position, limit } };
  };

  const beginCall = (processIndex: number, call: Call, signal?: AbortSignal): StartedCall => {
    const madeCall: StartedCall = { call, responsesBefore: service.arrivedCount, startedAt: ++service.time };
    const options = { timeout: 600_000, ...(signal && { signal }) };
    const { client } = processes[processIndex] as (typeof processes)[number];
    madeCall.completion = client.callTool(buildParams(call), undefined, options).then(
      (raw) => {
        madeCall.result = readResult(raw);
        const { cursor } = madeCall.result.data;
        if ('search' in call && cursor) nextPage = { filters: call.search, cursor };
      },
      () => {},
    );
    return madeCall;
  };

  const runCall = async ({ call, by, during }: Extract<Step, { call: Call }>) => {
    const processIndex = getProcessIndex(by);
    const { server } = processes[processIndex] as (typeof processes)[number];
    const caller = new AbortController();
    let page = 0;
    let pageCallers: StartedCall[] = [];
    let isBroken = false;
    service.beforeResponse = async (servedPage) => {
      oracle.addRequest(servedPage, pageCallers, calls);
      if (page++ !== during?.page) return 'sent';
      const { interruption } = during;
      if (typeof interruption === 'object') {
        if ('change' in interruption) {
          applyChange(interruption.change);
          // A real call never takes hours. If hours pass while a page is on its way, the call sees a changed clock.
          oracle.hasClockJump ||= 'passMs' in interruption.change;
        } else if (canDistinguishPages(call, interruption.call)) {
          const otherCall = beginCall(processIndex, interruption.call);
          const previousCallers = pageCallers;
          pageCallers = [otherCall];
          calls.push(otherCall);
          await waitForQuietEventLoop();
          pageCallers = 'gather' in interruption.call ? [...previousCallers, otherCall] : previousCallers;
        }
        return 'sent';
      }
      isBroken = true;
      if (interruption === 'break off') return 'broken off';
      if (interruption === 'cancel') {
        caller.abort();
        await waitForQuietEventLoop();
      } else if (storedIn !== 'memory') {
        killServer(server);
        server.app.drain();
      }
      return 'sent';
    };
    const scheduledCall = beginCall(processIndex, call, caller.signal);
    const calls = [scheduledCall];
    pageCallers = [scheduledCall];
    await scheduledCall.completion;
    await waitForQuietEventLoop();
    for (const otherCall of calls.slice(1)) {
      pageCallers = [otherCall];
      await otherCall.completion;
    }
    await waitForQuietEventLoop();
    if (caller.signal.aborted) {
      // A call that continues after its cancellation imports this module, which tsx compiles in a thread. Import it
      // first, so that the order of the steps stays the same.
      await import('../../src/api/client.ts');
      await waitForQuietEventLoop();
    }
    if (server.isDead) {
      await server.app.close(1000);
      await startProcess(processIndex);
    }
    oracle.check({ calls, isBroken, dataset: await readDataset() });
  };

  const readDataset = async (): Promise<DatasetView> => {
    const contents = await (await datasets.open({ tenantId: apiKey, apiKey })).readContents();
    const tables: Record<string, object[]> = { ads: [] };
    for await (const { table, rows } of createSnapshot(adRows, contents).readTables({ includeJson: true }))
      tables[table] = [...(tables[table] ?? []), ...rows];
    return tables as unknown as DatasetView;
  };

  try {
    for (let number = 0; number < (storedIn === 'memory' ? 1 : 2); number++) await startProcess(number);
    for (const step of steps) {
      if ('call' in step) await runCall(step);
      else if ('change' in step) applyChange(step.change);
      else if (storedIn !== 'memory') {
        const { server } = processes[step.restart] as (typeof processes)[number];
        killServer(server);
        await server.app.close();
        await startProcess(step.restart);
      }
      if (oracle.problems.length > 0) throw new Error(oracle.problems.join('\n'));
    }
  } finally {
    for (const close of closeFunctions) await close();
  }
}

/** Resolves when all running work waits for the API or for the next call. */
async function waitForQuietEventLoop(): Promise<void> {
  for (let turns = 0; turns < 6; turns++) {
    await yieldToEventLoop();
    if (process.getActiveResourcesInfo().some((name) => /^(FSReq|CloseReq)/.test(name))) turns = 0;
  }
}
