import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { AdLibraryError, type Answer, type AnswerName, type OperationName } from '../../api/call.ts';
import type { FullWindow, FullWindows } from '../../credits/ledger.ts';
import type { Datasets } from '../dataset.ts';
import { type ExportedFile, type ExportStore, exportTtl, maxExportBytes } from '../exports.ts';
import { type MemoryStateOptions, memoryAnswers, memoryCursors, memoryOf } from '../memory-state.ts';
import { recordKinds } from '../own-records.ts';
import type { AnswerCache, CachedAnswer, CursorMemory, CursorState, RejectedKeys, State } from '../state.ts';
import { type Turns, turnsOver } from '../turns.ts';
import { Documents } from './documents.ts';
import { GuardedStore, type StateLog, type StoreDriver, stateUnavailable } from './guarded-store.ts';
import { Retries, readAnswer, roomIn, type Shared, smallBytes, type WrittenAnswer, writeAnswer } from './parts.ts';
import { beatMs, Presence } from './presence.ts';
import { createSeal } from './seal.ts';
import type { ItemLimits } from './store.ts';
import { storeClaims } from './store-claims.ts';
import { type CopyLimits, ownKey, StoreDatasets } from './store-datasets.ts';
import { type Account, storeLedger } from './store-ledger.ts';

const day = 86_400_000;
const MB = 1024 * 1024;
/**
 * How far the clock of the store may be set back, in milliseconds, before an answer from later does not count: it lives
 * longer by as much. After a small correction, nothing has to be paid for twice.
 */
const maxBackMs = 60_000;
/** How long a start waits for the store, in milliseconds. */
const startMs = 1000;
/** Bytes of work that waits until the store takes it. */
const maxWaiting = 96 * MB;
/** Bytes of answers that the store did not take. */
const maxOwnAnswers = 64 * MB;
/** From how many bytes on such an answer is shared after all that is small. */
const largeAnswer = 64 * 1024;
/** Bytes that it takes to remember that such an answer is to be shared later. */
const sharingBytes = 2000;
/** The limits of a key's cursors and exported files in the store. */
const cursorLimits = { ttlMs: day, maxBytes: 2 * MB };
const exportLimits = { ttlMs: exportTtl, maxBytes: 64 * MB };
const maxExports = 50;
const exportPartBytes = 256 * 1024;
/** How long removals and rejected keys are remembered: longer than anything else lives. */
const markTtlMs = 30 * day;
/** How long accepted keys are remembered, and tried ones are counted, in milliseconds. */
const acceptedMs = 900_000;
const triedMs = 60_000;

export interface StoreStateOptions {
  driver: StoreDriver;
  secret: string;
  /** The service: the state of one service says nothing about another. */
  baseUrl: string;
  log: StateLog;
  /** The time of this process, which counts until the store tells its own. */
  now(): number;
}

export interface ReplicaState extends ReturnType<typeof sharedKeys> {
  /** The time for all of them. */
  now(): number;
  isUp(): boolean;
  /** Why the state cannot carry paid calls, if it cannot. */
  problem(): string | undefined;
  state(options: MemoryStateOptions): State;
  datasets(limits?: CopyLimits): Datasets & { bytes?: number };
  exports(now: () => number): ExportStore;
  turns(): Turns;
  close(): void;
}

/** Everything that replicas share, over a store. */
export async function openStoreState({ driver, secret, baseUrl, log, now }: StoreStateOptions): Promise<ReplicaState> {
  const { seal, store, documents, presence } = reach({ driver, secret, log, now });
  const keyOf: Shared['keyOf'] = (tenantId, kind, ...parts) => {
    const tag = seal.name('tenant', baseUrl, tenantId);
    return ['ad-library:2', `{${tag}}`, kind, ...(parts.length > 0 ? [seal.name(kind, ...parts)] : [])].join(':');
  };
  const retries = new Retries(maxWaiting);
  const removals = removalsIn(documents, keyOf);
  const shared: Shared = {
    ...{ store, seal, documents, presence, retries, keyOf },
    stampOf: removals.stampOf,
    warn: log.warn,
  };
  const tick = () => {
    if (!store.isUp()) return;
    void presence.beat().catch(() => {});
    void retries.run();
  };
  store.onUp = tick;
  const ticks = setInterval(tick, beatMs).unref();
  await store.open(startMs);
  if (store.isUp()) await presence.beat().catch(() => {});
  return {
    ...sharedKeys(shared),
    now: () => store.now(),
    isUp: () => store.isUp(),
    problem: () => (store.isUp() ? presence.problem(store.now()) : 'state unavailable'),
    state: (options) => sharedState(shared, removals, options),
    datasets: (limits) => new StoreDatasets(shared, limits),
    exports: (clock) => sharedExports(shared, clock),
    turns: () => turnsOver({ ...shared, keyOf: (name) => keyOf(name, 'turn') }),
    close: () => {
      clearInterval(ticks);
      void retries.run().finally(() => store.close());
    },
  };
}

/** Accepts a store that went back in time as it is. Rejects if the store cannot be reached. */
export async function acceptStoreState(options: Omit<StoreStateOptions, 'baseUrl'>) {
  const { store, presence } = reach(options);
  try {
    await store.open(startMs);
    return await presence.accept();
  } finally {
    await store.close();
  }
}

function reach({ driver, secret, log, now }: Omit<StoreStateOptions, 'baseUrl'>) {
  const seal = createSeal({ secret, warn: log.warn });
  const store = new GuardedStore(driver, log, now);
  const documents = new Documents({
    ...{ store, seal },
    elapsed: () => performance.now(),
    wait: (ms) => wait(ms, undefined, { ref: false }),
  });
  // The store is the same for every service.
  const presence = new Presence(documents, `ad-library:2:{${seal.name('replicas')}}:replicas`, log);
  return { seal, store, documents, presence };
}

type Removals = ReturnType<typeof removalsIn>;

function removalsIn(documents: Documents, keyOf: Shared['keyOf']) {
  const keyOfGroup = (tenantId: string, group: string) => keyOf(tenantId, 'removed', group);
  /** Removals that the store does not know of yet. */
  const pending = new Map<string, number>();
  return {
    stampOf: async (tenantId: string, group: string | undefined): Promise<string> => {
      if (group === undefined) return '';
      const key = keyOfGroup(tenantId, group);
      if (pending.has(key)) throw stateUnavailable();
      return (await documents.read(key)).version;
    },
    add: async (retries: Retries, tenantId: string, group: string) => {
      const key = keyOfGroup(tenantId, group);
      const done = () => {
        const left = (pending.get(key) ?? 1) - 1;
        if (left === 0) pending.delete(key);
        else pending.set(key, left);
      };
      pending.set(key, (pending.get(key) ?? 0) + 1);
      await retries.do(() => documents.write(key, () => ({}), markTtlMs).then(done), { giveUp: done });
    },
  };
}

function sharedState(shared: Shared, removals: Removals, options: MemoryStateOptions): State {
  const ownCursorsOf = memoryCursors(options.now);
  return {
    ledger: storeLedger({ ...shared, keyOf: (tenantId) => shared.keyOf(tenantId, 'account') }),
    claims: storeClaims(shared),
    answers: sharedAnswers(shared, removals, options),
    windows: sharedWindows(shared, options.now),
    cursorsOf: (tenantId) => sharedCursors(shared, tenantId, ownCursorsOf(tenantId)),
    rejectedKeys: sharedRejectedKeys(shared),
  };
}

interface WrittenCache {
  /** The removals that it has seen. */
  seen: string;
  answer: WrittenAnswer;
  at: number;
}

/**
 * The cached answers of all replicas. While the store is away, this process uses answers that it has seen there and
 * caches its own new answers, except for answers that a write at another replica may have made stale.
 */
function sharedAnswers(shared: Shared, removals: Removals, { ttl, now }: MemoryStateOptions): AnswerCache {
  const { documents, store, retries, keyOf, stampOf } = shared;
  const keyFor = (tenantId: string, { group = '', fingerprint }: AnswerName) =>
    keyOf(tenantId, 'answer', group, fingerprint);
  /** Answers that the store did not take. */
  const own = memoryAnswers({ maxBytes: maxOwnAnswers, ttl, now });
  const newer = async (tenantId: string, name: AnswerName, finding: Promise<CachedAnswer | undefined>) => {
    // Both are asked at once: what is no longer here was in the store before.
    const [kept, found] = await Promise.all([own.get(tenantId, name), finding]);
    if (kept === undefined || found === undefined) return kept ?? found;
    return (kept.answer.order ?? 0) > (found.answer.order ?? 0) ? kept : found;
  };
  /** The parsed values of answers that this process knows. */
  const opened = new WeakMap<WrittenCache, Answer>();
  const answerIn = (written: WrittenCache, { fingerprint }: AnswerName): Answer => {
    const [operation] = JSON.parse(fingerprint) as [OperationName];
    const answer = opened.get(written) ?? readAnswer(operation, written.answer);
    opened.set(written, answer);
    return answer;
  };
  const cachedIn = (written: WrittenCache, name: AnswerName, time: number): CachedAnswer | undefined => {
    const age = time - written.at;
    return age < ttl && age > -maxBackMs
      ? { answer: answerIn(written, name), at: now() - Math.max(0, age) }
      : undefined;
  };
  const look = async (tenantId: string, name: AnswerName) => {
    const [stamp, { doc, now: time }] = await Promise.all([
      stampOf(tenantId, name.group),
      documents.read<WrittenCache>(keyFor(tenantId, name)),
    ]);
    return { stamp, cached: doc?.seen === stamp ? cachedIn(doc, name, time) : undefined };
  };
  const seenBefore = (tenantId: string, name: AnswerName): CachedAnswer | undefined => {
    const known = documents.known<WrittenCache>(keyFor(tenantId, name));
    if (known?.doc === undefined || name.group !== undefined) return undefined;
    return cachedIn(known.doc, name, known.now + known.ageMs);
  };
  /**
   * Shares such an answer once the store takes it, unless the store has a newer one. Work that waits holds no answer: it
   * finds the answer among those that this process has room for.
   */
  const sharing = (tenantId: string, name: AnswerName) => async () => {
    const kept = await own.get(tenantId, name);
    if (kept === undefined || store.isTight()) return;
    const { order = 0 } = kept.answer;
    await documents.update<WrittenCache, void>(keyFor(tenantId, name), (doc, time) => {
      if (doc && (doc.answer.order ?? 0) >= order) return { result: undefined };
      const age = now() - kept.at;
      const next = { seen: '', answer: writeAnswer(kept.answer), at: time - age };
      return { next, ttlMs: ttl - age, result: undefined };
    });
    await own.remove(tenantId, name, kept.answer);
  };
  return {
    get: (tenantId, name) => {
      const found = look(tenantId, name).then(
        ({ cached }) => cached,
        () => seenBefore(tenantId, name),
      );
      return newer(tenantId, name, found);
    },
    begin: async (tenantId, name) => {
      const away = () => ({ cached: seenBefore(tenantId, name), stamp: name.group === undefined ? '' : undefined });
      const looking = look(tenantId, name).catch(away);
      const cached = await newer(
        tenantId,
        name,
        looking.then((found) => found.cached),
      );
      const { stamp } = await looking;
      return {
        cached,
        store: async (kept: CachedAnswer) => {
          if (stamp === undefined) return;
          const next = (at: number): WrittenCache => ({ seen: stamp, answer: writeAnswer(kept.answer), at });
          const { store: keep } = await own.begin(tenantId, name);
          try {
            if (store.isTight()) throw stateUnavailable();
            await documents.write(keyFor(tenantId, name), next, ttl);
            await own.remove(tenantId, name, kept.answer);
          } catch {
            // The store does not take it, has little room, or it is nested too deep.
            if (name.group !== undefined) return;
            await keep(kept);
            const bytes = memoryOf(kept.answer.raw);
            await retries.do(sharing(tenantId, name), {
              bytes: sharingBytes,
              size: bytes > largeAnswer ? bytes : smallBytes,
            });
          }
        },
      };
    },
    remove: async (tenantId, name, upTo) => {
      await own.remove(tenantId, name, upTo);
      const { order = Infinity } = upTo;
      const work = () =>
        documents.update<WrittenCache, void>(keyFor(tenantId, name), (doc) => {
          const isRemoved = doc && (doc.answer.order ?? 0) <= order;
          return { ...(isRemoved && { next: null }), result: undefined };
        });
      await retries.do(work);
    },
    invalidate: (tenantId, group) => removals.add(retries, tenantId, group),
  };
}

/** The full windows of all replicas. A window that cannot be read costs a refused call. */
function sharedWindows({ documents, keyOf }: Shared, clock: () => number): FullWindows {
  type Written = { window: FullWindow; at: number };
  return {
    get: async (tenantId) => {
      const read = documents.read<Written>(keyOf(tenantId, 'window'));
      const { doc, now } = await read.catch(() => ({ doc: undefined, now: 0 }));
      // JSON has no infinity: the service stated no limit. The age is by the clock of the store.
      return doc && { ...doc.window, left: doc.window.left ?? Infinity, checkedAt: clock() - (now - doc.at) };
    },
    set: (tenantId, window) =>
      documents.write(keyOf(tenantId, 'window'), (at) => (window ? { window, at } : null), day).catch(() => {}),
  };
}

/** Items of a collection by their ids, sealed. */
const sealedItems = ({ store, seal }: Shared, name: string) => ({
  close: (id: string, content: string | Buffer) => seal.close(`${name} ${id}`, content),
  async put(id: string, body: Buffer, limits: ItemLimits): Promise<void> {
    for (let seq = 0; (await store.putItems(name, [{ id, seq, body }], limits)).size > 0; )
      seq = (await store.items(name, [id])).get(id)?.seq ?? 0;
  },
  async get(id: string): Promise<Buffer | undefined> {
    const found = (await store.items(name, [id])).get(id);
    return found && seal.open(`${name} ${id}`, found.body);
  },
});

/** Each replica also remembers its own cursors: it need not read them, and has only these while the store is away. */
function sharedCursors(shared: Shared, tenantId: string, own: CursorMemory): CursorMemory {
  const { store, seal, retries, keyOf } = shared;
  const items = sealedItems(shared, keyOf(tenantId, 'cursors'));
  const idOf = (cursor: string) => seal.name('cursor', cursor);
  return {
    remember: async (cursor, state) => {
      await own.remember(cursor, state);
      const id = idOf(cursor);
      const body = items.close(id, JSON.stringify(state));
      if (body.length > cursorLimits.maxBytes / 2 || store.isTight()) return;
      await retries.do(() => items.put(id, body, cursorLimits), { bytes: body.length });
    },
    recall: async (cursor) => {
      const known = await own.recall(cursor);
      if (known !== undefined) return known;
      const text = await items.get(idOf(cursor));
      return text ? (JSON.parse(String(text)) as CursorState) : undefined;
    },
  };
}

/** While the store is away, the rejected keys that this process knows. */
function sharedRejectedKeys({ documents, store, retries, keyOf }: Shared): RejectedKeys {
  /** Rejections that the store does not know of yet. */
  const pending = new Set<string>();
  const keyOfTenant = (tenantId: string) => keyOf(tenantId, 'rejected');
  /** Nothing is stored for other keys, and anybody can invent them. */
  const hasSomething = async (tenantId: string): Promise<boolean> => {
    const own = recordKinds.map((kind) => ownKey(keyOf, tenantId, kind));
    const [{ doc: account }, dataset, ...rest] = await Promise.all([
      documents.read<Account>(keyOf(tenantId, 'account')),
      store.itemsSince(keyOf(tenantId, 'dataset'), Number.MAX_SAFE_INTEGER),
      ...[keyOf(tenantId, 'exports'), ...own].map((key) => documents.read(key)),
    ]);
    return (account?.paidAt ?? 0) > 0 || dataset !== undefined || rest.some(({ doc }) => doc !== undefined);
  };
  return {
    has: async (tenantId) =>
      pending.has(tenantId) ||
      documents.read(keyOfTenant(tenantId)).then(
        ({ doc }) => doc !== undefined,
        () => documents.known(keyOfTenant(tenantId))?.doc !== undefined,
      ),
    add: async (tenantId) => {
      pending.add(tenantId);
      const giveUp = () => void pending.delete(tenantId);
      const work = async () => {
        if (pending.has(tenantId) && (await hasSomething(tenantId)))
          await documents.write(keyOfTenant(tenantId), () => ({}), markTtlMs);
        giveUp();
      };
      await retries.do(work, { giveUp });
    },
    answered: (tenantId, isNamed) => {
      if (!isNamed) return;
      pending.delete(tenantId);
      documents
        .update<object, void>(keyOfTenant(tenantId), (doc) => ({ ...(doc && { next: null }), result: undefined }))
        .catch(() => {});
    },
  };
}

interface TriedKeys {
  add(address: string, more: 1 | -1): Promise<{ tried: number; msLeft: number }>;
}

function sharedKeys({ documents, keyOf, seal }: Shared) {
  /** For how long, and for how many keys, the store is not asked again whether they were accepted. */
  const recent = new LRUCache<string, true>({ ttl: 2000, max: 10_000 });
  const keyOfTenant = (tenantId: string) => keyOf(tenantId, 'accepted');
  return {
    /** The secret with which tenant ids are made. */
    tenantSecret: seal.name('tenant secret'),
    /** Keys that the service accepted lately. While the store is away, none counts as accepted. */
    keys: {
      has: async (tenantId: string) => {
        if (recent.has(tenantId)) return true;
        const isAccepted = await documents.read(keyOfTenant(tenantId)).then(
          ({ doc }) => doc !== undefined,
          () => false,
        );
        if (isAccepted) recent.set(tenantId, true);
        return isAccepted;
      },
      add: (tenantId: string) => {
        documents.write(keyOfTenant(tenantId), () => ({}), acceptedMs).catch(() => {});
      },
      remove: (tenantId: string) => {
        recent.delete(tenantId);
        documents.write(keyOfTenant(tenantId), () => null).catch(() => {});
      },
    },
    /** The connections that people signed in with a key, as sign-in stores them. */
    connections: {
      read: async <Doc>(tenantId: string) => (await documents.read<Doc>(keyOf(tenantId, 'connections'))).doc,
      update: <Doc, Result>(tenantId: string, change: (doc?: Doc) => { next?: Doc; result: Result }) =>
        documents.update<Doc, Result>(keyOf(tenantId, 'connections'), (doc) => ({ ...change(doc), ttlMs: markTtlMs })),
    },
    /** Unknown keys that addresses tried. While the store is away, each replica counts its own. */
    tried: (own: TriedKeys): TriedKeys => ({
      add: (address, more) => {
        type Tried = { tried: number; ends: number };
        return documents
          .update<Tried, { tried: number; msLeft: number }>(keyOf(`address ${address}`, 'tried'), (doc, now) => {
            const before = doc && doc.ends > now ? doc : { tried: 0, ends: now + triedMs };
            const next = { ...before, tried: Math.max(0, before.tried + more) };
            const msLeft = next.ends - now;
            return { next, ttlMs: msLeft, result: { tried: next.tried, msLeft } };
          })
          .catch(() => own.add(address, more));
      },
    }),
  };
}

interface WrittenFile extends Pick<ExportedFile, 'uri' | 'name' | 'mimeType' | 'bytes' | 'at'> {
  id: string;
  parts: number;
  ends: number;
}

/** Exported files, which every replica lists and reads, whichever replica made them. */
function sharedExports(shared: Shared, clock: () => number): ExportStore {
  const { store, documents, keyOf } = shared;
  const gone = () =>
    new AdLibraryError({ kind: 'not_found', problem: 'This file is no longer stored. Export it again.', sent: false });
  return {
    of: (tenantId) => {
      const list = keyOf(tenantId, 'exports');
      const items = sealedItems(shared, keyOf(tenantId, 'exported'));
      const partOf = (id: string, part: number) => `${id}:${part}`;
      const fileOf = ({ id, parts, ends: _, ...about }: WrittenFile): ExportedFile => ({
        ...about,
        content: async () => {
          const content: Buffer[] = [];
          for (let part = 0; part < parts; part++) {
            const opened = await items.get(partOf(id, part));
            if (opened === undefined) throw gone();
            content.push(inflateRawSync(opened, { maxOutputLength: exportPartBytes }));
          }
          return Buffer.concat(content);
        },
      });
      const files = async () => {
        const { doc = [], now } = await documents.read<WrittenFile[]>(list);
        return doc.filter(({ ends }) => ends > now);
      };
      return {
        maxBytes: maxExportBytes,
        create: async ({ name: fileName, mimeType, write }) => {
          const at = clock();
          const id = `${at.toString(36)}-${randomBytes(9).toString('base64url')}`;
          let [bytes, parts] = [0, 0];
          await write(async (some) => {
            for (let start = 0; start < some.length; start += exportPartBytes) {
              const partId = partOf(id, parts++);
              const body = items.close(partId, deflateRawSync(some.subarray(start, start + exportPartBytes)));
              await items.put(partId, body, roomIn(store, exportLimits));
            }
            bytes += some.length;
          });
          const uri = `ad-library://exports/${id}/${encodeURIComponent(fileName)}`;
          const about = { id, uri, name: fileName, mimeType, bytes, at, parts };
          return documents.update<WrittenFile[], ExportedFile>(list, (doc = [], now) => {
            const made = { ...about, ends: now + exportTtl };
            const next = [made, ...doc.filter(({ ends }) => ends > now)].slice(0, maxExports);
            return { next, ttlMs: exportTtl, result: fileOf(made) };
          });
        },
        list: async () => (await files()).map(fileOf),
        find: async (uri) => (await files()).filter((file) => file.uri === uri).map(fileOf)[0],
      };
    },
  };
}
