import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { MemoryStore } from '../../../src/storage/drivers/memory.ts';
import { DocumentAccess } from '../../../src/storage/store/documents.ts';
import { noEncryption } from '../../../src/storage/store/encryption.ts';

test('a late reply from the shared store does not replace a newer document in the cache', async () => {
  const store = new MemoryStore(Date.now);
  let arrives: Promise<void> | undefined;
  const readDocument: MemoryStore['readDocument'] = async (...args) => {
    const [answer] = await Promise.all([store.readDocument(...args), arrives]);
    return answer;
  };
  const options = { encryption: noEncryption, getProcessTime: () => performance.now(), wait: delay };
  const documents = new DocumentAccess({
    ...options,
    store: { readDocument, swapDocument: (...args) => store.swapDocument(...args) },
  });
  const write = (text: string) => documents.write('key', () => text, 60_000);

  await write('old');
  let arrive = () => {};
  arrives = new Promise((resolve) => {
    arrive = resolve;
  });
  const late = documents.read('key');
  await write('new');
  arrive();
  expect((await late).doc).toBe('old');
  expect(documents.getCached('key')?.doc).toBe('new');
  await documents.update('key', (doc) => {
    expect(doc).toBe('new');
    return { next: null, result: undefined };
  });
});
