import { AdLibraryError } from './errors.ts';
import type { Send } from './send.ts';

/** Removes all that is kept for a key when the service rejects it: its holder has lost the right to it. */
export function withRefusedKeys(send: Send, forget: (tenantId: string) => Promise<void>): Send {
  return async (call) => {
    try {
      return await send(call);
    } catch (error) {
      if (error instanceof AdLibraryError && error.failure.kind === 'unauthorized') await forget(call.tenantId);
      throw error;
    }
  };
}
