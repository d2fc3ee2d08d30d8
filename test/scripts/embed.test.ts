import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { expect, test } from 'vitest';
import { openServer } from '../../src/embed.ts';
import { readResult } from '../support/server.ts';

test('a server that a program embeds with openServer accepts several clients over custom transports', async () => {
  const logged: string[] = [];
  const settings = { AD_LIBRARY_DEMO: 'true', AD_LIBRARY_LOG_LEVEL: 'info' };
  const server = await openServer(settings, (line) => logged.push(line));
  const connect = async (name: string) => {
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    const client = new Client({ name, version: '1' });
    await Promise.all([server.connect(ours), client.connect(theirs)]);
    return client;
  };
  const [first, second] = [await connect('first'), await connect('second')];
  const call = async (client: Client, name: string) => readResult(await client.callTool({ name, arguments: {} }));
  expect((await call(first, 'search_ads')).data.items).toHaveLength(20);
  expect(logged).toEqual([expect.stringContaining('search_ads')]);
  await first.close();
  expect((await call(second, 'whoami')).isError).toBe(false);
  await server.close();
});

test('the function openServer reports every invalid setting in one error', async () => {
  await expect(openServer({ AD_LIBRARY_DEMO: 'perhaps', AD_LIBRARY_OUTPUT: 'x' })).rejects.toThrow(
    /AD_LIBRARY_DEMO[\s\S]*AD_LIBRARY_OUTPUT/,
  );
});

test('the function openServer rejects a misspelled setting and suggests the correct name', async () => {
  const problem = openServer({ AD_LIBRARY_CREDIT_BUDGT: '50', AD_LIBRARY_OUTPUT: 'x' });
  await expect(problem).rejects.toThrow(/AD_LIBRARY_OUTPUT must be[\s\S]*did you mean AD_LIBRARY_CREDIT_BUDGET\?/);
  await expect(openServer({ AD_LIBRARY_DEMO: 'true', AD_LIBRARY_BUDGET: '50' })).rejects.toThrow(/is not a setting/);
});

test('the type declarations of the function openServer import no other packages', () => {
  const types = readFileSync(new URL('../../dist/embed.d.ts', import.meta.url), 'utf8');
  expect(types).toContain('export declare function openServer');
  expect(types).not.toMatch(/\bimport\b|\bfrom\b ['"]/);
});
