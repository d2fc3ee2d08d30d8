import { LRUCache } from 'lru-cache';
import { createPartition } from '../api/partition.ts';
import type { ToolCall } from '../mcp/call-tool.ts';
import type { Catalog } from '../mcp/catalog.ts';

export type Standing = 'taken' | 'refused' | undefined;

/** What the service last said to a key; only what a keyed hash makes of a key is kept. */
export interface KeyStandings {
  of(key: string): Standing;
  /** The same catalogue, learning from what calls come back with. */
  learningFrom(catalog: Catalog): Catalog;
}

export function createKeyStandings(): KeyStandings {
  const partition = createPartition();
  const standings = new LRUCache<string, NonNullable<Standing>>({ max: 10_000 });
  const callTool = async (catalog: Catalog, call: ToolCall) => {
    const result = await catalog.callTool(call);
    const error = result._meta?.['ad-library/error'] as { kind?: string } | undefined;
    const standing = error === undefined ? 'taken' : error.kind === 'unauthorized' ? 'refused' : undefined;
    if (call.key !== undefined && standing) standings.set(partition(call.key), standing);
    return result;
  };
  return {
    of: (key) => standings.get(partition(key)),
    learningFrom: (catalog) => ({ ...catalog, callTool: (call) => callTool(catalog, call) }),
  };
}
