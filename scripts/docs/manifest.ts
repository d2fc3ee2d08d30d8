import { version } from '../../src/app.ts';
import { describe } from '../../src/mcp/described-tools.ts';
import { prompts } from '../../src/mcp/prompts.ts';
import { tools } from '../../src/tools/catalog.ts';

/**
 * The parts of the desktop manifest that the code is the author of, as its format has them. MCPB manifest 0.3: what 0.4 adds
 * is for Python alone, and not every host takes it yet.
 */
export const withCatalog = (manifest: object): object => ({
  ...manifest,
  version,
  tools: tools.map((tool) => ({ name: tool.name, description: describe(tool) })),
  prompts: prompts.map(({ name, description, arguments: given, write }) => {
    const names = given.map((argument) => argument.name);
    const text = write(Object.fromEntries(names.map((argument) => [argument, `"\${arguments.${argument}}"`])));
    return { name, description, arguments: names, text };
  }),
});
