import { expect } from 'vitest';
import { clearFiles } from '../../../src/cli/files.ts';
import { readConfig } from '../../../src/config/read-config.ts';
import { freshServiceTest } from '../../support/fixtures.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const test = freshServiceTest();
const files = temporaryFolder();

test('pages that come from the cache fill a dataset that was cleared', async ({ start }) => {
  let clock = Date.parse('2026-11-20T10:00:00Z');
  const server = await start({ files }, { now: () => clock++ });
  const question = { filters: { countries: ['DE'], displayFormat: ['VIDEO'] }, maxCredits: 100 };
  await server.call('gather_ads', question);
  await clearFiles({ ...readConfig({}), files }, () => {});
  clock += 60_000;
  const { data, text } = await server.call('gather_ads', question);
  expect(data).toMatchObject({ read: 59, complete: true, receipt: { charged: 0 } });
  expect(data).not.toHaveProperty('missing');
  expect(text).toContain('Formats (1): VIDEO 59\n');
  const sql = "SELECT count(*), min(gatheredAt) < '2026-11-20T10:01:00Z' FROM ads";
  expect((await server.call('query_ads', { sql })).data.rows).toEqual([[59, 1]]);
});

test('pages that a search has brought are not asked for again, whatever is left to read', async ({ server }) => {
  let { data } = await server.call('search_ads', { limit: 100 });
  while (data.cursor !== null) ({ data } = await server.call('search_ads', { cursor: data.cursor }));
  const gathered = await server.call('gather_ads', { maxAds: 10_000, maxCredits: 100 });
  expect(gathered.data).toMatchObject({ complete: true, receipt: { charged: 0 } });
});
