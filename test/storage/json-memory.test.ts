import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'vitest';
import { estimateJsonMemory } from '../../src/storage/tenant-cache.ts';
import { respondWithBytes } from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';

const test = upstreamTest();
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const heapUsed = () => {
  collectGarbage();
  return process.memoryUsage().heapUsed;
};

const listOf = (count: number, item: (index: number) => string) =>
  `[${Array.from({ length: count }, (_, index) => item(index)).join(',')}]`;
const shapes: [name: string, json: string][] = [
  ['empty objects', listOf(200_000, () => '{}')],
  ['empty lists', listOf(200_000, () => '[]')],
  ['lists in lists', `${'['.repeat(200_000)}${']'.repeat(200_000)}`],
  ['objects in objects', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
  ['objects with keys of their own', listOf(100_000, (index) => `{"${index.toString(36)}":1}`)],
  ['one object with many keys', `{${listOf(100_000, (index) => `"${index.toString(36)}":1`).slice(1, -1)}}`],
  ['objects with numbers as keys', listOf(100_000, () => '{"9999999":1}')],
  ['short texts', listOf(200_000, (index) => `"${index.toString(36)}"`)],
  ['fractions among texts', listOf(200_000, (index) => (index % 2 ? '1.5' : '"a"'))],
];

test.for(shapes)(
  'the memory estimate for parsed JSON with %s is never lower than the memory that the JSON really uses',
  ([_, json]) => {
    const before = heapUsed();
    const value = JSON.parse(json);
    const usedBytes = heapUsed() - before;
    // V8 doubles an object's table when it is full, so the measured memory may be slightly higher.
    expect(estimateJsonMemory(value)).toBeGreaterThan(0.9 * usedBytes);
  },
);

test('the parsed responses in the response cache stay within the memory limit of the cache', async ({
  upstream,
  server,
}) => {
  upstream.respondWith(respondWithBytes(`{"pageId":"x","free":${listOf(400_000, () => '{}')}}`));
  const before = heapUsed();
  // Each response takes 25 MB of memory, so five fit into the cache. Measured by text length, all would fit.
  for (let index = 0; index < 12; index++) await server.call('get_page', { pageId: `${index}` });
  expect(heapUsed() - before).toBeLessThan(200 * 1024 * 1024);
});
