import * as z from 'zod';
import { watchesIn } from '../dataset/watches.ts';
import { quote, sanitizeLine } from '../present/safe-text.ts';
import { namedWatches } from './list-watches.ts';
import { defineTool } from './tool.ts';

export const unwatchAds = defineTool({
  name: 'unwatch_ads',
  title: 'Stop monitoring',
  description: 'Stop monitoring: remove a watch of watch_ads. Its ads stay in the dataset.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  example: () => ({ name: 'Videos in Germany' }),
  operations: [],
  input: z.strictObject({ name: z.string().describe('of the watch') }),
  output: z.looseObject({ removed: z.boolean().describe('true') }),
  async run({ name }, { dataset }) {
    const { own } = await dataset();
    await own.update('watch', (records) => {
      const removed = namedWatches(watchesIn(records), [name]).map((watch) => watch.name);
      return { removed, result: undefined };
    });
    return { removed: true };
  },
  render: (_, { name }) => `Watch ${quote(sanitizeLine(name))} is removed.`,
});
