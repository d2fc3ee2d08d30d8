import { AdLibraryError } from './errors.ts';
import { operations } from './operations.ts';
import { fingerprint, gatedOnly, type Send } from './send.ts';

/** Keys that the service has rejected, and not accepted since. Nothing that is kept is served to whoever has one. */
export interface RejectedKeys {
  has(tenantId: string): Promise<boolean>;
  /** Only keys that have been accepted before are remembered: for others nothing is kept, and anybody can make them up. */
  add(tenantId: string): Promise<void>;
  /** The service has answered. @param isNamed with the id of the request, which nobody else gives */
  answered(tenantId: string, isNamed: boolean): void;
}

/** Learns from every answer whether the key is accepted. A gateway that rejects it has no more power than the service. */
export function withVerdicts(send: Send, keys: RejectedKeys): Send {
  return async (call) => {
    try {
      const answer = await send(call);
      keys.answered(call.tenantId, Boolean(answer.receipt.requestId));
      return answer;
    } catch (error) {
      if (error instanceof AdLibraryError && error.failure.kind === 'unauthorized') await keys.add(call.tenantId);
      throw error;
    }
  };
}

/** Asks whose key it is before a rejected one is answered from what is kept, or charged for it again. */
export function withAcceptedKeys(send: Send, keys: RejectedKeys): Send {
  return gatedOnly(send, async (call) => {
    const { tenantId, apiKey, signal } = call;
    const whoami = { operation: operations.whoami, path: {}, query: {} };
    const ask = () => send({ ...whoami, fingerprint: fingerprint(whoami), tenantId, apiKey, signal });
    await untilAccepted(keys, tenantId, ask);
    return send(call);
  });
}

/** Throws unless the service accepts the key again, if it was rejected. */
export async function untilAccepted(keys: RejectedKeys, tenantId: string, ask: () => Promise<unknown>): Promise<void> {
  if (!(await keys.has(tenantId))) return;
  await ask();
  if (await keys.has(tenantId)) throw notAccepted();
}

const notAccepted = () =>
  new AdLibraryError({
    kind: 'unauthorized',
    problem: 'The key was rejected, and the answers since then do not say that they come from the service.',
    sent: false,
  });
