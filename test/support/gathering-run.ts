import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { type App, openApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { AdRowReader } from '../../src/dataset/ad-rows.ts';
import { newGathering } from '../../src/dataset/gatherings.ts';
import { snapshotOf } from '../../src/dataset/snapshot.ts';
import { createLog } from '../../src/log/log.ts';
import { bindV1 } from '../../src/mcp/sdk-v1.ts';
import type { Datasets } from '../../src/state/dataset.ts';
import { memoryState, memoryTurns } from '../../src/state/drivers/memory.ts';
import { memoryExports } from '../../src/state/exports.ts';
import { folderState } from '../../src/state/folder.ts';
import { MemoryDatasets } from '../../src/state/memory-datasets.ts';
import type { State } from '../../src/state/ports.ts';
import type { ReplicaState } from '../../src/state/store/open-store.ts';
import {
  cacheSeconds,
  type DatasetView,
  GatheringBooks,
  isSearchOfOne,
  type MadeCall,
  otherGatherings,
  type Problem,
} from './gathering-books.ts';
import type { Call, Change, GatheringSchedule, Step } from './gathering-schedule.ts';
import { adId, dayMs, GatheringService, never, userIdOfKey } from './gathering-service.ts';
import { type Result, readResult } from './server.ts';

type Filters = Record<string, unknown>;

const baseUrl = 'https://service.invalid';
/** So long that few ads fit where there is little room. */
const adBytes = 8000;

/** So many gatherings are kept. */
const mostGatherings = 500;

/** A gathering of another question, which was complete. */
const otherGathering = { ...newGathering({}, 0), found: 0, ended: true, adIds: [] };

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
  begin({ rule, ads, storedIn, room }: GatheringSchedule): Scene {
    const padding = room === undefined ? 0 : adBytes;
    // It goes only on, as that by which the servers measure durations.
    const time = (this.#scene?.service.time ?? Date.parse('2026-11-20T10:00:00Z')) + dayMs;
    const service = new GatheringService({ ...rule, padding }, { ads, time });
    const apiKey = `svc_live_${++this.#scenes}`;
    const now = () => service.time;
    const userIdOf = async () => userIdOfKey(apiKey);
    const datasets =
      storedIn === 'files'
        ? folderState({
            ...{ folder: this.#files, baseUrl, apiKey, ttl: 0, now, elapsed: now },
            userIdOf,
            warn: () => {},
          }).datasets
        : new MemoryDatasets(room === undefined ? {} : { maxBytesEach: room });
    this.#scene = { apiKey, service, clocks: [0, 0], datasets };
    return this.#scene;
  }

  async server(schedule: GatheringSchedule, number: number): Promise<Server> {
    const { storedIn, hasCache, budget } = schedule;
    const name = `${storedIn} ${hasCache} ${budget} ${number}`;
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
  }

  async close(): Promise<void> {
    for (const server of this.#servers.values()) await (await server).app.close();
    rmSync(this.#files, { recursive: true });
  }

  #opened = 0;

  async #open({ storedIn, hasCache, budget }: GatheringSchedule, number: number): Promise<Server> {
    const account = storedIn === 'replicas' ? storedIn : `${++this.#opened}`;
    const about = { account, isDead: false, isKilled: false, endTurns: [] as Server['endTurns'] };
    const scene = () => this.#scene as Scene;
    const time = () => scene().service.time;
    const limits = { cacheSeconds: hasCache ? cacheSeconds : 0, creditBudget: budget };
    const config = { ...readConfig({}), baseUrl, ...limits };
    const app = await openApp({
      config: storedIn === 'files' ? { ...config, apiKey: 'svc_live_own', files: this.#files } : config,
      log: createLog('silent', () => {}),
      now: () => time() + (scene().clocks[number] ?? 0),
      elapsed: time,
      random: () => 0,
      fetch: (url, request) => (server.isKilled ? never(request) : scene().service.fetchFor(account)(url, request)),
      ...(storedIn !== 'files' && { shared: this.#shared(storedIn, scene, about) }),
    });
    const server: Server = Object.assign(about, { app });
    return server;
  }

  #sharedState: State | undefined;
  readonly #turns = memoryTurns();

  /** What replicas share, in the memory of this process; a server in memory shares it with nobody. */
  #shared(storedIn: 'memory' | 'replicas', scene: () => Scene, server: Omit<Server, 'app'>): ReplicaState {
    const shared: Partial<ReplicaState> = {
      now: () => scene().service.time,
      isUp: () => true,
      datasets: () => ({ of: (...args) => scene().datasets.of(...args), close: async () => {} }),
      state: (limits) => {
        if (storedIn === 'memory') return memoryState(limits);
        // What is shared has a clock of its own, which is right.
        this.#sharedState ??= memoryState({ ...limits, now: () => scene().service.time });
        return this.#sharedState;
      },
      exports: (now) => memoryExports(now),
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

const isSmall = (call: Call) =>
  'gather' in call && call.maxCredits > 0 && Math.min(call.maxAds, call.maxCredits) < 1000;

/**
 * Whether the service can tell which of two calls at once a page is for. With a budget a search waits until a gathering
 * has its page, and a gathering with a limit may ask for a single ad, as counts and estimates do.
 */
const areToldApart = (first: Call, other: Call, budget: number | undefined): boolean =>
  (budget === undefined || !('search' in other)) &&
  !(isSearchOfOne(first) && isSmall(other)) &&
  !(isSearchOfOne(other) && isSmall(first));

/** A process, and its only client. */
interface Process {
  server: Server;
  client: Client;
}

/** Lets a schedule happen to real servers. Returns which promises were not kept. */
async function runGatherings(schedule: GatheringSchedule, servers: GatheringServers): Promise<Problem[]> {
  const { storedIn, steps, budget } = schedule;
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
    if (storedIn !== 'replicas') refusing.delete(number);
  };
  const end = (server: Server) => {
    server.isDead = true;
    ended.push(server);
  };
  const numberOf = (by: 0 | 1) => (storedIn === 'memory' ? 0 : by);

  /** Processes that have heard that the key is refused. */
  const refusing = new Set<number>();
  let [verdicts, otherOnes] = [0, 0];

  const apply = async (change: Change, sending?: Server) => {
    // A process that does not know yet whose key it is keeps in its memory what it has paid for.
    if ('rejectedBy' in change && storedIn === 'files' && sending && !service.named.has(sending.account)) return;
    service.time++;
    if ('passMs' in change) {
      service.time += change.passMs;
      if ('stoppedClockOf' in change) {
        clocks[numberOf(change.stoppedClockOf)] -= change.passMs;
        books.clocksJumped = true;
      }
    } else if ('ad' in change) service.change(change.ad, change.version);
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
      const end = storedIn === 'files' ? 0 : otherOnes + mostGatherings - change.roomLeft - known;
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
        // A gateway has not seen the key, so its refusal ends nothing that is stored.
        if (isRefused && service.rejectedBy === 'service')
          for (const one of storedIn === 'replicas' ? [0, 1] : [number]) refusing.add(one);
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
    service.inFlight = async (served) => {
      books.asked(served, asking, calls);
      if (page++ !== during?.page) return 'sent';
      const { happens } = during;
      if (typeof happens === 'object') {
        if ('change' in happens) await apply(happens.change, process.server);
        else if (areToldApart(call, happens.call, budget)) {
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
      } else if (storedIn !== 'memory') {
        end(process.server);
        // What replicas do with the budget that a dead one has reserved is a matter of the state.
        if (happens === 'kill' && (storedIn === 'files' || budget === undefined)) {
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
    for await (const { table, rows } of snapshotOf(adRows, apiKey, contents, 0).tables({ json: true }))
      tables[table] = [...(tables[table] ?? []), ...rows];
    return { ...(tables as unknown as DatasetView), evicted: contents.evicted };
  };

  const ask = async (name: string, args: object): Promise<Result> => {
    const { client } = processes.at(-1) as Process;
    return readResult(await client.callTool({ name, arguments: { ...args } }));
  };

  try {
    for (let number = 0; number < (storedIn === 'memory' ? 1 : 2); number++) await start(number);
    for (const step of steps) {
      if ('call' in step) await stepOf(step);
      else if ('change' in step) await apply(step.change);
      else if (storedIn !== 'memory') {
        const { server } = processes[step.restart] as Process;
        end(server);
        await server.app.close();
        await start(step.restart);
      }
      if (books.problems.length > 0) return books.problems;
    }
    service.inFlight = async () => 'sent';
    service.rejectedBy = undefined;
    const last = await view();
    books.checkNewest(last);
    for (const { id } of last.evicted.ads > 0 ? [] : books.mostChanged(3)) {
      const { data, isError } = await ask('get_ad', { adId: id, seen: true, detail: 'full' });
      if (!isError) books.checkSeen(id, data.ad);
    }
    if (schedule.asksSql && schedule.room === undefined) {
      const table = async (name: string) => {
        const sql = `SELECT * FROM ${name} ORDER BY rowid`;
        const { data } = await ask('query_ads', { sql, limit: 1000, cell: 2000 });
        const [columns, rows] = [data.columns as string[], data.rows as unknown[][]];
        return rows.map((cells) => Object.fromEntries(cells.map((cell, index) => [columns[index], cell])));
      };
      const tables = { ads: await table('ads'), ad_versions: await table('ad_versions') };
      books.checkNewest({ ...last, ...tables } as unknown as DatasetView);
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
