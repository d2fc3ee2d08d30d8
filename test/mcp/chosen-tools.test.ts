import fc from 'fast-check';
import { expect, test } from 'vitest';
import { toolNames } from '../../src/app.ts';
import { describedFilters } from '../../src/library/search/filters.ts';
import { startServer, type TestServer } from '../support/server.ts';

const someTools = fc.subarray([...toolNames], { minLength: 1 });
/** Tools that search ads by filters, in the order of the list. */
const searching = ['search_ads', 'count_ads', 'gather_ads'];

/** Starts servers with some of the tools, and looks at each. */
const withSomeTools = (look: (server: TestServer, tools: string[]) => Promise<void>) =>
  fc.assert(
    fc.asyncProperty(someTools, async (tools) => {
      const server = await startServer({ config: { tools, searchFilters: describedFilters() } });
      await look(server, tools);
      await server.close();
    }),
    { numRuns: 25 },
  );

test('the first tool that takes filters of ads describes them, whichever are chosen', () =>
  withSomeTools(async ({ client }) => {
    const { tools } = await client.listTools();
    const described = tools.flatMap(({ name, inputSchema }) => {
      const filters = inputSchema.properties?.filters as { description: string } | undefined;
      return filters ? [{ name, description: filters.description }] : [];
    });
    const [first, ...others] = described.filter(({ name }) => searching.includes(name));
    if (first) expect(first.description).toMatch(/^Keys: .*displayFormat/s);
    for (const { description } of others) expect(description).toBe(`as in ${first?.name}`);
    const pages = described.find(({ name }) => name === 'search_pages');
    const rest = first ? `The rest as in ${first.name}.` : 'Lists match any of their values';
    if (pages) expect(pages.description).toContain(rest);
  }));

test('only prompts are offered whose tools are all there', async () => {
  const whole = await startServer({});
  const texts = new Map<string, string>();
  const { prompts } = await whole.client.listPrompts();
  const argsOf = ({ arguments: takes = [] }: (typeof prompts)[number]) =>
    Object.fromEntries(takes.map((one) => [one.name, 'x']));
  for (const prompt of prompts) {
    const { messages } = await whole.client.getPrompt({ name: prompt.name, arguments: argsOf(prompt) });
    texts.set(prompt.name, JSON.stringify(messages));
  }
  await whole.close();
  await withSomeTools(async ({ client }, tools) => {
    const missing = toolNames.filter((name) => !tools.includes(name));
    const isUsable = ({ name }: { name: string }) =>
      !missing.some((tool) => new RegExp(`\\b${tool}\\b`).test(texts.get(name) ?? ''));
    expect((await client.listPrompts()).prompts).toEqual(prompts.filter(isUsable));
    for (const prompt of prompts.filter((one) => !isUsable(one)))
      await expect(client.getPrompt({ name: prompt.name, arguments: argsOf(prompt) })).rejects.toThrow(
        'no such prompt',
      );
  });
});

test('the tools of the board and its page are there only with a tool that shows it', () =>
  withSomeTools(async ({ client }) => {
    const { tools } = await client.listTools();
    const shows = tools.some(({ _meta }) => _meta !== undefined && 'ui/resourceUri' in _meta);
    expect(tools.filter(({ name }) => name.startsWith('board_'))).toHaveLength(shows ? 2 : 0);
    expect((await client.listResources()).resources).toHaveLength(shows ? 1 : 0);
  }));

test('the instructions name only tools that are there', () =>
  withSomeTools(async ({ client }, tools) => {
    const missing = toolNames.filter((name) => !tools.includes(name));
    const named = missing.filter((name) => new RegExp(`\\b${name}\\b`).test(client.getInstructions() ?? ''));
    expect(named).toEqual([]);
  }));
