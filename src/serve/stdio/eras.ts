import type { Credentials } from '../../api/client.ts';
import { bindV1, requestsV1 } from '../../mcp/bind-v1.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import { claimsModern } from '../messages.ts';
import { EraTransport, type JSONRPCMessage, type Output } from './era-transport.ts';

/** The transports of a session, one for each protocol era, and the one it has settled on. */
export interface Eras {
  transportFor(message: JSONRPCMessage): Promise<EraTransport>;
  settled(): EraTransport | undefined;
  /** Aborts running calls. */
  close(): void;
}

interface ErasOptions {
  catalog: Catalog;
  credentials: Credentials;
  output: Output;
}

/**
 * A client that opens with the envelope of revision 2026-07-28 is served by the SDK that speaks it, any other client by
 * the SDK for the revisions before. Each is loaded when first needed. `server/discover` decides nothing: a client may
 * still go on with an earlier revision (specification, *Lifecycle*).
 */
export function createEras({ catalog, credentials, output }: ErasOptions): Eras {
  let settled: EraTransport | undefined;
  let modern: EraTransport | undefined;

  const openModern = async () => {
    const [{ bindV2, requestsV2 }, { serveStdio }] = await Promise.all([
      import('../../mcp/bind-v2.ts'),
      import('@modelcontextprotocol/server/stdio'),
    ]);
    const transport = new EraTransport(output, requestsV2);
    serveStdio(() => bindV2(catalog, credentials), { transport, legacy: 'reject' });
    return transport;
  };
  const openLegacy = async () => {
    const transport = new EraTransport(output, requestsV1);
    await bindV1(catalog, credentials).connect(transport);
    return transport;
  };

  return {
    async transportFor(message) {
      if (settled) return settled;
      if (!claimsModern(message)) {
        settled = await openLegacy();
        return settled;
      }
      modern ??= await openModern();
      if ('method' in message && 'id' in message && message.method !== 'server/discover') settled = modern;
      return modern;
    },
    settled: () => settled,
    close() {
      for (const transport of new Set([settled, modern])) transport?.onclose?.();
    },
  };
}
