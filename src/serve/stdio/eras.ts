import type { Credentials } from '../../api/client.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import { claimsModern } from '../messages.ts';
import { EraTransport, type JSONRPCMessage, type Output } from './era-transport.ts';

/** The transports of a session, one for each protocol era, and the one it has settled on. */
export interface Eras {
  transportFor(message: JSONRPCMessage): Promise<EraTransport>;
  settled(): EraTransport | undefined;
  /** Aborts what is under way. */
  close(): void;
}

interface ErasOptions {
  catalog: Catalog;
  credentials: Credentials;
  output: Output;
}

/**
 * Whoever opens with revision 2026-07-28's envelope gets the SDK line that speaks it, everybody else the line that
 * speaks the revisions before; each is loaded when it is first needed. A `server/discover` is only a question: a client
 * may still go on in the old way (specification, *Lifecycle*).
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
    const { bindV1, requestsV1 } = await import('../../mcp/bind-v1.ts');
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
