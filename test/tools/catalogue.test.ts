import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect } from 'vitest';
import { canCostCredits, operations } from '../../src/api/operations.ts';
import { allTools } from '../../src/board/board.ts';
import { getToolName } from '../../src/mcp/load-tool.ts';
import { tools } from '../../src/tools/catalog.ts';
import { joinNames } from '../../src/views/safe-text.ts';
import { makeDemoCalls } from '../support/demo-calls.ts';
import { singleCallTools } from '../support/every-tool.ts';
import { createCreditHeaders, respondWithError, respondWithJson } from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';
import type { Result, TestServer } from '../support/server.ts';

/** A tool in the list that MCP hosts receive. */
type ListedTool = Awaited<ReturnType<TestServer['client']['listTools']>>['tools'][number];

const test = upstreamTest({ config: { cacheSeconds: 0 } })
  .extend('listed', { scope: 'file' }, async ({ server }) => (await server.client.listTools()).tools)
  .extend(
    'named',
    ({ listed }) =>
      (name: string) =>
        listed.find((tool) => tool.name === name) as ListedTool,
  );

const names = allTools.map(({ name }) => name);

/** The committed tool definitions. A local run updates them, so that changes show in the diff. In CI, they must match. */
const folder = new URL('../wire/', import.meta.url);

test('every tool has a definition file in the folder test/wire', ({ listed }) => {
  expect(listed.map(({ name }) => name)).toEqual(names);
  const files = names.map((name) => `${name}.json`);
  const otherFiles = readdirSync(folder).filter((file) => !files.includes(file));
  if (!process.env.CI) for (const file of otherFiles) rmSync(new URL(file, folder));
  else expect(otherFiles).toEqual([]);
});

test('every operation of the API can be called through a tool', () => {
  const called = singleCallTools.map(({ tool }) => tool);
  expect(called).toEqual(expect.arrayContaining(Object.keys(operations).map(getToolName)));
});

/** Yields a schema and all schemas nested in it, each with its path. */
function* listSchemas(schema: unknown, path = ''): Generator<[string, Record<string, unknown>]> {
  if (typeof schema !== 'object' || schema === null) return;
  // The keys of `properties` are argument names, not keywords of JSON Schema.
  if (!Array.isArray(schema) && !path.endsWith('/properties')) yield [path, schema as Record<string, unknown>];
  for (const [key, inner] of Object.entries(schema)) yield* listSchemas(inner, `${path}/${key}`);
}

/** JSON Schema keywords that at least one host does not support. */
const unsupportedKeywords =
  'anyOf oneOf allOf not $ref $defs exclusiveMinimum exclusiveMaximum propertyNames const format $schema'.split(' ');

describe.each(names)('The tool %s', (name) => {
  test('the definition of a tool matches its file in the folder test/wire', ({ named }) => {
    const file = new URL(`${name}.json`, folder);
    const definition = `${JSON.stringify(named(name), null, 2)}\n`;
    if (!process.env.CI) writeFileSync(file, definition);
    expect(readFileSync(file, 'utf8')).toBe(definition);
  });

  test('every tool has a title, a description that ends with its cost, and all four MCP hints', ({ named }) => {
    const { title, description, annotations } = named(name);
    expect(title).toMatch(/^[A-Z]/);
    expect(description).toMatch(/ (Costs credits|Free)\.$/);
    const hint = expect.any(Boolean);
    const hints = { readOnlyHint: hint, destructiveHint: hint, idempotentHint: hint, openWorldHint: hint };
    expect(annotations).toEqual({ title, ...hints });
    const { operations: called = [] } = allTools.find((one) => one.name === name) ?? {};
    const writes = called.some((operation) => operations[operation].changesData);
    if (annotations?.readOnlyHint) expect([annotations.destructiveHint, writes]).toEqual([false, false]);
    if (called.length > 0) expect(annotations?.openWorldHint).toBe(true);
  });

  test('the description of a tool has at most 1,000 characters, and every argument has a description', ({ named }) => {
    const { description = '', inputSchema } = named(name);
    // OpenAI's API rejects the whole tool list if one description has more than 1,024 characters.
    expect(description.length).toBeLessThanOrEqual(1000);
    for (const [path, schema] of listSchemas(inputSchema))
      if (/\/properties\/[^/]+$/.test(path)) expect(schema, path).toHaveProperty('description');
  });

  test('the schemas of a tool use only JSON Schema keywords that all hosts support', ({ named }) => {
    const { inputSchema, outputSchema } = named(name);
    expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
    for (const [path, schema] of listSchemas(inputSchema)) {
      const unknown = unsupportedKeywords.filter((word) => word in schema);
      expect({ path, unknown, isUnion: Array.isArray(schema.type) }).toEqual({ path, unknown: [], isUnion: false });
    }
    for (const [path, schema] of listSchemas(outputSchema)) {
      expect('enum' in schema || 'const' in schema, path).toBe(false);
      if (schema.type === 'object') expect([undefined, true], path).toContain(schema.additionalProperties);
    }
    if (outputSchema) expect(outputSchema.required).toContain('receipt');
    else expect(tools.every((one) => one.name !== name)).toBe(true);
  });
});

test('a read-only server neither lists nor runs tools that write data', async ({ start }) => {
  const reader = await start({ readOnly: true });
  const listedNames = (await reader.client.listTools()).tools.map(({ name }) => name);
  const writingTools = allTools.filter((tool) =>
    tool.operations.some((operation) => operations[operation].changesData),
  );
  expect(writingTools.length).toBeGreaterThan(0);
  expect(listedNames).toEqual(names.filter((name) => writingTools.every((tool) => tool.name !== name)));
  for (const { name } of writingTools) expect((await reader.call(name, {})).text).toContain('There is no tool');
});

test('the tool list, as a model reads it, has at most 4,200 tokens', async ({ start }) => {
  const { client } = await start({ demo: true });
  const readableTools = (await client.listTools()).tools.filter(({ name }) => tools.some((tool) => tool.name === name));
  const text = JSON.stringify(
    readableTools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
  );
  expect(countTokens(text)).toBeLessThanOrEqual(4200);
});

describe('Tool names in texts that a model reads', () => {
  const operationIds = Object.keys(operations).filter((name) => !names.includes(name));
  const ids = new RegExp(`\\b(?:${operationIds.join('|')})\\b`);
  const expectToolNames = ({ raw }: Pick<Result, 'raw'>) => expect(JSON.stringify(raw)).not.toMatch(ids);

  test('results and server instructions mention tools by name, but never API operations', async ({ start }) => {
    const server = await start({ demo: true });
    for (const { result } of await makeDemoCalls(server.call)) expectToolNames(result);
    const { data } = await server.call('get_credits');
    expect(Object.keys(data.thisServer.prices)).toContain('list_collection_items');
    const [foundAd] = (await server.call('search_ads', { limit: 1 })).data.items;
    expectToolNames(await server.call('get_ad', { adId: foundAd?.id, seen: true }));
    expect(JSON.stringify(await server.client.listTools())).not.toMatch(ids);
    expect(server.client.getInstructions()).not.toMatch(ids);
  });

  test('error messages mention tools by name, but never API operations', async ({ upstream, start }) => {
    const server = await start({ creditBudget: 3 });
    upstream.respondWith(respondWithJson({ items: 1 }));
    for (const { tool, args } of singleCallTools) expectToolNames(await server.call(tool, args));
    upstream.respondWith(
      respondWithJson(
        { items: [{ id: 'a' }], cursor: 'b', hasMore: true, id: 'a' },
        { headers: createCreditHeaders(2) },
      ),
    );
    for (const { tool, args } of singleCallTools) expectToolNames(await server.call(tool, args));
    const { error, ...refused } = await server.call('search_ads', { limit: 50 });
    expect(error?.kind).toBe('credit_budget');
    expectToolNames(refused);
    expectToolNames(await server.call('search_ads', { cursor: '@50.abcdefghijk' }));
  });

  test('an error about insufficient credits mentions only tools that are available', async ({ upstream, start }) => {
    upstream.respondWith(respondWithError(402));
    for (const [offered, working] of [
      [
        undefined,
        `${joinNames(tools.flatMap((tool) => (canCostCredits(tool) ? [] : tool.name)))}, and cached answers.`,
      ],
      [['search_ads', 'whoami'], 'whoami, and cached answers.'],
      [['search_ads'], 'cached answers.'],
    ] as const) {
      const { call } = await start(offered && { tools: [...offered] });
      expect((await call('search_ads')).text).toContain(`Still working: ${working}`);
    }
  });
});
