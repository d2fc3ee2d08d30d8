import { resolve } from 'node:path';
import {
  untilAccepted,
  withAcceptedKeys,
  withCache,
  withClaims,
  withCoalescing,
  withDataset,
  withKeeping,
  withOrder,
  withSeenAds,
  withVerdicts,
  withWrites,
} from './answers/answers.ts';
import { type InFlightCalls, trackInFlightCalls } from './answers/in-flight-calls.ts';
import { type Call, fingerprint, operations, type Send } from './api/call.ts';
import { type Api, type ApiAnswer, type Caller, createApi, keyOf } from './api/client.ts';
import { type Fetch, sendHttp, withRetries } from './api/http.ts';
import { isLoopback } from './config/setting-values.ts';
import type { Config } from './config/settings.ts';
import { spendingOf } from './credits/credit-text.ts';
import type { CreditLedger } from './credits/ledger.ts';
import {
  type AskCredits,
  type BudgetOptions,
  creditsAsker,
  openAllowance,
  withAllowance,
  withBalance,
  withBudget,
  withUsageWindows,
} from './credits/meter.ts';
import { costOf, maxCostOf, quote } from './credits/prices.ts';
import { totalOf } from './dataset/ad-list.ts';
import { AdRowReader } from './dataset/ad-row-reader.ts';
import { DatasetSqlEngine } from './dataset/dataset-sql.ts';
import type { Log } from './log/log.ts';
import type { OwnPictures, Resolve } from './pictures/fetch-picture.ts';
import type { OpenPictures } from './pictures/pictures.ts';
import type { Dataset, DatasetCaller, Datasets } from './state/dataset.ts';
import { type ExportStore, type Exports, MemoryExports } from './state/exports.ts';
import { FileDatasets } from './state/files/file-datasets.ts';
import { FileTurns } from './state/files/file-turns.ts';
import { exportsFolder, folderExports } from './state/folder-exports.ts';
import { memoryCreditLedger } from './state/memory-credit-ledger.ts';
import { MemoryDatasets } from './state/memory-datasets.ts';
import { memoryState } from './state/memory-state.ts';
import { NamedTurns, type Turns } from './state/named-turns.ts';
import type { ReplicaState } from './state/redis/replica-state.ts';
import type { State } from './state/state.ts';
import { cursorSigner } from './tools/cursor.ts';
import type { CallerContext } from './tools/tool-context.ts';
import { createViewMemo } from './tools/view-memo.ts';
import { version } from './version.ts';

/** The API for all callers, until it is closed. */
export interface OpenCalls {
  callsOf: Calls;
  /** The files that a tenant exported. */
  exportsOf(tenantId: string): Exports;
  /** Waits up to `ms` for paid calls that were sent, and aborts the rest. */
  close(ms: number): Promise<void>;
}

/** What a caller has during one tool call: the API, and what is remembered of earlier calls. */
export type Calls = (caller: Caller) => CallerContext;

/** The service that answers: the real one, or the local library with demo data inside this process. */
export interface Upstream {
  fetch: Fetch;
  baseUrl: string | undefined;
  /** Pictures that it serves inside this process. */
  ownPictures?: OwnPictures | undefined;
}

export interface CallsOptions {
  config: Config;
  upstream: Upstream;
  log: Log;
  now: () => number;
  /** Milliseconds that have passed, whatever happens to the clock. */
  elapsed: () => number;
  random: () => number;
  /** Finds the addresses of picture hosts; by default in the DNS. */
  resolve?: Resolve | undefined;
  /** What all replicas share, if anything. */
  shared?: ReplicaState | undefined;
}

interface ChainOptions extends CallsOptions {
  state: State;
  datasets: Datasets;
  inFlight: InFlightCalls;
  askCredits: AskCredits;
}

export function openCalls(options: CallsOptions): OpenCalls {
  const { config } = options;
  const datasets = openDatasets(options, (caller) => userIdOf(apiOf, caller));
  const adRows = new AdRowReader();
  const sql = new DatasetSqlEngine(adRows);
  const exports = openExports(options);
  const state = openState(options);
  const inFlight = trackInFlightCalls({
    register: state.calls,
    timeoutMs: config.timeoutMs,
    onLost: (call) => void logLost(options.log, state.ledger, call),
  });
  const askCredits = creditsAsker({ timeoutMs: config.timeoutMs, now: options.elapsed });
  const apiOf = createApi(sendChain({ ...options, state, datasets, inFlight, askCredits }), options.upstream.baseUrl);
  const viewMemo = createViewMemo();
  const turns = openTurns(options);
  const pictures = picturesOf(options);
  const callsOf: Calls = (caller) => ({
    api: apiOf(caller),
    dataset: async () => {
      const { tenantId } = caller;
      const accepted = () => untilAccepted(state.rejectedKeys, tenantId, () => apiOf(caller).whoami());
      await accepted();
      return readWhile(accepted, await datasets.of({ tenantId, apiKey: keyOf(caller, options.upstream.baseUrl) }));
    },
    adRows,
    sql: () => sql.of(caller.tenantId),
    version,
    exports: () => exports.of(caller.tenantId),
    spending: async () => spendingOf(await state.ledger.read(caller.tenantId), config.creditBudget),
    priceOf: async (list, items) =>
      costOf((await state.ledger.estimate(caller.tenantId)).prices, operations[list], items),
    keptTotal: async (filters) => {
      const { prices } = await state.ledger.estimate(caller.tenantId);
      // Those that were paid for; and one item, which is asked for where only the number is wanted.
      const limits = new Set([undefined, 1, ...(prices.get('searchAds')?.bySize.keys() ?? [])]);
      const names = [...limits].map((limit) => {
        const body = { ...filters, ...(limit !== undefined && { limit }) };
        return { fingerprint: fingerprint({ operation: operations.searchAds, path: {}, query: {}, body }) };
      });
      const kept = await Promise.all(names.map((name) => state.answers.get(caller.tenantId, name)));
      const totals = kept.flatMap((one) => {
        const ads = one && totalOf(one.answer as ApiAnswer<'searchAds'>);
        const age = options.elapsed() - (one?.at ?? 0);
        return one && ads !== undefined ? { ads, at: options.now() - age, order: one.answer.order ?? 0 } : [];
      });
      return totals.sort((left, right) => right.order - left.order)[0];
    },
    allowance: (maxCredits) => {
      const own = memoryCreditLedger({ now: options.elapsed, maxStrangers: 1 });
      const { tenantId } = caller;
      return openAllowance({
        maxCredits,
        tenantId,
        own,
        ledger: state.ledger,
        budget: config.creditBudget,
        askCredits,
      });
    },
    takeTurn: (name) => turns.take(`${caller.tenantId} ${name}`, caller.signal),
    pictures: async () => (await pictures.open()).of(caller.tenantId),
    viewMemo,
    cursors: { sign: cursorSigner(caller.apiKey), ...state.cursorsOf(caller.tenantId) },
  });
  const close = async (ms: number) => {
    await inFlight.close(ms);
    await Promise.all([datasets.close(), sql.close(), pictures.close()]);
  };
  const exportsOf = (tenantId: string): Exports => {
    const kept = exports.of(tenantId);
    const { rejectedKeys } = state;
    return {
      ...kept,
      list: async () => ((await rejectedKeys.has(tenantId)) ? [] : kept.list()),
      find: async (uri) => ((await rejectedKeys.has(tenantId)) ? undefined : kept.find(uri)),
    };
  };
  return { callsOf, exportsOf, close };
}

/** A dataset that is not read before the service has accepted the key again; what was paid for is added all the same. */
function readWhile(accepted: () => Promise<void>, dataset: Dataset): Dataset {
  return {
    addItems: (batch) => dataset.addItems(batch),
    saveGathering: (step) => dataset.saveGathering(step),
    order: () => dataset.order(),
    maxAds: () => dataset.maxAds(),
    item: async (type, id) => {
      await accepted();
      return dataset.item(type, id);
    },
    contents: async () => {
      await accepted();
      return dataset.contents();
    },
  };
}

function openState({ config, elapsed, shared }: CallsOptions): State {
  const limits = {
    ttl: config.cacheSeconds * 1000,
    now: elapsed,
    maxPerTenant: Math.max(256, 2 * config.callsPerKey),
    maxInAll: Math.max(1024, 2 * config.callsAtOnce),
  };
  return shared ? shared.state(limits) : memoryState(limits);
}

/** Shared with other replicas, or in this process; in files only where a person asked for it, and never what the demo makes up. */
function openDatasets(
  { config, upstream, log, now, elapsed, shared }: CallsOptions,
  userIdOf: (caller: DatasetCaller) => Promise<string | undefined>,
): Datasets {
  if (shared) return shared.datasets();
  if (config.files === undefined || config.demo || upstream.baseUrl === undefined) return new MemoryDatasets();
  const { baseUrl } = upstream;
  return new FileDatasets({ folder: resolve(config.files), baseUrl, now, elapsed, userIdOf, warn: log.warn });
}

/** Over all replicas, or all processes that keep what is read in one folder. */
function openTurns({ config: { files, demo }, shared }: CallsOptions): Turns {
  if (shared) return shared.turns();
  return files === undefined || demo ? new NamedTurns() : new FileTurns(resolve(files));
}

/** Shared with other replicas, in memory, or in the folder of the one person whose key this is. */
function openExports({ config: { files, demo }, now, elapsed, shared }: CallsOptions): ExportStore {
  if (shared) return shared.exports(now);
  if (files === undefined || demo) return new MemoryExports({ now, elapsed });
  const exports = folderExports(exportsFolder(resolve(files)), { now, elapsed });
  return { of: () => exports };
}

/** Loaded with the first picture. */
function picturesOf({ config, upstream, elapsed, random, resolve }: CallsOptions) {
  let opened: Promise<OpenPictures> | undefined;
  const open = () => {
    const { baseUrl, ownPictures } = upstream;
    const hosts = withLoopback(config.mediaHosts, baseUrl);
    const userAgent = `ad-library-mcp/${version}`;
    opened ??= import('./pictures/pictures.ts').then(({ openPictures }) =>
      openPictures({ hosts, own: ownPictures, userAgent, now: elapsed, random, resolve }),
    );
    return opened;
  };
  return { open, close: async () => (await opened)?.close() };
}

/** A local library serves the pictures of its ads itself. */
function withLoopback(hosts: Config['mediaHosts'], baseUrl: string | undefined): Config['mediaHosts'] {
  const isNone = !hosts.public && hosts.listed.length === 0;
  const { hostname, port, protocol } = new URL(baseUrl ?? 'https://none.invalid');
  if (isNone || !isLoopback(hostname)) return hosts;
  const own = { host: hostname, port: Number(port || (protocol === 'https:' ? 443 : 80)) };
  return { ...hosts, listed: [...hosts.listed, own] };
}

/** How long a paid answer waits to be kept in files, in milliseconds. */
const maxWhoamiMs = 5000;

async function userIdOf(apiOf: (caller: Caller) => Api, caller: DatasetCaller): Promise<string | undefined> {
  const { value } = await apiOf({ ...caller, signal: AbortSignal.timeout(maxWhoamiMs) }).whoami();
  return value.user?.userId;
}

/** Everything between a tool and the network, the outermost last. */
function sendChain(options: ChainOptions): Send {
  const { config, upstream, now, elapsed, random, state, datasets, inFlight, askCredits } = options;
  const { fetch, baseUrl } = upstream;
  const { ledger, answers, windows, rejectedKeys } = state;
  const { creditBudget: budget } = config;
  // Without an address, calls are refused before they get here.
  const overHttp = sendHttp(fetch, { baseUrl: baseUrl ?? '', userAgent: `ad-library-mcp/${version}` });
  const retried = withRetries(withVerdicts(overHttp, rejectedKeys), { random });
  const budgeted = withBudget(retried, { ledger, budget, askCredits });
  const windowed = withUsageWindows(withAllowance(budgeted), { ledger, windows, askCredits, now: elapsed });
  const onError = (error: unknown) =>
    options.log.error('an answer was not added to the dataset', { error: String(error) });
  const keepsAnswers = config.cacheSeconds > 0;
  const ordered = withOrder(windowed, { datasets, onError });
  const kept = keepsAnswers ? withKeeping(ordered, { answers, now: elapsed }) : ordered;
  const gathered = withDataset(withWrites(kept, answers), { datasets, now, onError });
  const { claims } = state;
  const onLost = (call: Call, id: string) => countLost(call, id, { ledger, budget });
  const claimed = claims === undefined ? gathered : withClaims(gathered, { claims, onLost });
  const coalesced = withCoalescing(claimed, inFlight);
  const cached = keepsAnswers ? withCache(coalesced, { answers, now: elapsed }) : coalesced;
  return withBalance(withAcceptedKeys(withSeenAds(cached, { datasets, now }), rejectedKeys), { ledger, budget });
}

/** With a budget, what the replica that died had reserved counts already. */
async function countLost(call: Call, claim: string, { ledger, budget }: Omit<BudgetOptions, 'askCredits'>) {
  if (budget !== undefined) return;
  const uncertain = maxCostOf((await ledger.estimate(call.tenantId)).prices, call) ?? 0;
  await ledger.settle(call.tenantId, { id: `lost:${claim}`, charged: 0, uncertain, isPaidAnswer: false });
}

async function logLost(log: Log, ledger: CreditLedger, call: Call): Promise<void> {
  if (!call.operation.gated) return;
  const { prices } = await ledger.estimate(call.tenantId);
  const { price, atLeast } = quote(prices, call);
  const fields = { operation: call.operation.name, credits: price ?? `${atLeast} or more` };
  log.warn('a paid call was lost: the server closed before its answer arrived', fields);
}
