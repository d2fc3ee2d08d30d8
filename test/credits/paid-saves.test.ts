import { expect } from 'vitest';
import { type Behaviour, delays, faults, json, paid, refusal } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { uuidOf } from '../support/uuid-of.ts';

const test = freshUpstreamTest({ config: { cacheSeconds: 0, timeoutMs: 500 } });
const saving = { collectionId: uuidOf('c'), itemType: 'ads', itemId: uuidOf('x') };
const saved = (charged: number) =>
  json({ itemType: 'ads', itemId: uuidOf('x'), added: true }, { headers: paid(charged) });

test.for<[string, Behaviour]>([
  ['resets', faults.resets],
  ['breaks off in the body', faults['breaks off in the body']],
  ['hangs', delays.hangs],
  ['is answered by a gateway', refusal(502)],
])(
  'a save that %s, where saves were charged, says that another may be charged again',
  async (fault, { upstream, server }) => {
    upstream.does(saved(3), fault[1]);
    await server.call('add_collection_item', saving);
    const { text, error } = await server.call('add_collection_item', saving);
    expect(error?.retryable).toBe(false);
    expect(text).toContain('Retrying may help, but may be charged again: ask the user first.');
    expect(text).toContain('saving it again may be charged again');
    expect(upstream.requests).toHaveLength(2);
  },
);

test('where saves are free, saving again is safe and may help', async ({ upstream, server }) => {
  upstream.does(saved(0), faults.resets);
  await server.call('add_collection_item', saving);
  const { text, error } = await server.call('add_collection_item', saving);
  expect(error?.retryable).toBe(true);
  expect(text).toContain('Saving it again is safe');
});
