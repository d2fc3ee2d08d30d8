import { expect, test } from 'vitest';
import { AdRowReader } from '../../src/dataset/ad-rows.ts';
import { newGathering } from '../../src/dataset/gatherings.ts';
import { snapshotOf } from '../../src/dataset/snapshot.ts';
import { SqlPool } from '../../src/dataset/sql/pool.ts';
import type { Dataset } from '../../src/state/dataset.ts';
import { about } from '../state/add-items.ts';
import { add, gather, newDataset } from './datasets.ts';

const pool = new SqlPool();
test.afterAll(() => pool.close());

const english = 'The best running shoes for every trail, made to last for many years';
const german = 'Die besten Laufschuhe für jeden Weg, gemacht für viele Jahre';

function reading(dataset: Dataset) {
  const reader = new AdRowReader();
  return async (sql: string) => {
    const { rows } = await pool.query(snapshotOf(reader, 't', await dataset.contents()), { sql });
    return rows;
  };
}

test('SQL sees ads, pages, versions and gatherings of a dataset', async () => {
  const dataset = await newDataset();
  const sql = reading(dataset);
  const state = newGathering({ filters: { query: 'shoes' } }, 1000);
  const ads = [
    { id: 'A', pageId: 'p', body: english, countries: ['DE'], publisherPlatform: ['x'], cards: [{ title: 'One' }] },
    { id: 'b', pageId: 'p', body: `${english}!` },
  ];
  await gather(dataset, state, ads);
  await dataset.addItems({ ...about(1000), type: 'pages', items: () => [{ pageId: 'p', pageName: 'Acme' }] });
  expect(await sql('SELECT id, language, variant, firstGatheredAt FROM ads ORDER BY id')).toEqual([
    ['A', 'en', 'A', '1970-01-01T00:00:01.000Z'],
    ['b', 'en', 'A', '1970-01-01T00:00:01.000Z'],
  ]);
  await add(dataset, 2000, { id: 'A', body: german });
  expect(await sql("SELECT language, gatheredAt, json->>'body' FROM ads WHERE id = 'A'")).toEqual([
    ['de', '1970-01-01T00:00:02.000Z', german],
  ]);
  expect(await sql("SELECT id, gatheredAt, json->>'body' FROM ad_versions")).toEqual([
    ['A', '1970-01-01T00:00:01.000Z', english],
  ]);
  expect(
    await sql(
      'SELECT country, platform, title FROM ad_countries JOIN ad_platforms USING (id) JOIN ad_cards USING (id)',
    ),
  ).toEqual([['DE', 'x', 'One']]);
  expect(await sql('SELECT pageName FROM pages')).toEqual([['Acme']]);
  expect(await sql('SELECT id, filters, collectionId, found, read, complete, gatheredAt FROM gatherings')).toEqual([
    [state.id, '{"query":"shoes"}', null, 2, 2, 1, '1970-01-01T00:00:01.000Z'],
  ]);
  expect(await sql('SELECT ads.id FROM gathered JOIN ads ON ads.id = adId ORDER BY 1')).toEqual([['A'], ['b']]);
});
