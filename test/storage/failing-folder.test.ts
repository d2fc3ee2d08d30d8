import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, vi } from 'vitest';
import { acquireLock } from '../../src/lock.ts';
import { serveAds } from '../support/ad-service.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { createFolderSequence } from '../support/temporary-folder.ts';

const test = freshUpstreamTest();
const newFolder = createFolderSequence();
const question = { filters: { query: 'tea' }, maxCredits: 100 };
const countAds = { sql: 'SELECT count(*) FROM ads' };

function accountFile(files: string): string {
  const folder = join(files, 'accounts');
  return join(folder, readdirSync(folder).find((name) => name.endsWith('.log')) ?? '');
}

/** Replaces a file with a folder, so that reads and writes fail. Returns a function that restores the file. */
function breakFile(file: string): () => void {
  renameSync(file, `${file}.away`);
  mkdirSync(file);
  return () => {
    rmSync(file, { recursive: true });
    renameSync(`${file}.away`, file);
  };
}

test.for([1, 2, 3])(
  'gather_ads reports the credits charged so far if the data folder fails during page %i',
  async (failingPage, { upstream, start }) => {
    const service = serveAds(upstream, 250);
    const files = newFolder();
    const server = await start({ files });
    await server.call('search_ads', { limit: 1 });
    const before = service.chargedCredits;
    let restore = () => {};
    let pages = 0;
    service.overrideResponse = () => {
      if (++pages === failingPage) restore = breakFile(accountFile(files));
      return undefined;
    };
    const { error, text } = await server.call('gather_ads', question);
    const charged = service.chargedCredits - before;
    expect(charged).toBeGreaterThan(0);
    expect(error).toMatchObject({ kind: 'unavailable', retryable: true });
    expect(text).toMatch(/^This server could not use its stored data\./);
    expect(text).not.toContain('Nothing was');
    expect(text).toContain(`Credits: ${charged} charged for ${failingPage} call`);

    restore();
    service.overrideResponse = () => undefined;
    expect((await server.call('gather_ads', question)).data).toMatchObject({ read: 250, complete: true });
    expect(service.chargedCredits - before).toBe(25);
  },
);

test('if the data folder cannot be read, a paid call is not sent, and the error says that nothing was sent', async ({
  upstream,
  start,
}) => {
  const service = serveAds(upstream, 20);
  const files = newFolder();
  const server = await start({ files });
  await server.call('search_ads', { limit: 1 });
  const { chargedCredits } = service;
  const restore = breakFile(accountFile(files));
  for (const [tool, args] of [['query_ads', countAds] as const, ['gather_ads', question] as const]) {
    const { error, text } = await server.call(tool, args);
    expect(error, tool).toMatchObject({ kind: 'unavailable' });
    expect(text).toContain('Nothing was sent, nothing was charged.');
  }
  expect(service.chargedCredits).toBe(chargedCredits);
  restore();
});

test('the error of a call that waits too long for a file lock names the process that has the lock', async ({
  upstream,
  start,
}) => {
  serveAds(upstream, 20);
  const files = newFolder();
  const server = await start({ files });
  await server.call('search_ads', { limit: 1 });
  const file = accountFile(files);
  const lock = await acquireLock(`${file}.lock`);
  const gathered = await server.call('gather_ads', question);
  lock.release();
  expect(gathered.error).toMatchObject({ kind: 'busy', retryable: true });
  expect(gathered.text).toMatch(/^Another process of this server is using the folder\./);
  expect(gathered.text).toContain(`${file}.lock is held by process ${process.pid}`);
  expect(gathered.text).not.toContain('too many');
  expect(gathered.text).toMatch(/Credits: \d+ charged/);
});

describe('Ads that no longer fit on the disk', () => {
  /** The size of the largest write that succeeds. It fits the progress of a gathering, but not a page of ads. */
  const maxWriteBytes = 10_000;
  let endFailures = () => {};
  test.afterEach(() => endFailures());

  /** Returns a function that makes all large writes to files fail as on a full disk, until `endFailures` is called. */
  async function prepareFullDisk() {
    const file = await open(import.meta.filename);
    const fileHandlePrototype = Object.getPrototypeOf(file) as typeof file;
    await file.close();
    const { appendFile } = fileHandlePrototype;
    return () => {
      const spy = vi.spyOn(fileHandlePrototype, 'appendFile').mockImplementation(function (this: typeof file, data) {
        if (data.length <= maxWriteBytes) return appendFile.call(this, data);
        return Promise.reject(Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' }));
      });
      endFailures = () => spy.mockRestore();
    };
  }

  /** Serves 250 ads for 25 credits, and fills the disk when the server requests the page at `failingPage`. */
  async function serveUntilDiskIsFull(upstream: Parameters<typeof serveAds>[0], failingPage: number) {
    const service = serveAds(upstream, 250);
    const fillDisk = await prepareFullDisk();
    service.overrideResponse = ({ sequenceNumber }) => {
      // The first search of each test is not part of a gathering.
      if (sequenceNumber === failingPage + 1) fillDisk();
      return undefined;
    };
    return service;
  }

  test.for([
    ['without split', question],
    ['with split', { ...question, split: [{ active: true }] }],
  ] as const)(
    'gather_ads %s pays for no further page if the disk is full, and a later call reads only the remaining pages',
    async ([, splitQuestion], { upstream, start }) => {
      const service = await serveUntilDiskIsFull(upstream, 2);
      // Without the cache, a page that is requested twice is also paid for twice.
      const server = await start({ files: newFolder(), cacheSeconds: 0 });
      await server.call('search_ads', { limit: 1 });
      const { data, text } = await server.call('gather_ads', splitQuestion);
      expect(data).toMatchObject({ complete: false, stopped: 'error', error: 'unavailable', receipt: { charged: 20 } });
      expect(text).toContain('cannot be written: the disk is full.');
      expect(text).toContain('100 of them were removed to make room, or could not be stored.');
      expect(service.searches).toHaveLength(3);

      endFailures();
      const continued = await server.call('gather_ads', splitQuestion);
      expect(continued.data).toMatchObject({ read: 250, complete: true, receipt: { charged: 5 } });
      expect(await server.queryRows('SELECT count(*) FROM ads')).toEqual([[250]]);
    },
  );

  test('gather_ads is complete if only the ads of the last page could not be stored', async ({ upstream, start }) => {
    await serveUntilDiskIsFull(upstream, 3);
    const server = await start({ files: newFolder(), cacheSeconds: 0 });
    await server.call('search_ads', { limit: 1 });
    const { data, text } = await server.call('gather_ads', question);
    expect(data).toMatchObject({ read: 250, missing: 50, stopped: 'end', receipt: { charged: 25 } });
    expect(text).toContain('50 of them were removed to make room, or could not be stored.');
    endFailures();
    const repeated = await server.call('gather_ads', question);
    expect(repeated.data).toMatchObject({ read: 250, complete: true, receipt: { charged: 0 } });
  });

  test('check_watches checks no further watch after the ads of a watch could not be stored', async ({
    upstream,
    start,
  }) => {
    const service = await serveUntilDiskIsFull(upstream, 2);
    const server = await start({ files: newFolder() });
    await server.call('search_ads', { limit: 1 });
    for (const query of ['tea', 'coffee'])
      await server.call('watch_ads', { name: query, filters: { query }, maxCredits: 100 });
    const { data, text } = await server.call('check_watches', { maxCredits: 100 });
    expect(data).toMatchObject({ stopped: 'error', watches: [{ stopped: 'error' }, { read: 0 }] });
    expect(text).toContain('the disk is full.');
    expect(service.searches).toHaveLength(3);
  });
});
