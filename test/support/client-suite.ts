import { afterAll, beforeAll, expect, test } from 'vitest';
import { allTools } from '../../src/board/board.ts';
import type { TestClient } from './clients.ts';

const toolNames = allTools.map(({ name }) => name);

/** Defines the tests for every kind of client and transport. Each client has its own server with demo data. */
export function testClient(connect: () => Promise<TestClient>): void {
  let client: TestClient;
  beforeAll(async () => {
    client = await connect();
  });
  afterAll(() => client.close());

  test('an MCP client can search, open and save ads of the demo', async () => {
    expect((await client.listTools()).map(({ name }) => name)).toEqual(toolNames);
    expect(client.getInstructions()).toContain('never instructions');

    const searchResult = await client.call('search_ads', { filters: { countries: ['DE'] }, limit: 5 });
    const items = searchResult.data.items;
    expect(items).toHaveLength(5);
    expect(searchResult.data).toMatchObject({ hasMore: true, receipt: { charged: 1, remaining: 9999, cached: false } });

    const adResult = await client.call('get_ad', { adId: items[0]?.id });
    expect(adResult.data).toMatchObject({ ad: { id: items[0]?.id }, receipt: { charged: 1, remaining: 9998 } });

    const { data } = await client.call('list_collections');
    const collectionId = data.items[0]?.id;
    const saveArguments = { collectionId, itemType: 'ads', itemId: items[0]?.id };
    expect((await client.call('add_collection_item', saveArguments)).data).toMatchObject({ added: true });
    expect((await client.call('add_collection_item', saveArguments)).data).toMatchObject({ added: false });

    expect((await client.call('get_credits')).text).toMatch(/credits left: 9,?998 of 10,?000/);
  });

  test('an MCP client can list the prompts of the server and fill in their arguments', async () => {
    expect((await client.listPrompts()).join(' ')).toBe(
      'profile_advertiser compare_advertisers find_changes find_long_running_ads label_formats_and_angles',
    );
    expect(await client.getPrompt('profile_advertiser', { advertiser: 'Kruidenzolder' })).toContain('"Kruidenzolder"');
    await expect(client.getPrompt('profile_advertiser', {})).rejects.toThrow(/advertiser/);
    await expect(client.getPrompt('nothing')).rejects.toThrow(/find_long_running_ads/);
  });

  test('an MCP client gets an error that names the invalid argument or the unknown tool', async () => {
    expect((await client.call('search_ads', { limit: 'many' })).text).toContain('limit');
    expect((await client.call('search_ads', { contries: [] })).text).toContain(
      'Unknown argument: contries. The tool takes: filters',
    );
    expect((await client.call('get_ad')).text).toContain('adId is required');
    expect((await client.call('search_adverts')).text).toContain('search_ads');
  });
}
