import { describe, expect, test } from 'vitest';
import type { DatasetStore } from '../../src/storage/dataset.ts';
import { maxRecords, type RecordKind, type UserRecords } from '../../src/storage/user-records.ts';

const putAll = (userRecords: UserRecords, kind: RecordKind, records: readonly (readonly [string, unknown])[]) =>
  userRecords.update(kind, () => ({ put: records, result: records.length }));

/**
 * Defines the tests of a store for the user's labels and watches (saved searches).
 * @param open opens the store in two processes, if processes can share it
 */
export function testUserRecords(name: string, open: () => Promise<[DatasetStore, DatasetStore]>): void {
  const openRecords = async (datasets: DatasetStore, key = 'a') =>
    (await datasets.open({ tenantId: key, apiKey: key })).userRecords;

  describe(`User labels and watches ${name}`, () => {
    test('labels and watches (saved searches) can be added, replaced and removed separately for each API key', async () => {
      const [firstDatasets, secondDatasets] = await open();
      const ownRecords = await openRecords(firstDatasets);
      const records = [
        ['b', { value: 'x' }],
        ['__proto__', 1],
        ['a', null],
      ] as const;
      expect(await putAll(ownRecords, 'label', records)).toBe(3);
      await putAll(ownRecords, 'watch', [['b', 'watch']]);
      await putAll(await openRecords(firstDatasets, 'b'), 'label', [['b', 'of another']]);
      const before = await ownRecords.read('label');
      const recordsBefore = await ownRecords.update('label', (found) => ({
        put: [['b', { value: 'y' }]],
        remove: ['a', 'nothing'],
        result: [...found],
      }));
      expect(recordsBefore).toEqual(records);
      expect([...before]).toEqual(records);
      for (const datasets of [firstDatasets, secondDatasets]) {
        const storedRecords = await openRecords(datasets);
        expect([...(await storedRecords.read('label'))]).toEqual([
          ['b', { value: 'y' }],
          ['__proto__', 1],
        ]);
        expect([...(await storedRecords.read('watch'))]).toEqual([['b', 'watch']]);
      }
    });

    test('changes to labels and watches (saved searches) that happen at the same time are all stored', async () => {
      const recordsOfBoth = await Promise.all((await open()).map((datasets) => openRecords(datasets)));
      await Promise.all(
        recordsOfBoth.map(async (own, writerIndex) => {
          for (let recordIndex = 0; recordIndex < 10; recordIndex++) {
            const put = (id: number) => [`${writerIndex}-${recordIndex}-${id}`, recordIndex] as const;
            const [, foundRecords] = await Promise.all([putAll(own, 'label', [put(1), put(2)]), own.read('label')]);
            expect(foundRecords.size % 2).toBe(0);
            await own.update('watch', (watches) => ({
              put: [['all', Number(watches.get('all') ?? 0) + 1]],
              result: 0,
            }));
          }
        }),
      );
      expect(await recordsOfBoth[0]?.update('label', (found) => ({ result: found.size }))).toBe(40);
      expect(await recordsOfBoth[1]?.update('watch', (found) => ({ result: found.get('all') }))).toBe(20);
    });

    test('a change that would exceed the limit of labels or watches (saved searches) is rejected completely', async () => {
      const [firstDatasets, secondDatasets] = await open();
      const ownRecords = await openRecords(firstDatasets);
      const manyRecords = Array.from(
        { length: maxRecords.label - 1 },
        (_, recordIndex) => [`id ${recordIndex}`, { value: 'x' }] as const,
      );
      await putAll(ownRecords, 'label', manyRecords);
      const refused = { failure: { kind: 'invalid_request', problem: expect.stringContaining('20,000') } };
      await expect(
        putAll(ownRecords, 'label', [
          ['a', 1],
          ['b', 1],
        ]),
      ).rejects.toMatchObject(refused);
      const races = [firstDatasets, secondDatasets].map(async (datasets, writerIndex) =>
        putAll(await openRecords(datasets), 'label', [[`r${writerIndex}`, 1]]),
      );
      const settled = await Promise.allSettled(races);
      expect(settled.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
      await putAll(ownRecords, 'label', [['id 0', 'new']]);
      await expect(putAll(ownRecords, 'watch', [['large', 'x'.repeat(70_000)]])).rejects.toMatchObject({ failure: {} });
      const result = await ownRecords.update('label', (found) => ({
        remove: ['id 1'],
        put: [['z', 1]],
        result: found.size,
      }));
      expect(result).toBe(maxRecords.label);
      const storedRecords = await (await openRecords(secondDatasets)).read('label');
      expect([storedRecords.size, storedRecords.get('id 0'), storedRecords.get('a'), storedRecords.get('z')]).toEqual([
        20_000,
        'new',
        undefined,
        1,
      ]);
      await putAll(ownRecords, 'watch', manyRecords.slice(0, maxRecords.watch));
      await expect(putAll(ownRecords, 'watch', [['one more', 1]])).rejects.toMatchObject({ failure: {} });
    });
  });
}
