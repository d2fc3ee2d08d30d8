import { existsSync } from 'node:fs';
import { appendFile, mkdir, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Dataset } from '../../../src/state/dataset.ts';
import { FileDatasets, type FileDatasetsOptions } from '../../../src/state/files/file-datasets.ts';
import { objectOf } from '../../../src/state/item-versions.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { add } from '../add-items.ts';
import { datasetSuite } from '../dataset-suite.ts';
import { ownRecordsSuite } from '../own-records-suite.ts';
import { baseUrl, mergedLine, olderAd, olderFolder, olderGathering, writeOlder } from './older-folder.ts';

const root = temporaryFolder();
let folders = 0;
const newFolder = () => join(root, `${++folders}`);

/** A process that keeps its datasets in a folder. */
function openIn(folder: string, options: Partial<FileDatasetsOptions> = {}) {
  const warnings: string[] = [];
  const datasets = new FileDatasets({
    folder,
    baseUrl,
    now: Date.now,
    elapsed: options.now ?? Date.now,
    userIdOf: async ({ apiKey }) => apiKey.slice(0, 1),
    warn: (message, fields) => warnings.push(`${message} ${JSON.stringify(fields)}`),
    ...options,
  });
  const dataset = (apiKey = 'a'): Promise<Dataset> => datasets.of({ tenantId: apiKey, apiKey });
  return { datasets, dataset, warnings };
}

const idsIn = async (dataset: Dataset) => (await dataset.contents()).ads.map(({ id }) => id).sort();
const idsNow = async (folder: string) => idsIn(await openIn(folder).dataset());

async function fileIn(folder: string): Promise<string> {
  const [name = ''] = (await readdir(join(folder, 'accounts'))).filter((one) => one.endsWith('.jsonl'));
  return join(folder, 'accounts', name);
}

datasetSuite('in files', async () => openIn(newFolder()).datasets);
ownRecordsSuite('in files', async () => {
  const folder = newFolder();
  return [openIn(folder).datasets, openIn(folder).datasets];
});

test('survives the process, for another key of the same account, and for no other', async () => {
  const folder = newFolder();
  const first = await openIn(folder).dataset('a-old');
  await add(first, 1, { id: 'x', headline: 'one' });
  await add(first, 2, { id: 'x', headline: 'two' }, { id: 'y' });
  await first.saveGathering(JSON.parse(olderGathering('g', ['x', 'y'])));
  const again = await openIn(folder).dataset('a-new');
  expect(await again.contents()).toMatchObject({
    ads: (await first.contents()).ads,
    gatherings: [{ complete: true, missing: 0 }],
  });
  expect(await idsIn(await openIn(folder).dataset('b'))).toEqual([]);
  expect(await idsIn(await openIn(folder, { baseUrl: 'https://other.example' }).dataset('a-new'))).toEqual([]);
});

test('is one file for its owner alone, and the key is nowhere in it', async () => {
  const folder = newFolder();
  await add(await openIn(folder).dataset('a-secret-key'), 1, { id: 'x' });
  const names = await readdir(folder, { recursive: true });
  expect(names).toHaveLength(2);
  for (const name of ['', ...names]) {
    expect((await stat(join(folder, name))).mode & 0o077, name).toBe(0);
    expect(name).not.toContain('secret');
  }
  expect(await readFile(await fileIn(folder), 'utf8')).not.toContain('secret');
});

test('of several processes at once loses nothing, doubles nothing, and each sees the same in the same order', async () => {
  const folder = newFolder();
  const processes = Array.from({ length: 4 }, () => openIn(folder));
  await Promise.all(
    processes.map(async ({ dataset }, own) => {
      for (let at = 0; at < 25; at++) {
        const one = await dataset();
        await one.addItems({
          ...{ type: 'ads', listedBy: 'searchAds', requestId: null, at: 1, order: await one.order() },
          items: () => [{ id: `${own}-${at}` }, { id: 'all', text: `${own}-${at}` }],
        });
      }
    }),
  );
  const seen = [];
  for (const { dataset, warnings } of [...processes, openIn(folder)]) {
    expect(await idsIn(await dataset())).toHaveLength(101);
    const all = await (await dataset()).item('ads', 'all');
    seen.push([...(all?.versions ?? []), ...(all ? [all] : [])].map((one) => objectOf(one).text));
    expect(warnings).toEqual([]);
  }
  for (const texts of seen) expect(texts).toEqual(seen[0]);
  expect((await readFile(await fileIn(folder), 'utf8')).split('\n')).toHaveLength(2 + 200);
});

test('is kept in memory while the service does not say whose key it is, and in files from then on', async () => {
  const folder = newFolder();
  let clock = Date.now();
  let asked = 0;
  let userId: string | undefined;
  const userIdOf = async () => {
    asked++;
    return userId;
  };
  const { dataset, warnings } = openIn(folder, { now: () => clock, userIdOf });
  await add(await dataset(), 1, { id: 'x' });
  await add(await dataset(), 2, { id: 'y' });
  const { own } = await dataset();
  await own.update('label', () => ({ put: [['x', 1]], result: undefined }));
  expect(own.isLasting).toBe(false);
  expect(asked).toBe(1);
  expect(warnings).toHaveLength(1);
  userId = 'u';
  clock += 30_000;
  expect(await idsIn(await dataset())).toEqual(['x', 'y']);
  const again = await openIn(folder, { userIdOf }).dataset();
  expect(await idsIn(again)).toEqual(['x', 'y']);
  expect([again.own.isLasting, ...(await again.own.read('label'))]).toEqual([true, ['x', 1]]);
});

describe('the file', () => {
  test('with a line that was cut off is appended to, and loses that line alone', async () => {
    for (const cut of [1, 5, 100]) {
      const folder = newFolder();
      const here = openIn(folder);
      for (const id of ['a', 'b', 'c']) await add(await here.dataset(), 1, { id, body: 'x'.repeat(100) });
      const file = await fileIn(folder);
      await truncate(file, (await stat(file)).size - cut);
      const { dataset, warnings } = openIn(folder);
      await add(await dataset(), 2, { id: 'd' });
      const expected = cut === 1 ? ['a', 'b', 'c', 'd'] : ['a', 'b', 'd'];
      expect(await idsIn(await dataset())).toEqual(expected);
      expect(await idsNow(folder)).toEqual(expected);
      expect(warnings).toEqual([]);
      // Who has read it before starts anew where it has become shorter than that.
      expect(await idsIn(await here.dataset())).toEqual(expect.arrayContaining(expected));
    }
  });

  test('with damaged lines is read around them, which stay where they are, and it is said once', async () => {
    const folder = newFolder();
    await add(await openIn(folder).dataset(), 1, { id: 'x' });
    await appendFile(await fileIn(folder), Buffer.from([0, 255, 10, 123, 10, 200, 10]));
    const { dataset, warnings } = openIn(folder);
    await add(await dataset(), 2, { id: 'y' });
    expect(await idsIn(await dataset())).toEqual(['x', 'y']);
    expect(warnings).toHaveLength(1);
    expect((await readFile(await fileIn(folder))).includes(Buffer.from([0, 255, 10, 123, 10, 200, 10]))).toBe(true);
  });

  test('is written anew when most of its lines are superseded, with records of other kinds and what is damaged', async () => {
    const folder = newFolder();
    const [here, beside] = [openIn(folder), openIn(folder)];
    await add(await here.dataset(), 0, { id: 'first' });
    await beside.dataset();
    const others = Buffer.concat([
      Buffer.from(`${JSON.stringify({ kind: 'other', name: 'ä' })}\n`),
      Buffer.from([0, 255, 10]),
    ]);
    await appendFile(await fileIn(folder), others);
    const body = 'x'.repeat(100_000);
    let largest = 0;
    for (let at = 1; at <= 60; at++) {
      if (at === 55) await appendFile(await fileIn(folder), others);
      await add(await (at % 2 ? here : beside).dataset(), at, { id: 'large', body });
      largest = Math.max(largest, (await stat(await fileIn(folder))).size);
    }
    expect(largest).toBeLessThan(2_000_000);
    expect((await readFile(await fileIn(folder), 'latin1')).split(others.toString('latin1'))).toHaveLength(3);
    for (const { dataset, warnings } of [here, beside, openIn(folder)]) {
      expect(await idsIn(await dataset())).toEqual(['first', 'large']);
      expect(await (await dataset()).item('ads', 'large')).toMatchObject({ since: 1, at: 60, versions: [] });
      expect(warnings).toEqual([expect.stringContaining('damaged')]);
    }
  });

  test('of another version, a link or a folder is left as it is, and nothing is lost to this process', async () => {
    const odd: ((file: string) => Promise<unknown>)[] = [
      (file) => writeFile(file, `${JSON.stringify({ kind: 'account', format: 2, id: 'x', baseUrl })}\n`),
      (file) => symlink('/dev/zero', file),
      (file) => mkdir(file),
    ];
    for (const make of odd) {
      const folder = newFolder();
      await add(await openIn(folder).dataset(), 1, { id: 'x' });
      const file = await fileIn(folder);
      await rm(file);
      await make(file);
      const { dataset, warnings } = openIn(folder);
      await add(await dataset(), 2, { id: 'y' });
      expect(await idsIn(await dataset())).toEqual(['y']);
      expect(warnings.join()).toContain('could not be kept in files');
      await rm(file, { recursive: true });
      expect(await idsIn(await dataset())).toEqual(['y']);
      expect(await idsNow(folder)).toEqual(['y']);
    }
  });

  test('that was removed is made anew, with what was added since', async () => {
    const folder = newFolder();
    const { dataset } = openIn(folder);
    await add(await dataset(), 1, { id: 'x' });
    await rm(folder, { recursive: true });
    expect(await idsIn(await dataset())).toEqual([]);
    const open = await dataset();
    await add(open, 2, { id: 'z' });
    await rm(folder, { recursive: true });
    await add(open, 2, { id: 'y' });
    expect(await idsNow(folder)).toEqual(['y']);
  });

  test('is bounded as memory is', async () => {
    const folder = newFolder();
    const { dataset } = openIn(folder, { maxBytes: 400_000 });
    for (let at = 0; at < 300; at++) await add(await dataset(), at, { id: `${at}`, body: 'x'.repeat(10_000) });
    expect((await stat(await fileIn(folder))).size).toBeLessThan(2_000_000);
    expect(await idsIn(await openIn(folder, { maxBytes: 400_000 }).dataset())).toContain('299');
  });
});

describe('a folder that an earlier version wrote', () => {
  test('is read in the order of its records, into the file, and removed', async () => {
    const folder = newFolder();
    const newer = olderAd(6, { id: 'A', headline: 'new' });
    const [first = ''] = await writeOlder(
      olderFolder(folder, 'a'),
      [newer, olderGathering('g', ['a', 'b'])],
      [mergedLine('x'), olderAd(5, { id: 'a', headline: 'old', body: 'text' }), newer, olderAd(6, { id: 'b' }, 7)],
    );
    const { dataset, warnings } = openIn(folder);
    expect(await idsIn(await dataset())).toEqual(['A', 'b']);
    expect(existsSync(dirname(first))).toBe(false);
    expect(warnings).toEqual([]);
    const contents = await (await openIn(folder).dataset()).contents();
    expect(contents.gatherings).toMatchObject([{ complete: true, missing: 0 }]);
    const [ad] = contents.ads;
    expect(ad && objectOf(ad)).toEqual({ id: 'A', headline: 'new', body: 'text' });
    expect(ad?.versions.map((one) => objectOf(one).headline)).toEqual(['old']);
    // What comes now is newer, whatever the clock says.
    const late = await openIn(folder, { now: () => 1 }).dataset();
    const source = { listedBy: 'searchAds', requestId: null, at: 1 };
    await late.addItems({ ...source, type: 'ads', items: () => [{ id: 'A', headline: 'newest' }] });
    const item = await late.item('ads', 'a');
    expect(item && objectOf(item).headline).toBe('newest');
    expect(item?.versions.map((one) => objectOf(one).headline)).toEqual(['old', 'new']);
  });

  test('loses nothing that came to the file before, and is taken over once', async () => {
    const folder = newFolder();
    await add(await openIn(folder).dataset(), 8, { id: 'a', headline: 'newest' });
    await writeOlder(olderFolder(folder, 'a'), [olderAd(5, { id: 'a', headline: 'old', body: 'text' })]);
    for (const _ of [1, 2]) {
      const item = await (await openIn(folder).dataset()).item('ads', 'a');
      expect(item && objectOf(item)).toEqual({ id: 'a', headline: 'newest', body: 'text' });
      expect(item?.versions).toHaveLength(1);
    }
  });

  test('keeps what is damaged where it is, whose whole lines are taken over once', async () => {
    const folder = newFolder();
    const [damaged = '', whole = ''] = await writeOlder(
      olderFolder(folder, 'a'),
      [olderAd(5, { id: 'a' }), '{"kind":"ads","id":"cut'],
      [olderAd(5, { id: 'b' })],
    );
    const sizes = [];
    for (const _ of [1, 2]) {
      const { dataset, warnings } = openIn(folder);
      expect(await idsIn(await dataset())).toEqual(['a', 'b']);
      expect(warnings).toHaveLength(1);
      sizes.push((await stat(await fileIn(folder))).size);
    }
    expect(sizes[0]).toBe(sizes[1]);
    expect([existsSync(damaged), existsSync(whole)]).toEqual([true, false]);
  });

  test('stays if a version wrote it that is not known here, and if the new file cannot be written', async () => {
    const folder = newFolder();
    const [path = ''] = await writeOlder(olderFolder(folder, 'a'), [olderAd(5, { id: 'a' })]);
    await writeFile(join(dirname(path), 'dataset.json'), JSON.stringify({ format: 2, generation: 'x', baseUrl }));
    expect(await idsNow(folder)).toEqual([]);
    await writeOlder(olderFolder(folder, 'a'), [olderAd(5, { id: 'a' })]);
    await rm(join(folder, 'accounts'), { recursive: true, force: true });
    await writeFile(join(folder, 'accounts'), 'a file');
    const { dataset } = openIn(folder);
    await dataset();
    expect(existsSync(path)).toBe(true);
    await rm(join(folder, 'accounts'));
    expect(await idsIn(await dataset())).toEqual(['a']);
    expect(existsSync(path)).toBe(false);
    expect(await idsNow(folder)).toEqual(['a']);
  });
});
