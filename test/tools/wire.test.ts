import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { allTools } from '../../src/board/board.ts';
import { startServer, type TestServer } from '../support/server.ts';

type Listed = Awaited<ReturnType<TestServer['client']['listTools']>>['tools'][number];

let server: TestServer;
let listed: Map<string, Listed>;
beforeAll(async () => {
  server = await startServer({});
  listed = new Map((await server.client.listTools()).tools.map((tool) => [tool.name, tool]));
});
afterAll(() => server.close());

const names = allTools.map(({ name }) => name);

test('there is one tool for each of the ten operations, those for research, and those that only the board calls', () => {
  expect([...listed.keys()]).toEqual(names);
  expect(names.toSorted()).toEqual([
    'add_collection_item',
    'board_ads',
    'board_pictures',
    'count_ads',
    'export_ads',
    'gather_ads',
    'get_account',
    'get_ad',
    'get_credits',
    'get_page',
    'list_collection_items',
    'list_collections',
    'query_ads',
    'search_ads',
    'search_pages',
    'view_ads',
    'whoami',
  ]);
});

/** Every schema within a schema, with where it stands. */
function* schemasIn(schema: unknown, path = ''): Generator<[string, Record<string, unknown>]> {
  if (typeof schema !== 'object' || schema === null) return;
  // The names of arguments are no words of JSON Schema.
  if (!Array.isArray(schema) && !path.endsWith('/properties')) yield [path, schema as Record<string, unknown>];
  for (const [key, inner] of Object.entries(schema)) yield* schemasIn(inner, `${path}/${key}`);
}

describe.each(names)('%s', (name) => {
  const tool = () => listed.get(name) as Listed;

  test('matches its committed definition', async () => {
    await expect(`${JSON.stringify(tool(), null, 2)}\n`).toMatchFileSnapshot(`../wire/${name}.json`);
  });

  test('has a title, a description that says whether it costs credits, and all four hints', () => {
    const { title, description, annotations } = tool();
    expect(title).toMatch(/^[A-Z]/);
    expect(description).toMatch(/Costs credits; the result says how many\.|Not gated by credits\./);
    expect(annotations).toEqual({
      title,
      readOnlyHint: !['add_collection_item', 'export_ads'].includes(name),
      destructiveHint: false,
      idempotentHint: name !== 'export_ads',
      openWorldHint: !['query_ads', 'export_ads', 'board_ads'].includes(name),
    });
  });

  test('takes flat arguments in the JSON Schema that every host knows', () => {
    const { inputSchema } = tool();
    expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
    for (const [path, schema] of schemasIn(inputSchema)) {
      for (const word of [
        'anyOf',
        'oneOf',
        'allOf',
        'not',
        '$ref',
        '$defs',
        'exclusiveMinimum',
        'exclusiveMaximum',
        'propertyNames',
        'const',
        'format',
        '$schema',
      ]) {
        expect(schema, path).not.toHaveProperty(word);
      }
      expect(Array.isArray(schema.type), path).toBe(false);
    }
  });

  test('lists an output schema that allows new fields of the service', () => {
    for (const [path, schema] of schemasIn(tool().outputSchema)) {
      expect(schema, path).not.toHaveProperty('enum');
      expect(schema, path).not.toHaveProperty('const');
      if (schema.type === 'object') expect([undefined, true], path).toContain(schema.additionalProperties);
    }
    expect(tool().outputSchema?.required).toContain('receipt');
  });
});

test('a read-only server lists no tool that writes at the service, and does not know it', async () => {
  const reader = await startServer({ config: { readOnly: true } });
  const { tools: left } = await reader.client.listTools();
  expect(left).toHaveLength(names.length - 1);
  expect(left.map(({ name }) => name)).not.toContain('add_collection_item');
  expect((await reader.call('add_collection_item', {})).text).toContain('There is no tool');
  await reader.close();
});

test('a server with chosen tools lists only those', async () => {
  const chosen = await startServer({ config: { tools: ['whoami', 'get_ad'] } });
  expect((await chosen.client.listTools()).tools.map(({ name }) => name)).toEqual(['get_ad', 'whoami']);
  await chosen.close();
});
