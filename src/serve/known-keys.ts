import { LRUCache } from 'lru-cache';
import { createPartition } from '../api/partition.ts';
import type { ToolCall, ToolResult } from '../mcp/call-tool.ts';
import type { Catalog } from '../mcp/catalog.ts';

/** Keys that the service took, so that guesses can be told from them; only what a keyed hash makes of a key is kept. */
export interface KnownKeys {
  has(key: string): boolean;
  /** The same catalogue, learning from what calls come back with. */
  learningFrom(catalog: Catalog): Catalog;
}

export function createKnownKeys(): KnownKeys {
  const partition = createPartition();
  const known = new LRUCache<string, true>({ max: 10_000 });
  const learn = (key: string, result: ToolResult) => {
    const error = result._meta?.['ad-library/error'] as { kind?: string } | undefined;
    if (error === undefined) known.set(partition(key), true);
    else if (error.kind === 'unauthorized') known.delete(partition(key));
  };
  return {
    has: (key) => known.has(partition(key)),
    learningFrom: (catalog) => ({
      ...catalog,
      callTool: async (call: ToolCall) => {
        const result = await catalog.callTool(call);
        if (call.key !== undefined) learn(call.key, result);
        return result;
      },
    }),
  };
}
