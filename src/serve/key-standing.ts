import { LRUCache } from 'lru-cache';
import type { ToolCall } from '../mcp/call-tool.ts';
import type { Catalog } from '../mcp/catalog.ts';

/** What the service said to keys, by the owner each is named with: no key is kept. */
export interface KeyStandings {
  /** Whether the service took this owner's key when it last saw it. */
  wasTaken(owner: string): boolean;
  /** Whether the service refused this owner's key since this was last asked. */
  wasJustRefused(owner: string): boolean;
  /** The same catalogue, learning from what calls come back with. */
  learningFrom(catalog: Catalog): Catalog;
}

export function createKeyStandings(): KeyStandings {
  const taken = new LRUCache<string, true>({ max: 10_000 });
  // A write whose caller hung up is refused after the last one who asks has gone, so not every entry is asked for.
  const refused = new LRUCache<string, true>({ max: 10_000 });
  const callTool = async (catalog: Catalog, call: ToolCall) => {
    const result = await catalog.callTool(call);
    const error = result._meta?.['ad-library/error'] as { kind?: string } | undefined;
    const { key, owner } = call;
    if (key === undefined) return result;
    if (error === undefined) taken.set(owner, true);
    if (error?.kind === 'unauthorized') {
      taken.delete(owner);
      refused.set(owner, true);
    }
    return result;
  };
  return {
    wasTaken: (owner) => taken.has(owner),
    wasJustRefused: (owner) => refused.delete(owner),
    learningFrom: (catalog) => ({ ...catalog, callTool: (call) => callTool(catalog, call) }),
  };
}
