import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { expect, test } from 'vitest';
import { openServer } from '../../src/embed.ts';
import { makeDemoCalls } from '../support/demo-calls.ts';
import { readResult } from '../support/server.ts';

test('a program has the server on a transport of its own, for as many clients as it likes', async () => {
  const server = await openServer({ AD_LIBRARY_DEMO: 'true' });
  for (const name of ['first', 'second']) {
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    const client = new Client({ name, version: '1' });
    await Promise.all([server.connect(ours), client.connect(theirs)]);
    const called = await makeDemoCalls(async (tool, args) =>
      readResult(await client.callTool({ name: tool, arguments: args ?? {} })),
    );
    expect(called.filter(({ result }) => result.isError)).toEqual([]);
    await client.close();
  }
  await server.close();
});

test('it logs at the level of the settings', async () => {
  const logged: string[] = [];
  const server = await openServer({ AD_LIBRARY_DEMO: 'true', AD_LIBRARY_LOG_LEVEL: 'info' }, (line) =>
    logged.push(line),
  );
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: 'test', version: '1' });
  await Promise.all([server.connect(ours), client.connect(theirs)]);
  await client.callTool({ name: 'whoami', arguments: {} });
  expect(logged).toEqual([expect.stringContaining('whoami')]);
  await server.close();
});

test('it gets every wrong setting reported', async () => {
  await expect(openServer({ AD_LIBRARY_DEMO: 'perhaps', AD_LIBRARY_OUTPUT: 'x' })).rejects.toThrow(
    /AD_LIBRARY_DEMO[\s\S]*AD_LIBRARY_OUTPUT/,
  );
});

test('its types need no other package', () => {
  const types = readFileSync(new URL('../../dist/embed.d.ts', import.meta.url), 'utf8');
  expect(types).toContain('export declare function openServer');
  expect(types).not.toMatch(/\bimport\b|\bfrom\b ['"]/);
});
