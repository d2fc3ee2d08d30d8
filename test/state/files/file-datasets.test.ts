import { mkdir, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Dataset } from '../../../src/state/dataset.ts';
import { datasetsFolder, FileDatasets, type FileDatasetsOptions } from '../../../src/state/files/file-datasets.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { add } from '../add-items.ts';
import { datasetSuite } from '../dataset-suite.ts';

const root = temporaryFolder();
let folders = 0;
const newFolder = () => join(root, `${++folders}`);

interface Opened {
  datasets: FileDatasets;
  dataset(key?: string): Promise<Dataset>;
  warnings: string[];
}

/** A process that keeps its datasets in a folder. */
function openIn(folder: string, options: Partial<FileDatasetsOptions> = {}): Opened {
  const warnings: string[] = [];
  const datasets = new FileDatasets({
    folder,
    baseUrl: 'https://api.example.com',
    now: Date.now,
    elapsed: options.now ?? Date.now,
    userIdOf: async ({ apiKey }) => apiKey.slice(0, 1),
    warn: (message, fields) => warnings.push(`${message} ${JSON.stringify(fields)}`),
    ...options,
  });
  const dataset = (apiKey = 'a') => datasets.of({ tenantId: apiKey, apiKey });
  return { datasets, dataset, warnings };
}

const idsIn = async (dataset: Dataset) => (await dataset.contents()).ads.map(({ id }) => id).sort();

async function segmentsIn(folder: string): Promise<string[]> {
  const [name = ''] = await readdir(datasetsFolder(folder));
  const path = join(datasetsFolder(folder), name);
  return (await readdir(path)).filter((file) => file.endsWith('.jsonl')).map((file) => join(path, file));
}

datasetSuite('in files', async () => openIn(newFolder()).datasets);

test('survives the process, for another key of the same account, and for no other', async () => {
  const folder = newFolder();
  const first = await openIn(folder).dataset('a-old');
  await add(first, 1, { id: 'x', headline: 'one' });
  await add(first, 2, { id: 'x', headline: 'two' }, { id: 'y' });
  await first.saveGathering(ended(['x', 'y']));
  const again = await openIn(folder).dataset('a-new');
  expect(await again.contents()).toMatchObject({
    ads: (await first.contents()).ads,
    gatherings: [{ complete: true, missing: 0 }],
  });
  expect(await idsIn(await openIn(folder).dataset('b'))).toEqual([]);
  expect(await idsIn(await openIn(folder, { baseUrl: 'https://other.example' }).dataset('a-new'))).toEqual([]);
});

const ended = (adIds: string[], id = 'g') => ({
  ...{ id, question: 'q', filters: {}, collectionId: null, parts: [], found: 2, ended: true, cursor: null },
  ...{ startedAt: 1, gatheredAt: 2, adIds },
});

test('is for its owner alone, and the key is nowhere in it', async () => {
  const folder = newFolder();
  await add(await openIn(folder).dataset('a-secret-key'), 1, { id: 'x' });
  const names = await readdir(folder, { recursive: true });
  expect(names.length).toBe(4);
  for (const name of names) {
    const { mode } = await stat(join(folder, name));
    expect(mode & 0o077, name).toBe(0);
    expect(name).not.toContain('secret');
    if (name.endsWith('json') || name.endsWith('jsonl'))
      expect(await readFile(join(folder, name), 'utf8')).not.toContain('secret');
  }
});

test('of several processes at once loses nothing, doubles nothing, and each sees what the others brought', async () => {
  const folder = newFolder();
  const processes = Array.from({ length: 4 }, () => openIn(folder));
  await Promise.all(
    processes.map(async ({ dataset }, own) => {
      for (let at = 0; at < 25; at++) await add(await dataset(), at, { id: `${own}-${at}` }, { id: 'all', at, own });
    }),
  );
  for (const { dataset, warnings } of [...processes, openIn(folder)]) {
    expect(await idsIn(await dataset())).toHaveLength(101);
    expect(warnings).toEqual([]);
  }
  // Of 100 segments some were merged.
  expect((await segmentsIn(folder)).length).toBeLessThan(80);
});

test('is not read again because another process has merged it', async () => {
  const folder = newFolder();
  const [here, beside] = [openIn(folder), openIn(folder)];
  for (let at = 0; at < 64; at++) await add(await here.dataset(), at, { id: `${at}` });
  await beside.dataset();
  await add(await here.dataset(), 64, { id: '64' });
  await beside.dataset();
  await here.dataset();
  const [merged = '', ...others] = await segmentsIn(folder);
  expect(others).toEqual([]);
  await writeFile(merged, `${(await readFile(merged, 'utf8')).split('\n')[0]}\ngarbage`);
  expect(await idsIn(await beside.dataset())).toHaveLength(65);
  expect(beside.warnings).toEqual([]);
  const later = openIn(folder);
  await later.dataset();
  expect(later.warnings).toHaveLength(1);
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
  expect(asked).toBe(1);
  expect(warnings).toHaveLength(1);
  userId = 'u';
  clock += 30_000;
  expect(await idsIn(await dataset())).toEqual(['x', 'y']);
  expect(await idsIn(await openIn(folder, { userIdOf }).dataset())).toEqual(['x', 'y']);
});

describe('what is wrong with the files', () => {
  test('is skipped and named, and the rest is read', async () => {
    const folder = newFolder();
    const dataset = await openIn(folder).dataset();
    for (const id of ['cut', 'garbage', 'whole']) await add(dataset, 1, { id }, { id: `${id} 2` });
    const [cut = '', garbage = ''] = await segmentsIn(folder);
    await truncate(cut, (await stat(cut)).size - 5);
    await writeFile(garbage, Buffer.from([0, 255, 10, 123, 10, 200]));
    const huge = cut.replace(/\d{15}/, '999999999999999');
    await writeFile(huge, '');
    await truncate(huge, 65 * 1024 * 1024);
    const { dataset: read, warnings } = openIn(folder);
    expect(await idsIn(await read())).toEqual(['cut', 'whole', 'whole 2']);
    expect(warnings).toHaveLength(3);
  });

  test('does no harm where names are odd, links or folders', async () => {
    const folder = newFolder();
    await add(await openIn(folder).dataset(), 1, { id: 'x' });
    const [segment = ''] = await segmentsIn(folder);
    await symlink('/dev/zero', segment.replace(/\d{15}/, '999999999999998'));
    await mkdir(segment.replace(/\d{15}/, '999999999999997'));
    await writeFile(join(segment, '..', '..', 'x.jsonl'), 'odd');
    await writeFile(join(segment, '..', `${'x'.repeat(200)}.jsonl`), 'odd');
    const { dataset, warnings } = openIn(folder);
    expect(await idsIn(await dataset())).toEqual(['x']);
    expect(warnings).toEqual([]);
  });

  test('loses no answer where nothing can be written, and is made good as soon as it can', async () => {
    const folder = newFolder();
    await writeFile(folder, 'a file');
    const { dataset, warnings } = openIn(folder);
    await add(await dataset(), 1, { id: 'x' });
    await add(await dataset(), 2, { id: 'y' });
    expect(await idsIn(await dataset())).toEqual(['x', 'y']);
    expect(warnings).toHaveLength(1);
    await rm(folder);
    await dataset();
    expect(await idsIn(await openIn(folder).dataset())).toEqual(['x', 'y']);
  });

  test('that another version wrote are left as they are', async () => {
    const folder = newFolder();
    await add(await openIn(folder).dataset(), 1, { id: 'x' });
    const before = await segmentsIn(folder);
    const mark = join(before[0] ?? '', '..', 'dataset.json');
    await writeFile(mark, JSON.stringify({ format: 2, generation: 'x' }));
    const { dataset, warnings } = openIn(folder);
    await add(await dataset(), 2, { id: 'y' });
    expect(await idsIn(await dataset())).toEqual(['y']);
    expect(warnings.join()).toContain('another version');
    expect(await segmentsIn(folder)).toEqual(before);
  });
});

test('comes back empty once the folder was removed, with what was added since', async () => {
  const folder = newFolder();
  const { dataset } = openIn(folder);
  await add(await dataset(), 1, { id: 'x' });
  await rm(folder, { recursive: true });
  expect(await idsIn(await dataset())).toEqual([]);
  const open = await dataset();
  await rm(folder, { recursive: true });
  await add(open, 2, { id: 'y' });
  expect(await idsIn(await openIn(folder).dataset())).toEqual(['y']);
});

test('is bounded in files as it is in memory', async () => {
  const folder = newFolder();
  const limits = { maxBytes: 400_000 };
  const { dataset } = openIn(folder, { limits });
  for (let at = 0; at < 80; at++) await add(await dataset(), at, { id: `${at}`, body: 'x'.repeat(10_000) });
  await dataset();
  const sizes = await Promise.all((await segmentsIn(folder)).map(async (file) => (await stat(file)).size));
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(400_000 + 30 * 11_000);
  expect(await idsIn(await openIn(folder, { limits }).dataset())).toContain('79');
});
