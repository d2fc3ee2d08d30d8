import { LRUCache } from 'lru-cache';
import type { ToolCall } from '../../mcp/call-tool.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import type { RefusalLimit } from './auth-rate-limit.ts';

/** What the service said to keys, by the owner each is named with: no key is kept. */
export interface KeyStandings {
  /** Whether the service took this owner's key when it last saw it. */
  wasTaken(owner: string): boolean;
  /** Where this owner's key comes from; counted against that address if the service refuses the key. */
  cameFrom(owner: string, address: string): void;
  /** The same catalogue, learning from what calls come back with. */
  learningFrom(catalog: Catalog): Catalog;
}

/** Owners remembered; the least used are forgotten past that. */
const mostOwners = 10_000;

export function createKeyStandings(limit: RefusalLimit): KeyStandings {
  const taken = new LRUCache<string, true>({ max: mostOwners });
  const addresses = new LRUCache<string, string>({ max: mostOwners });
  const callTool = async (catalog: Catalog, call: ToolCall) => {
    const result = await catalog.callTool(call);
    const error = result._meta?.['ad-library/error'] as { kind?: string } | undefined;
    const { tenantId } = call;
    if (error === undefined) taken.set(tenantId, true);
    if (error?.kind === 'unauthorized') {
      taken.delete(tenantId);
      // Counted where the call ends and not where its request does: whoever hangs up first is refused all the same.
      await limit.refused(addresses.get(tenantId) ?? '');
    }
    return result;
  };
  return {
    wasTaken: (owner) => taken.has(owner),
    cameFrom: (owner, address) => addresses.set(owner, address),
    learningFrom: (catalog) => ({ ...catalog, callTool: (call) => callTool(catalog, call) }),
  };
}
