import { mkdirSync } from 'node:fs';
import {
  appendFile,
  copyFile,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { acquireLock } from '../../src/lock.ts';
import type { Dataset, DatasetStore } from '../../src/storage/dataset.ts';
import { type FolderOptions, openFolderState } from '../../src/storage/folder.ts';
import type { NamedLocks } from '../../src/storage/named-locks.ts';
import { createFolderSequence } from '../support/temporary-folder.ts';
import { addAds, createLastStep } from './add-items.ts';
import { claimCall, createCall } from './answers-suite.ts';
import { chargedSettlement, getLease, requestCredits } from './charges.ts';
import { testCursors } from './cursors-suite.ts';
import { testDatasets } from './dataset-suite.ts';
import { testUserRecords } from './user-records-suite.ts';

const newFolder = createFolderSequence();

const cachedAnswer = {
  validatedBody: { id: '1' },
  rawBody: { id: '1' },
  receipt: { charged: 1, remaining: 9, cached: false, requestId: 'r' },
};

/** Opens a data folder as a separate process would. The first letter of an API key is the name of its account. */
function openIn(folder: string, options: Partial<FolderOptions> = {}) {
  const state = openFolderState({
    ...{ folder, baseUrl: 'https://api.example.com', apiKey: 'a', ttlMs: 0, now: Date.now, monotonicNow: Date.now },
    fetchUserId: async ({ apiKey }) => apiKey.slice(0, 1),
    warn: () => {},
    ...options,
  });
  const dataset = (apiKey = 'a'): Promise<Dataset> => state.datasets.open({ tenantId: apiKey, apiKey });
  return { ...state, dataset };
}

const readIds = async (dataset: Dataset) => (await dataset.readContents()).ads.map(({ id }) => id).sort();
const readIdsInNewProcess = async (folder: string) => readIds(await openIn(folder).dataset());

async function findFile(folder: string, kind = 'accounts'): Promise<string> {
  const [name = ''] = (await readdir(join(folder, kind))).filter((fileName) => fileName.endsWith('.log'));
  return join(folder, kind, name);
}

/** Opens a data folder as if each API key had its own process. */
function openForEach(folder: string): DatasetStore {
  const processes = new Map<string, DatasetStore>();
  return {
    open: (caller) => {
      const { datasets } = openIn(folder, { fetchUserId: async ({ tenantId }) => tenantId });
      processes.set(caller.tenantId, processes.get(caller.tenantId) ?? datasets);
      return (processes.get(caller.tenantId) ?? datasets).open(caller);
    },
    close: async () => {},
  };
}

testDatasets('in a folder', async () => openForEach(newFolder()));
testCursors('in a folder', async () => openIn(newFolder()).openCursors);
testUserRecords('in a folder', async () => {
  const folder = newFolder();
  return [openForEach(folder), openForEach(folder)];
});
test('a new API key finds the stored ads of its account after a restart of the server', async () => {
  const folder = newFolder();
  const first = await openIn(folder).dataset('a-old');
  await addAds(first, 1, { id: 'x', headline: 'one' });
  await addAds(first, 2, { id: 'x', headline: 'two' }, { id: 'y' });
  await first.saveGathering(createLastStep(['x', 'y']));
  const datasetOfNewKey = await openIn(folder).dataset('a-new');
  expect(await datasetOfNewKey.readContents()).toMatchObject({
    ads: (await first.readContents()).ads,
    gatherings: [{ isComplete: true, evictedCount: 0 }],
  });
  expect(await readIds(await openIn(folder).dataset('b'))).toEqual([]);
  expect(await readIds(await openIn(folder, { baseUrl: 'https://other.example' }).dataset('a-new'))).toEqual([]);
});

test('other users of the computer cannot read files in the data folder, and no file contains the API key', async () => {
  const folder = newFolder();
  const { dataset, openCursors } = openIn(folder, { apiKey: 'a-secret-key' });
  await addAds(await dataset('a-secret-key'), 1, { id: 'x' });
  await (await dataset('a-secret-key')).userRecords.update('label', () => ({ put: [['x', 1]], result: undefined }));
  await openCursors('own').save('@1', { searchParams: {} });
  const names = await readdir(folder, { recursive: true });
  expect(names).toHaveLength(4);
  for (const name of ['', ...names]) {
    expect((await stat(join(folder, name))).mode & 0o077, name).toBe(0);
    expect(name).not.toContain('secret');
  }
  for (const kind of ['accounts', 'keys'])
    expect(await readFile(await findFile(folder, kind), 'utf8')).not.toContain('secret');
  const laterDataset = await openIn(folder, { now: () => Date.now() + 1000 * 86_400_000 }).dataset();
  expect([await readIds(laterDataset), (await laterDataset.userRecords.read('label')).size]).toEqual([['x'], 1]);
});

test('closing a data folder first finishes the release of named locks, so that no lock file stays behind', async () => {
  const folder = newFolder();
  const { locks, datasets, dataset } = openIn(folder);
  await dataset();
  const release = await locks.acquire('a question', new AbortController().signal);
  release();
  await datasets.close();
  expect((await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.lock'))).toEqual([]);
  const releaseAgain = await openIn(folder).locks.acquire('a question', AbortSignal.timeout(50));
  releaseAgain();
});

test('only one call can hold a named lock at a time, even if the calls run in different processes', async () => {
  const folder = newFolder();
  const locks = [1, 2, 3].map(() => openIn(folder).locks);
  let [running, max] = [0, 0];
  const holdLock = async (namedLocks: NamedLocks) => {
    const end = await namedLocks.acquire('a question', new AbortController().signal);
    max = Math.max(max, ++running);
    await new Promise((resolve) => setTimeout(resolve, 1));
    running--;
    end();
  };
  await Promise.all([...locks, ...locks].map(holdLock));
  expect(max).toBe(1);
});

describe('Writes to the data folder that fail temporarily', () => {
  const neverAborted = new AbortController().signal;
  const list = { fingerprint: '["getAd",{"id":"1"}]', group: 'a collection' };
  const request = { onProcessDied: async () => {} };

  /** Holds the file's lock, so that each write fails after five seconds. Reads succeed. */
  async function holdLock(file: string) {
    const lock = await acquireLock(`${file}.lock`);
    return async () => lock.release();
  }

  /** Replaces the file with a folder, so that each read and write fails immediately. */
  async function replaceByFolder(file: string) {
    await rename(file, `${file}.away`);
    await mkdir(file);
    return async () => {
      await rm(file, { recursive: true });
      await rename(`${file}.away`, file);
    };
  }

  /**
   * Opens a process with three pending writes that `block` delays: a released lock, a released claim and a changed
   * list.
   */
  async function withWaitingWrites(block: (file: string) => Promise<() => Promise<void>>) {
    const folder = newFolder();
    const { responseCache, locks, openCursors } = openIn(folder, { ttlMs: 60_000 });
    const releaseLock = await locks.acquire('a question', neverAborted);
    const claim = await claimCall(responseCache, 'an ad');
    const put = await claimCall(responseCache, await responseCache.resolveName('t', list));
    await put.cacheResponse({ response: cachedAnswer, arrivedAt: Date.now() });
    const unblock = await block(await findFile(folder, 'keys'));
    releaseLock();
    await Promise.all([claim.endClaim(), responseCache.forgetGroup('t', list.group)]);
    return { folder, responseCache, locks, openCursors, unblock };
  }

  /** Verifies that another process gets the lock and the claim within `ms` milliseconds, and that the list is gone. */
  async function verifyFreed(folder: string, ms: number) {
    const otherProcess = openIn(folder, { ttlMs: 60_000 });
    const signal = AbortSignal.timeout(ms);
    (await otherProcess.locks.acquire('a question', signal))();
    expect(await otherProcess.responseCache.claim(createCall('t', signal), 'an ad', request)).toMatchObject({
      kind: 'granted',
    });
    const name = await otherProcess.responseCache.resolveName('t', list);
    expect(await otherProcess.responseCache.get('t', name ?? '')).toBeUndefined();
  }

  test('a changed list is not served from the cache even if removing the list from the cache files is delayed', async () => {
    const { responseCache, unblock } = await withWaitingWrites(holdLock);
    expect(await responseCache.resolveName('t', list)).toBeUndefined();
    expect(await responseCache.claim(createCall(), 'an ad', request)).toMatchObject({ kind: 'granted' });
    await unblock();
  });

  test.each([
    ['looks for a cached list', ({ responseCache }) => responseCache.resolveName('t', list)],
    ['takes another lock', async ({ locks }) => (await locks.acquire('another question', neverAborted))()],
    ['loads a cursor', ({ openCursors }) => openCursors('t').load('@1')],
  ] as [string, (process: Awaited<ReturnType<typeof withWaitingWrites>>) => Promise<unknown>][])(
    'delayed writes of a process become visible to other processes as soon as the process %s',
    async (_, changeProcess) => {
      const process = await withWaitingWrites(replaceByFolder);
      await process.unblock();
      await changeProcess(process);
      await verifyFreed(process.folder, 1500);
    },
  );

  test.each([
    ['whose lock was held', holdLock],
    ['that was replaced by a folder', replaceByFolder],
  ] as const)(
    'delayed writes to a file %s become visible to other processes as soon as the file is writable again',
    async (_, block) => {
      const { folder, unblock } = await withWaitingWrites(block);
      await unblock();
      await verifyFreed(folder, 30_000);
    },
  );
});

describe('The data file of an account', () => {
  /** Creates a folder whose account file has three ads, one on each line. */
  async function createFolderWithThreeAds() {
    const folder = newFolder();
    const process = openIn(folder);
    for (const id of ['a', 'b', 'c']) await addAds(await process.dataset(), 1, { id, body: 'x'.repeat(100) });
    return { folder, process, file: await findFile(folder) };
  }
  const unavailableWith = (text: string | RegExp) => ({
    failure: { kind: 'unavailable', problem: expect.stringMatching(text) },
  });

  test("an incomplete last line of an account's data file is ignored, and the next write replaces the line", async () => {
    for (const cut of [1, 5, 100]) {
      const { folder, file, process } = await createFolderWithThreeAds();
      await truncate(file, (await stat(file)).size - cut);
      expect(await readIdsInNewProcess(folder)).toEqual(['a', 'b']);
      await addAds(await openIn(folder).dataset(), 2, { id: 'd' });
      for (const openProcess of [process, openIn(folder)])
        expect(await readIds(await openProcess.dataset())).toEqual(['a', 'b', 'd']);
    }
  });

  test("an account's data file with a damaged line is rejected with an error and left unchanged", async () => {
    const { folder, file } = await createFolderWithThreeAds();
    const lines = (await readFile(file, 'latin1')).split('\n');
    const damaged = lines.map((line, at) =>
      at === 2 ? line.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')) : line,
    );
    await writeFile(file, damaged.join('\n'), 'latin1');
    const { dataset, datasets } = openIn(folder);
    const open = await dataset();
    await expect(open.readContents()).rejects.toMatchObject(
      unavailableWith(`${file} cannot be read: line 3 is damaged. Remove that line`),
    );
    await expect(addAds(open, 2, { id: 'd' })).rejects.toMatchObject(
      unavailableWith('cannot be written: line 3 is damaged'),
    );
    expect(await readFile(file, 'latin1')).toBe(damaged.join('\n'));
    await writeFile(file, damaged.toSpliced(2, 1).join('\n'), 'latin1');
    // The ad that was added meanwhile waited in memory and is stored now.
    expect(await readIds(await dataset())).toEqual(['a', 'c', 'd']);
    await datasets.close();
  });

  test("all processes reload an account's data file after the file was replaced or deleted", async () => {
    const { folder, file, process } = await createFolderWithThreeAds();
    const copy = join(folder, 'copy');
    await copyFile(file, copy);
    for (const id of ['d', 'e']) await addAds(await process.dataset(), 2, { id });
    await copyFile(copy, file);
    await addAds(await openIn(folder).dataset(), 3, { id: 'y'.repeat(250), body: 'y'.repeat(10_000) });
    expect(await readIds(await process.dataset())).toHaveLength(4);
    await rm(folder, { recursive: true });
    expect(await readIds(await process.dataset())).toEqual([]);
    await addAds(await process.dataset(), 2, { id: 'z' });
    expect(await readIdsInNewProcess(folder)).toEqual(['z']);
  });

  test("an account's data file is rewritten in a shorter form when most of its lines are outdated", async () => {
    const { folder, file, process } = await createFolderWithThreeAds();
    const beside = openIn(folder);
    const put = (value: number) => ({ put: [['x', 'y'.repeat(50_000) + value]] as const, result: undefined });
    let largest = 0;
    for (let at = 1; at <= 60; at++) {
      await (await (at % 2 ? process : beside).dataset()).userRecords.update('label', () => put(at));
      largest = Math.max(largest, (await stat(file)).size);
    }
    expect(largest).toBeGreaterThan(1_000_000);
    expect(largest).toBeLessThan(1_500_000);
    for (const { dataset } of [process, beside, openIn(folder)]) {
      expect(await readIds(await dataset())).toEqual(['a', 'b', 'c']);
      expect((await (await dataset()).userRecords.read('label')).get('x')).toMatch(/60$/);
    }
  });

  test.each([
    [
      'a file of another version',
      (file: string) => writeFile(file, '{"format":2,"id":"x","baseUrl":""}\n'),
      'another version',
    ],
    ['a symbolic link', (file: string) => symlink('/dev/zero', file), 'a link is in the way'],
    ['a folder', (file: string) => mkdir(file), 'cannot be'],
    ['a file with an endless line', (file: string) => writeFile(file, 'x'.repeat(80_000_000)), 'damaged'],
  ])(
    "the server rejects an account's data file that was replaced by %s and leaves it unchanged",
    async (_, make, text) => {
      const { folder, file } = await createFolderWithThreeAds();
      await rm(file);
      await make(file);
      const { dataset } = openIn(folder);
      await expect((await dataset()).readContents()).rejects.toMatchObject(unavailableWith(text));
      await expect(addAds(await dataset(), 2, { id: 'y' })).rejects.toMatchObject(unavailableWith(text));
      await rm(file, { recursive: true });
      expect(await readIds(await dataset())).toEqual(['y']);
      expect(await readIdsInNewProcess(folder)).toEqual(['y']);
    },
  );
});

describe('The daily ledger in the data folder', () => {
  const noon = Date.parse('2026-11-22T12:00:00Z');
  const hour = 3_600_000;
  const requestWholeBudget = requestCredits({ credits: 10 });

  /**
   * Creates a data folder and a clock at noon. `open` opens the ledger as a separate process with the same clock would.
   */
  function createDay(folder = newFolder()) {
    const clock = { now: noon };
    const warnings: string[] = [];
    const open = (apiKey = 'key') =>
      openIn(folder, { apiKey, now: () => clock.now, warn: (message) => warnings.push(message) }).dailyLedger();
    return { clock, open, folder, warnings };
  }

  test("each day has its own credit budget, even if the computer's clock is set back", async () => {
    const { clock, open } = createDay();
    const spend = async (hours: number) => {
      clock.now = noon + hours * hour;
      const admission = await open().reserve('t', requestWholeBudget);
      if (admission.kind === 'granted') await open().settle('t', chargedSettlement(10), admission.lease);
      return admission.kind;
    };
    for (const hours of [0, 12.1, 36.1]) {
      expect(await spend(hours)).toBe('granted');
      for (const earlier of [hours - 13, hours]) expect(await spend(earlier)).toBe('refused');
    }
    expect(await open().read('t')).toMatchObject({ day: '2026-11-24', spentCredits: 10 });
  });

  test('a spending record with a date far in the future causes an error that names the file of the record', async () => {
    const { clock, open, folder } = createDay();
    clock.now = noon + 400 * 24 * hour;
    await open().settle('t', chargedSettlement(4));
    clock.now = noon;
    const file = await findFile(folder, 'keys');
    const problem = expect.stringMatching(`${file}.* 2027-12-27.* 2026-11-22.*delete that file`);
    await expect(open().reserve('t', requestWholeBudget)).rejects.toMatchObject({
      failure: { kind: 'unavailable', problem },
    });
    await rm(file);
    expect((await open().reserve('t', requestWholeBudget)).kind).toBe('granted');
  });

  test('a paid call that runs past midnight counts toward the budget of the day on which it ends', async () => {
    const { clock, open } = createDay();
    const lease = getLease(await open().reserve('t', requestWholeBudget));
    clock.now = noon + 12 * hour + 1;
    const ledger = open();
    // After twelve hours, the ledger treats the reservation of the call as abandoned, but the call can still settle it.
    expect((await ledger.reserve('t', requestWholeBudget)).kind).toBe('refused');
    await open().settle('t', chargedSettlement(4), lease);
    expect(await ledger.read('t')).toMatchObject({ spentCredits: 4, uncertainCredits: 0, reservedCredits: 0 });
  });

  test('paid calls are rejected while the file with the spending of the API key is unreadable', async () => {
    const { open, folder, warnings } = createDay();
    await open().settle('t', chargedSettlement(4));
    await appendFile(await findFile(folder, 'keys'), 'damaged\n');
    const otherFolder = newFolder();
    mkdirSync(otherFolder);
    await writeFile(join(otherFolder, 'keys'), '');
    for (const ledger of [open(), createDay(otherFolder).open()])
      await expect(ledger.reserve('t', requestWholeBudget)).rejects.toMatchObject({ failure: { kind: 'unavailable' } });
    await open().settle('t', chargedSettlement(1));
    expect(warnings).toEqual(['the cost of a call could not be recorded']);
  });
});
