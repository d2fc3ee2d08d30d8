import { describe, expect, test } from 'vitest';
import { canonical } from '../../src/api/call.ts';
import { viewCoverage } from '../../src/dataset/coverage.ts';
import { gatheringsOf, newGathering } from '../../src/dataset/gatherings.ts';
import type { DatasetContents } from '../../src/state/dataset.ts';
import { add, gather, newDataset } from './datasets.ts';

const coverageOf = (contents: DatasetContents) => viewCoverage({ contents, known: new Map(), sql: '' });

const tea = { filters: { query: 'tea', countries: ['DE'] } };

describe('the gatherings of a question', () => {
  test('are found whatever the order of its filters, the newest first, and those of no other', async () => {
    const dataset = await newDataset();
    for (const at of [1, 2]) await gather(dataset, newGathering(tea, at), []);
    await gather(dataset, newGathering({ filters: { query: 'tea' } }, 3), []);
    await gather(dataset, newGathering({ ...tea, split: [{ limit: 1 }] }, 4), []);
    await gather(dataset, newGathering({ collectionId: 'c' }, 5), []);
    const contents = await dataset.contents();
    const found = gatheringsOf(contents, { filters: { countries: ['DE'], query: 'tea' } });
    expect(found.map(({ startedAt }) => startedAt)).toEqual([2, 1]);
    expect(gatheringsOf(contents, { collectionId: 'C' })).toHaveLength(1);
  });

  test('that start at different times have different ids, and at the same time one', () => {
    expect(newGathering(tea, 1).id).not.toBe(newGathering(tea, 2).id);
    expect(newGathering(tea, 1).id).not.toBe(newGathering({}, 1).id);
    expect(newGathering(tea, 1)).toEqual(newGathering({ filters: { countries: ['DE'], query: 'tea' } }, 1));
    expect(newGathering(tea, 1).id).toMatch(/^g[\da-f]{10}$/);
  });
});

test('coverage names the newest gathering of each question that is not complete', async () => {
  const dataset = await newDataset();
  await dataset.saveGathering({ ...newGathering(tea, 1), found: 9, adIds: ['a'] });
  await dataset.saveGathering({ ...newGathering({ collectionId: 'c' }, 2), found: null, adIds: ['a', 'lost'] });
  await add(dataset, 2, { id: 'a' });
  const [byFilters, byCollection] = [newGathering(tea, 1).id, newGathering({ collectionId: 'c' }, 2).id];
  expect(coverageOf(await dataset.contents())).toEqual({
    ads: 1,
    gatherings: 2,
    partial: [
      { gathering: byCollection, about: 'collection c', found: null, read: 2, removed: 1, gatheredAt: '1970-01-01' },
      { gathering: byFilters, about: canonical(tea.filters), found: 9, read: 1, gatheredAt: '1970-01-01' },
    ],
  });
  await gather(dataset, newGathering(tea, 3), [{ id: 'a' }]);
  expect(coverageOf(await dataset.contents()).partial).toMatchObject([{ about: 'collection c' }]);
});
