import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MemoryStore } from '../../../src/storage/drivers/memory.ts';
import { chunkLimits, type ItemChange, type Store } from '../../../src/storage/storage.ts';
import { describeEveryStore, sharedStores } from '../../support/stores.ts';

const minute = 60_000;
const MB = 1024 * 1024;
const newKey = () => `{${randomUUID()}}`;
const limits = { ttlMs: minute, maxBytes: MB };
const bytes = (text: string) => Buffer.from(text);
const createDocument = (version: string, text = `body of ${version}`, ttlMs = minute) => ({
  version,
  body: bytes(text),
  ttlMs,
});

describeEveryStore(
  'A store',
  (open) => {
    test('a compare-and-swap write treats an expired document as if the document did not exist', async () => {
      const store = await open();
      const key = newKey();
      // Retry, because the first document may expire before the second swap on a busy machine.
      for (let isDone = false; !isDone; ) {
        await store.swapDocument(key, '', createDocument('1', 'short', 150));
        ({ isDone } = await store.swapDocument(key, '1', createDocument('2', 'longer', minute)));
      }
      await delay(200);
      expect((await store.readDocument(key)).document?.version).toBe('2');
      await store.swapDocument(key, '2', createDocument('3', 'short', 20.5));
      await expect.poll(async () => (await store.readDocument(key)).document).toBeUndefined();
      expect(await store.swapDocument(key, '3', createDocument('4'))).toMatchObject({ isDone: false });
      expect(await store.swapDocument(key, '', createDocument('4'))).toMatchObject({ isDone: true });
    });

    test("every reply of the shared store contains the store's time", async () => {
      const [one, other] = [await open(), await open()];
      const key = newKey();
      const times = [];
      for (let round = 0; round < 4; round++) {
        times.push(
          (await one.readDocument(key)).now,
          (await other.swapDocument(key, '', createDocument(`${round}`))).now,
        );
        await delay(5);
      }
      expect(times).toEqual(times.toSorted((left, right) => left - right));
      expect(new Set(times).size).toBeGreaterThan(2);
      expect(Math.abs(Date.now() - (times.at(-1) ?? 0))).toBeLessThan(5000);
    });

    test('only one of many compare-and-swap writes of a document at the same time succeeds', async () => {
      const stores = await Promise.all([open(), open(), open()]);
      const key = newKey();
      for (let round = 0; round < 3; round++) {
        const { version: expected = '' } = (await stores[0]?.readDocument(key))?.document ?? {};
        const replies = await Promise.all(
          Array.from({ length: 12 }, (_, at) =>
            stores[at % 3]?.swapDocument(key, expected, createDocument(`${round} of ${at}`)),
          ),
        );
        expect(replies.filter((reply) => reply?.isDone)).toHaveLength(1);
        const version = (await stores[0]?.readDocument(key))?.document?.version ?? '';
        expect(replies[Number(version.split(' of ')[1])]?.isDone).toBe(true);
      }
    });

    test('documents and items in a store keep any bytes unchanged', async () => {
      const [one, other] = [await open(), await open()];
      const every = Buffer.from(Array.from({ length: 512 }, (_, at) => at % 256));
      for (const body of [every, Buffer.alloc(3 * MB, 0x5c), bytes('\\x00\'"{},'), bytes(' ')]) {
        const key = newKey();
        await one.swapDocument(key, '', { version: '1', body, ttlMs: minute });
        expect((await other.readDocument(key)).document?.body?.equals(body)).toBe(true);
        await one.putItems(key, [{ id: 'i', expectedSequenceNumber: 0, body }], { ttlMs: minute, maxBytes: 8 * MB });
        expect((await other.readItems(key, ['i'])).get('i')?.body.equals(body)).toBe(true);
        expect((await other.readItemsSince(key, 0))?.items[0]?.body.equals(body)).toBe(true);
      }
    });

    test('the items in a store are returned in several chunks, ordered by the time of their last change', async () => {
      const store = await open();
      const name = newKey();
      expect(await store.readItemsSince(name, 0)).toBeUndefined();
      const ids = Array.from({ length: 2.5 * chunkLimits.maxItems }, (_, at) => `i${at}`);
      await store.putItems(
        name,
        ids.map((id) => ({ id, expectedSequenceNumber: 0, body: bytes(id) })),
        limits,
      );
      const first = (await store.readItems(name, ['i0'])).get('i0')?.sequenceNumber ?? 0;
      await store.putItems(name, [{ id: 'i0', expectedSequenceNumber: first, body: bytes('i0 again') }], limits);
      const chunks = await readAllSince(store, name, 0);
      expect(chunks.length).toBeGreaterThan(2);
      expect(chunks.flatMap(({ items }) => items.map(({ id }) => id))).toEqual([...ids.slice(1), 'i0']);
      expect(new Set(chunks.map(({ generation }) => generation)).size).toBe(1);
      const last = chunks.at(-1)?.items.at(-1)?.sequenceNumber ?? 0;
      expect(await store.readItemsSince(name, last)).toMatchObject({
        items: [],
        isLastChunk: true,
        lastEvictedSequenceNumber: 0,
        evictedCounts: {},
      });
    });

    test('a chunk of large items from a store ends after about one megabyte', async () => {
      const store = await open();
      const name = newKey();
      const changes = Array.from({ length: 6 }, (_, at) => ({
        id: `i${at}`,
        expectedSequenceNumber: 0,
        body: Buffer.alloc(MB / 2, at),
      }));
      await store.putItems(name, changes, { ttlMs: minute, maxBytes: 8 * MB });
      const chunks = await readAllSince(store, name, 0);
      expect(chunks.map(({ items }) => items.length)).toEqual([2, 2, 2]);
    });

    test('an expired collection of items in a store is empty, and items added later get a new generation number', async () => {
      const store = await open();
      const name = newKey();
      const put = (seq: number, ttlMs: number) =>
        store.putItems(name, [{ id: 'a', expectedSequenceNumber: seq, body: bytes('1') }], { ...limits, ttlMs });
      const epochs = new Set<string | undefined>();
      let last = 0;
      for (let time = 0; time < 3; time++) {
        expect(await put(0, minute)).toEqual(new Set());
        const chunk = await store.readItemsSince(name, last);
        epochs.add(chunk?.generation);
        expect(chunk?.items).toHaveLength(1);
        last = chunk?.items[0]?.sequenceNumber ?? 0;
        expect(await put(last, 1)).toEqual(new Set());
        await expect.poll(() => store.readItemsSince(name, 0)).toBeUndefined();
        expect(await store.readItems(name, ['a'])).toEqual(new Map());
        expect(await put(last, 1)).toEqual(new Set(['a']));
        await delay(20);
      }
      expect(epochs.size).toBe(3);
    });

    test('no change is lost if several writers change the same items in a store at the same time', async () => {
      const stores = await Promise.all([open(), open(), open()]);
      const name = newKey();
      const ids = ['a', 'b', 'c'];
      const seenNumbers: number[] = [];
      let isOver = false;
      const following = (async () => {
        for (let after = 0; ; ) {
          const wasOver = isOver;
          const items = (await stores[0]?.readItemsSince(name, after))?.items ?? [];
          for (const { sequenceNumber: seq } of items) seenNumbers.push(seq);
          after = items.at(-1)?.sequenceNumber ?? after;
          if (wasOver && items.length === 0) return;
        }
      })();
      const addOne = async (store: Store) => {
        for (let remainingIds = [...ids]; remainingIds.length > 0; ) {
          const storedItems = await store.readItems(name, remainingIds);
          const changes = remainingIds.map((id): ItemChange => {
            const before = storedItems.get(id);
            return {
              id,
              expectedSequenceNumber: before?.sequenceNumber ?? 0,
              body: bytes(String(Number(before?.body ?? 0) + 1)),
            };
          });
          remainingIds = [...(await store.putItems(name, changes, limits))];
        }
      };
      await Promise.all(stores.flatMap((store) => Array.from({ length: 6 }, () => addOne(store))));
      isOver = true;
      await following;
      const counts = [...(await (stores[1] as Store).readItems(name, ids)).values()].map(({ body }) => String(body));
      expect(counts).toEqual(['18', '18', '18']);
      expect(seenNumbers).toEqual(seenNumbers.toSorted((left, right) => left - right));
      expect(seenNumbers.slice(-3)).toHaveLength(3);
    });

    test('a shared store gives the same results as the in-memory store for random operations', async () => {
      const store = await open();
      const id = fc.constantFrom('a', 'b', 'p');
      const step = fc.oneof(
        fc.record({
          put: fc.uniqueArray(fc.record({ id, size: fc.nat(40), isKnown: fc.boolean() }), {
            selector: (one) => one.id,
          }),
        }),
        fc.record({ swap: fc.constantFrom('known', 'none', 'wrong'), removes: fc.boolean() }),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
          const stores = [store, new MemoryStore(Date.now)];
          const name = newKey();
          for (const [at, one] of steps.entries()) {
            const after = stores.map(async (each) => {
              if ('swap' in one) {
                const version = (await each.readDocument(name)).document?.version ?? '';
                const expected = { known: version, none: '', wrong: 'wrong' }[one.swap];
                const body = one.removes ? undefined : bytes(`${at}`);
                const reply = await each.swapDocument(name, expected, { version: `v${at}`, body, ttlMs: minute });
                const storedDocument = reply.isDone ? undefined : reply.document;
                return [
                  reply.isDone,
                  storedDocument,
                  (await each.readDocument(name)).document,
                  (await each.readDocument(name, version)).document,
                ];
              } else if (one.put.length > 0) {
                const storedItems = await each.readItems(name, ['a', 'b', 'p']);
                const changes = one.put.map(({ id, size, isKnown }) => {
                  const { sequenceNumber = 0 } = isKnown ? (storedItems.get(id) ?? {}) : {};
                  return { id, expectedSequenceNumber: sequenceNumber, body: Buffer.alloc(size, at) };
                });
                const refused = await each.putItems(name, changes, { ttlMs: minute, maxBytes: 60 });
                const chunk = await each.readItemsSince(name, 0);
                const {
                  items = [],
                  lastEvictedSequenceNumber: floor = 0,
                  evictedCounts: gone,
                  isLastChunk,
                } = chunk ?? {};
                const isFloorBelow = floor < (items[0]?.sequenceNumber ?? Number.POSITIVE_INFINITY);
                return [refused, items.map(({ id, body }) => [id, body]), { gone, isLast: isLastChunk, isFloorBelow }];
              }
            });
            const [real, expected] = await Promise.all(after);
            expect(real).toEqual(expected);
          }
        }),
        { numRuns: 60 },
      );
    });
  },
  sharedStores,
);

async function readAllSince(store: Store, name: string, after: number) {
  const chunks = [];
  for (let last = after; ; ) {
    const chunk = await store.readItemsSince(name, last);
    if (chunk === undefined) return chunks;
    chunks.push(chunk);
    if (chunk.isLastChunk) return chunks;
    last = chunk.items.at(-1)?.sequenceNumber ?? 0;
  }
}
