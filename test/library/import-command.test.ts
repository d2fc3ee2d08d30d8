import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { run, start } from '../support/process.ts';
import { databaseTest as test } from './support/fixtures.ts';

/** A page of the public archive as it is often saved: pretty-printed, with the address of the next page. */
const pageOfArchive = (first: number, amount: number) => {
  const ads = Array.from({ length: amount }, (_, at) => ({
    id: String(first + at),
    page_id: '7',
    page_name: 'Made-up Page',
    ad_creative_bodies: [`Copy number ${first + at}`, 'Second version'],
    bylines: 'Friends of Tests',
  }));
  const paging = { cursors: { after: 'x' }, next: 'https://archive.example/?after=x' };
  return JSON.stringify({ data: ads, paging }, null, 2);
};

test('pretty-printed documents of the public archive are imported completely and read with an unmetered key', {
  timeout: 60_000,
}, async ({ folder }) => {
  const database = ['--database', join(folder, 'own.db')];
  const amounts = [1, 2, 10_000];
  const files = await Promise.all(
    amounts.map(async (amount) => {
      const file = join(folder, `${amount}.json`);
      await writeFile(file, pageOfArchive(amount * 10, amount));
      return file;
    }),
  );
  const { code, stderr } = await run(['library', 'import', ...files, ...database]);
  expect(stderr.replaceAll(`${folder}/`, '')).toBe(
    [
      '1.json: 1 ad (1 from the public ad library’s format) and 0 pages',
      '2.json: 2 ads (2 from the public ad library’s format) and 0 pages',
      '10000.json: 10000 ads (10000 from the public ad library’s format) and 0 pages\n',
    ].join('\n'),
  );
  expect(code).toBe(0);
  const key = (await run(['library', 'key', 'create', '--unmetered', ...database])).stdout.trim();
  const { child, says, ended } = start(['library', 'serve', '--port', '0', ...database]);
  const [, url = ''] = await says(/library on (\S+)/);
  const search = async (query: string) => {
    const response = await fetch(`${url}/v1/ads/search`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query, limit: 1 }),
    });
    expect(response.headers.get('x-service-credits-charged')).toBe('0');
    return (await response.json()) as { totalHits: number; items: unknown[] };
  };
  expect((await search('friends "second version"')).totalHits).toBe(10_003);
  for (const number of [10, 21, 109_999])
    expect((await search(`"copy number ${number}"`)).items).toMatchObject([
      {
        body: `Copy number ${number}`,
        bodies: [`Copy number ${number}`, 'Second version'],
        bylines: 'Friends of Tests',
      },
    ]);
  child.kill('SIGTERM');
  await ended;
});
