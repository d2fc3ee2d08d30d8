import { describe, expect } from 'vitest';
import { operations } from '../../src/api/call.ts';
import { tools } from '../../src/tools/catalog.ts';
import { isGated, namesOf } from '../../src/tools/tool-names.ts';
import { makeDemoCalls } from '../support/demo-calls.ts';
import { everyTool } from '../support/every-tool.ts';
import { json, paid } from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';
import type { Result } from '../support/server.ts';

/** Names that only the API knows: a model calls tools by another. */
const operationIds = Object.keys(operations).filter((name) => tools.every((tool) => tool.name !== name));
const ids = new RegExp(`\\b(?:${operationIds.join('|')})\\b`);

const test = upstreamTest();

const expectToolNames = ({ raw }: Pick<Result, 'raw'>) => expect(JSON.stringify(raw)).not.toMatch(ids);

describe('what a model reads has the names of tools, never those of operations', () => {
  test('in results, prices among them, in the list of tools and in the instructions', async ({ start }) => {
    const server = await start({ demo: true });
    for (const { result } of await makeDemoCalls(server.call)) expectToolNames(result);
    const { data } = await server.call('get_credits');
    expect(Object.keys(data.thisServer.prices)).toContain('list_collection_items');
    const [found] = (await server.call('search_ads', { limit: 1 })).data.items;
    expectToolNames(await server.call('get_ad', { adId: found?.id, seen: true }));
    expect(JSON.stringify(await server.client.listTools())).not.toMatch(ids);
    expect(server.client.getInstructions()).not.toMatch(ids);
  });

  test('in errors of answers, budgets and cursors', async ({ upstream, start }) => {
    const server = await start({ creditBudget: 3 });
    upstream.does(json({ items: 1 }));
    for (const { tool, args } of everyTool) expectToolNames(await server.call(tool, args));
    upstream.does(json({ items: [{ id: 'a' }], cursor: 'b', hasMore: true, id: 'a' }, { headers: paid(2) }));
    for (const { tool, args } of everyTool) expectToolNames(await server.call(tool, args));
    const { error, ...refused } = await server.call('search_ads', { limit: 50 });
    expect(error?.kind).toBe('credit_budget');
    expectToolNames(refused);
    expectToolNames(await server.call('search_ads', { cursor: '@50.abcdefghijk' }));
  });
});

describe('what still works without credits', () => {
  test('lists only the tools that are offered', async ({ upstream, start }) => {
    upstream.does(json({ error: { code: 'c', message: 'm', requestId: 'r' } }, { status: 402 }));
    const ungated = tools.filter((tool) => !isGated(tool));
    const all = await start();
    expect((await all.call('search_ads')).text).toContain(`Still working: ${namesOf(ungated)}, and cached answers.`);
    const some = await start({ tools: ['search_ads', 'whoami'] });
    expect((await some.call('search_ads')).text).toContain('Still working: whoami, and cached answers.');
    const one = await start({ tools: ['search_ads'] });
    expect((await one.call('search_ads')).text).toContain('Still working: cached answers.');
    expect(one.client.getInstructions()).toContain('search_ads costs the user credits');
  });
});
