import { describe, expect, test } from 'vitest';
import type { Datasets } from '../../src/storage/dataset.ts';
import { maxRecords, type RecordKind, type UserRecords } from '../../src/storage/user-records.ts';

const putAll = (own: UserRecords, kind: RecordKind, records: readonly (readonly [string, unknown])[]) =>
  own.update(kind, () => ({ put: records, result: records.length }));

/**
 * Defines the tests of a store for user records, such as labels and watches.
 * @param open opens the store in two processes, if processes can share it
 */
export function testUserRecords(name: string, open: () => Promise<[Datasets, Datasets]>): void {
  const openRecords = async (datasets: Datasets, key = 'a') =>
    (await datasets.open({ tenantId: key, apiKey: key })).userRecords;

  describe(`User records ${name}`, () => {
    test('user records are added, replaced and removed separately per kind and API key', async () => {
      const [one, other] = await open();
      const own = await openRecords(one);
      const records = [
        ['b', { value: 'x' }],
        ['__proto__', 1],
        ['a', null],
      ] as const;
      expect(await putAll(own, 'label', records)).toBe(3);
      await putAll(own, 'watch', [['b', 'watch']]);
      await putAll(await openRecords(one, 'b'), 'label', [['b', 'of another']]);
      const before = await own.read('label');
      const seen = await own.update('label', (found) => ({
        put: [['b', { value: 'y' }]],
        remove: ['a', 'nothing'],
        result: [...found],
      }));
      expect(seen).toEqual(records);
      expect([...before]).toEqual(records);
      for (const datasets of [one, other]) {
        const found = await openRecords(datasets);
        expect([...(await found.read('label'))]).toEqual([
          ['b', { value: 'y' }],
          ['__proto__', 1],
        ]);
        expect([...(await found.read('watch'))]).toEqual([['b', 'watch']]);
      }
    });

    test('concurrent changes of user records are all stored', async () => {
      const both = await Promise.all((await open()).map((datasets) => openRecords(datasets)));
      await Promise.all(
        both.map(async (own, who) => {
          for (let at = 0; at < 10; at++) {
            const put = (id: number) => [`${who}-${at}-${id}`, at] as const;
            const [, found] = await Promise.all([putAll(own, 'label', [put(1), put(2)]), own.read('label')]);
            expect(found.size % 2).toBe(0);
            await own.update('watch', (watches) => ({
              put: [['all', Number(watches.get('all') ?? 0) + 1]],
              result: 0,
            }));
          }
        }),
      );
      expect(await both[0]?.update('label', (found) => ({ result: found.size }))).toBe(40);
      expect(await both[1]?.update('watch', (found) => ({ result: found.get('all') }))).toBe(20);
    });

    test('a change beyond the limit of user records is rejected completely', async () => {
      const [one, other] = await open();
      const own = await openRecords(one);
      const many = Array.from({ length: maxRecords.label - 1 }, (_, at) => [`id ${at}`, { value: 'x' }] as const);
      await putAll(own, 'label', many);
      const refused = { failure: { kind: 'invalid_request', problem: expect.stringContaining('20,000') } };
      await expect(
        putAll(own, 'label', [
          ['a', 1],
          ['b', 1],
        ]),
      ).rejects.toMatchObject(refused);
      const races = [one, other].map(async (datasets, who) =>
        putAll(await openRecords(datasets), 'label', [[`r${who}`, 1]]),
      );
      const settled = await Promise.allSettled(races);
      expect(settled.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
      await putAll(own, 'label', [['id 0', 'new']]);
      await expect(putAll(own, 'watch', [['large', 'x'.repeat(70_000)]])).rejects.toMatchObject({ failure: {} });
      const result = await own.update('label', (found) => ({ remove: ['id 1'], put: [['z', 1]], result: found.size }));
      expect(result).toBe(maxRecords.label);
      const found = await (await openRecords(other)).read('label');
      expect([found.size, found.get('id 0'), found.get('a'), found.get('z')]).toEqual([20_000, 'new', undefined, 1]);
      await putAll(own, 'watch', many.slice(0, maxRecords.watch));
      await expect(putAll(own, 'watch', [['one more', 1]])).rejects.toMatchObject({ failure: {} });
    });
  });
}
