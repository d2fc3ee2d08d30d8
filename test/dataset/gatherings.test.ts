import { describe, expect, test } from 'vitest';
import { canonical } from '../../src/api/call.ts';
import { viewCoverage } from '../../src/dataset/coverage.ts';
import {
  differences,
  gatheringsOf,
  lastComplete,
  newGathering,
  partsOfQuestion,
  wholeOf,
} from '../../src/dataset/gatherings.ts';
import { type Dataset, type DatasetContents, MemoryDataset, recordsOf } from '../../src/state/dataset.ts';
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

test('a gathering of several parts is the sum of them, each ad once', async () => {
  const dataset = await newDataset();
  const question = { filters: { query: 'tea' }, split: [{ countries: ['DE'] }, { countries: ['AT'] }] };
  const [german, austrian] = partsOfQuestion(question).map((part) => newGathering(part, 1));
  if (!german || !austrian) throw new Error('two parts');
  expect(german.filters).toEqual({ query: 'tea', countries: ['DE'] });
  await gather(dataset, german, [{ id: 'a' }, { id: 'b' }]);
  await add(dataset, 1, { id: 'c' });
  await dataset.saveGathering({ ...austrian, found: 3, cursor: 'next', adIds: ['b', 'c'] });
  const whole = { ...newGathering(question, 1), parts: [german.id, austrian.id], ended: true };
  await dataset.saveGathering({ ...whole, adIds: [] });
  const read = async () => {
    const contents = await dataset.contents();
    const [gathering] = gatheringsOf(contents, question);
    if (!gathering) throw new Error('a gathering');
    return { contents, gathering: wholeOf(gathering, contents) };
  };
  const { contents, gathering } = await read();
  expect([...gathering.adIds].sort()).toEqual(['a', 'b', 'c']);
  expect(gathering).toMatchObject({ found: 5, complete: false });
  expect(coverageOf(contents).partial).toMatchObject([{ gathering: whole.id, found: 5, read: 3 }]);
  await dataset.saveGathering({ ...austrian, found: 3, ended: true, gatheredAt: 2, adIds: ['d'] });
  await add(dataset, 2, { id: 'd' });
  const then = await read();
  expect(then.gathering.complete).toBe(true);
  expect(coverageOf(then.contents).partial).toBeUndefined();
});

describe('what changed', () => {
  const readIn = async (dataset: Dataset) => {
    const contents = await dataset.contents();
    const [last] = gatheringsOf(contents, tea);
    if (!last) throw new Error('a gathering');
    const before = lastComplete(last, contents);
    return { before: before?.startedAt, changes: before && differences(before, last, contents) };
  };

  test('since the last complete gathering of the same question: new, changed, gone', async () => {
    const dataset = await newDataset();
    await gather(dataset, newGathering(tea, 10), [
      { id: 'stays' },
      { id: 'Changes', body: 'x' },
      { id: 'goes' },
    ] as never);
    await dataset.saveGathering({ ...newGathering(tea, 15), cursor: 'next', adIds: ['stays'] });
    await add(dataset, 16, { id: 'known' });
    const state = newGathering(tea, 20);
    await gather(dataset, state, [
      { id: 'stays' },
      { id: 'Changes', body: 'y' },
      { id: 'known' },
      { id: 'new' },
    ] as never);
    expect(await readIn(dataset)).toEqual({
      before: 10,
      changes: { fresh: ['known', 'new'], updated: ['Changes'], gone: ['goes'] },
    });
  });

  test('is not known of an ad that was let go and read again', async () => {
    const dataset = new MemoryDataset();
    const apply = (at: number, ads: readonly { id: string }[]) => {
      for (const one of recordsOf({
        type: 'ads',
        items: () => ads,
        at,
        order: at,
        listedBy: 'searchAds',
        requestId: null,
      }))
        dataset.apply(one);
      const state = { ...newGathering(tea, at), found: ads.length, ended: true, answerOrder: at };
      dataset.apply({ ...state, kind: 'gathering', adIds: ads.map(({ id }) => id) });
    };
    apply(10, [{ id: 'kept' }, { id: 'let go' }]);
    dataset.remove('ads', 'let go');
    apply(20, [
      { id: 'kept', body: 'y' },
      { id: 'let go', body: 'y' },
    ] as never);
    const contents = dataset.contents();
    const [last, before] = gatheringsOf(contents, tea);
    expect(last && before && differences(before, last, contents)).toEqual({ fresh: [], updated: ['kept'], gone: [] });
  });

  test('is compared with complete ones only', async () => {
    const dataset = await newDataset();
    await dataset.saveGathering({ ...newGathering(tea, 10), cursor: 'next', adIds: ['a', 'b'] });
    await gather(dataset, newGathering(tea, 20), [{ id: 'a' }]);
    expect(await readIn(dataset)).toEqual({ before: undefined, changes: undefined });
    await dataset.saveGathering({ ...newGathering(tea, 30), cursor: 'next', adIds: ['a'] });
    expect((await readIn(dataset)).before).toBe(20);
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
