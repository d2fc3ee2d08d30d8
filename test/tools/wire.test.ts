import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { operations } from '../../src/api/call.ts';
import { allTools } from '../../src/board/board.ts';
import { toolName } from '../../src/tools/catalog.ts';
import { everyTool } from '../support/every-tool.ts';
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

/** What a host gets, committed. Here it is written anew, for a reader of the change; elsewhere it must be the same. */
const folder = new URL('../wire/', import.meta.url);

test('the tools are listed in the order of the catalogue, each with a committed definition', () => {
  expect([...listed.keys()]).toEqual(names);
  const files = names.map((name) => `${name}.json`);
  const others = readdirSync(folder).filter((file) => !files.includes(file));
  if (!process.env.CI) for (const file of others) rmSync(new URL(file, folder));
  else expect(others).toEqual([]);
});

test('each operation of the API has a tool', () => {
  const called = everyTool.map(({ tool }) => tool);
  expect(called).toEqual(expect.arrayContaining(Object.keys(operations).map(toolName)));
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

  test('matches its committed definition', () => {
    const file = new URL(`${name}.json`, folder);
    const definition = `${JSON.stringify(tool(), null, 2)}\n`;
    if (!process.env.CI) writeFileSync(file, definition);
    expect(readFileSync(file, 'utf8')).toBe(definition);
  });

  test('has a title, a description that says whether it costs credits, and all four hints', () => {
    const { title, description, annotations } = tool();
    expect(title).toMatch(/^[A-Z]/);
    expect(description).toMatch(/Costs credits; the result says how many\.|Not gated by credits\./);
    const hint = expect.any(Boolean);
    expect(annotations).toEqual({
      title,
      readOnlyHint: hint,
      destructiveHint: hint,
      idempotentHint: hint,
      openWorldHint: hint,
    });
    const { operations: called = [] } = allTools.find((one) => one.name === name) ?? {};
    const writes = called.some((operation) => operations[operation].writes);
    if (annotations?.readOnlyHint) expect([annotations.destructiveHint, writes]).toEqual([false, false]);
    if (called.length > 0) expect(annotations?.openWorldHint).toBe(true);
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
  const writing = allTools.filter((tool) => tool.operations.some((operation) => operations[operation].writes));
  expect(writing.length).toBeGreaterThan(0);
  expect(left.map(({ name }) => name)).toEqual(names.filter((name) => writing.every((tool) => tool.name !== name)));
  for (const { name } of writing) expect((await reader.call(name, {})).text).toContain('There is no tool');
  await reader.close();
});

test('a server with chosen tools lists only those', async () => {
  const chosen = await startServer({ config: { tools: ['whoami', 'get_ad'] } });
  expect((await chosen.client.listTools()).tools.map(({ name }) => name)).toEqual(['get_ad', 'whoami']);
  await chosen.close();
});
