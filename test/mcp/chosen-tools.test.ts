import fc from 'fast-check';
import { expect, test } from 'vitest';
import { toolNames } from '../../src/app.ts';
import { libraryFilters } from '../../src/library/search/filters.ts';
import { startServer } from '../support/server.ts';

/** Tools with filters for ads, in the order of the tool list. */
const searching = ['search_ads', 'count_ads', 'gather_ads'];
const isNamedIn = (text: string) => (tool: string) => new RegExp(`\\b${tool}\\b`).test(text);

test('the tool descriptions and prompts never mention a tool that is turned off in the settings', async () => {
  const serverWithAllTools = await startServer({});
  const { prompts } = await serverWithAllTools.client.listPrompts();
  const buildArguments = ({ arguments: promptArguments = [] }: (typeof prompts)[number]) =>
    Object.fromEntries(promptArguments.map((one) => [one.name, 'x']));
  const texts = new Map<string, string>();
  for (const prompt of prompts) {
    const { messages } = await serverWithAllTools.client.getPrompt({
      name: prompt.name,
      arguments: buildArguments(prompt),
    });
    texts.set(prompt.name, JSON.stringify(messages));
  }
  await serverWithAllTools.close();

  const readTexts = async (chosen: string[]) => {
    const { client, close } = await startServer({ config: { tools: chosen, searchFilters: libraryFilters } });
    const missing = toolNames.filter((name) => !chosen.includes(name));
    expect(missing.filter(isNamedIn(client.getInstructions() ?? ''))).toEqual([]);

    const isUsable = ({ name }: { name: string }) => !missing.some(isNamedIn(texts.get(name) ?? ''));
    expect((await client.listPrompts()).prompts).toEqual(prompts.filter(isUsable));
    for (const prompt of prompts.filter((one) => !isUsable(one)))
      await expect(client.getPrompt({ name: prompt.name, arguments: buildArguments(prompt) })).rejects.toThrow(
        'no such prompt',
      );

    const { tools } = await client.listTools();
    // The board tools are listed only together with a tool that opens the board.
    const opensBoard = tools.some(({ _meta }) => _meta !== undefined && 'ui/resourceUri' in _meta);
    expect(tools.filter(({ name }) => name.startsWith('board_'))).toHaveLength(opensBoard ? 2 : 0);
    expect((await client.listResources()).resources).toHaveLength(opensBoard ? 1 : 0);

    // Only the first tool with filters describes them. The other tools refer to it.
    const described = tools.flatMap(({ name, inputSchema }) => {
      const filters = inputSchema.properties?.filters as { description: string } | undefined;
      return filters ? [{ name, description: filters.description }] : [];
    });
    const [first, ...otherTools] = described.filter(({ name }) => searching.includes(name));
    if (first) expect(first.description).toMatch(/^Keys: .*displayFormat/s);
    for (const { description } of otherTools) expect(description).toBe(`The same keys as in ${first?.name}.`);
    const pages = described.find(({ name }) => name === 'search_pages');
    const expectedRules = first ? `The other rules are as in ${first.name}.` : 'Lists match any of their values';
    if (pages) expect(pages.description).toContain(expectedRules);
    await close();
  };
  await fc.assert(fc.asyncProperty(fc.subarray([...toolNames], { minLength: 1 }), readTexts), { numRuns: 30 });
});
