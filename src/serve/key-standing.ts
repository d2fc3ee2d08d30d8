import { LRUCache } from 'lru-cache';
import { createPartition } from '../api/partition.ts';
import type { ToolCall } from '../mcp/call-tool.ts';
import type { Catalog } from '../mcp/catalog.ts';

/** What the service said to keys; only what a keyed hash makes of a key is kept. */
export interface KeyStandings {
  /** Whether the service took this key when it last saw it. */
  wasTaken(key: string): boolean;
  /** Whether the service refused this key since this was last asked. */
  wasJustRefused(key: string): boolean;
  /** The same catalogue, learning from what calls come back with. */
  learningFrom(catalog: Catalog): Catalog;
}

export function createKeyStandings(): KeyStandings {
  const partition = createPartition();
  const taken = new LRUCache<string, true>({ max: 10_000 });
  const refused = new Set<string>();
  const callTool = async (catalog: Catalog, call: ToolCall) => {
    const result = await catalog.callTool(call);
    const error = result._meta?.['ad-library/error'] as { kind?: string } | undefined;
    if (call.key === undefined) return result;
    if (error === undefined) taken.set(partition(call.key), true);
    if (error?.kind === 'unauthorized') {
      taken.delete(partition(call.key));
      refused.add(partition(call.key));
    }
    return result;
  };
  return {
    wasTaken: (key) => taken.has(partition(key)),
    wasJustRefused: (key) => refused.delete(partition(key)),
    learningFrom: (catalog) => ({ ...catalog, callTool: (call) => callTool(catalog, call) }),
  };
}
