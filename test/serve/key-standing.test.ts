import { expect, test } from 'vitest';
import type { Catalog } from '../../src/mcp/catalog.ts';
import { createKeyStandings } from '../../src/serve/key-standing.ts';

const signal = new AbortController().signal;
const refuses = async () => ({
  content: [],
  isError: true as const,
  _meta: { 'ad-library/error': { kind: 'unauthorized' } },
});

test('a refusal is told of once', async () => {
  const standings = createKeyStandings();
  const { callTool } = standings.learningFrom({ callTool: refuses } as unknown as Catalog);
  await callTool({ name: 'whoami', key: 'a key', owner: 'a', signal });
  expect([standings.wasJustRefused('a'), standings.wasJustRefused('a')]).toEqual([true, false]);
});

test('refusals that nobody asks for, because the caller hung up, do not pile up', async () => {
  const standings = createKeyStandings();
  const { callTool } = standings.learningFrom({ callTool: refuses } as unknown as Catalog);
  for (let owner = 0; owner <= 10_000; owner++) {
    await callTool({ name: 'add_collection_item', key: 'a key', owner: String(owner), signal });
  }
  expect([standings.wasJustRefused('0'), standings.wasJustRefused('10000')]).toEqual([false, true]);
});
