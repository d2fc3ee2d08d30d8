import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import type { Answer, Send } from '../api/call.ts';
import { AdLibraryError, type Failure, type FailureFacts } from '../api/errors.ts';
import { Identity } from '../api/schemas.ts';
import type { AcceptedKeys } from '../storage/call-state.ts';

/**
 * The largest number of rejected keys whose time of rejection is stored. The time is needed because a call that was sent
 * before the rejection may succeed afterwards. Such an answer does not make the key accepted again.
 */
const maxRejections = 10_000;

/** Passes calls on to the service, and records from its answers which keys it accepts. */
export function recordAcceptedKeys(service: Send, keys: AcceptedKeys): Send {
  /** For each key that was rejected, the number of the last call that had been sent by then. */
  const rejections = new LRUCache<string, number>({ max: maxRejections });
  let calls = 0;
  return async (call) => {
    const { tenantId } = call.owner;
    const number = ++calls;
    const accept = () => (number > (rejections.get(tenantId) ?? 0) ? keys.add(tenantId) : undefined);
    try {
      const answer = await service(call);
      const isWhoami = call.request.operation.name === 'whoami';
      const isFromService = isWhoami ? isIdentity(answer) : Boolean(answer.receipt.requestId);
      if (isFromService) await accept();
      return answer;
    } catch (error) {
      const { kind, status = 0, code, requestId } = error instanceof AdLibraryError ? error.failure : noFailure;
      // A gateway can answer with such a status without checking the key. Only the service sends a code and a request id.
      const isFromService = code !== undefined && requestId !== undefined;
      if (isFromService && kind === 'unauthorized') {
        rejections.set(tenantId, calls);
        await keys.remove(tenantId);
      } else if (isFromService && statusesOfAcceptedKeys.includes(status)) await accept();
      throw error;
    }
  };
}

const noFailure: Partial<Pick<Failure, 'kind'> & FailureFacts> = {};

/** Errors about the account or the request. The service checks the key before it finds them. */
const statusesOfAcceptedKeys = [402, 403, 404, 422, 429];

const identity = z.looseObject({
  authenticated: z.literal(true),
  user: Identity.shape.user.pick({ userId: true }),
});

/** Returns whether an answer is the document's *Identity* for a valid key. A gateway may answer anything with 200. */
const isIdentity = ({ raw }: Answer): boolean => identity.safeParse(raw).success;

/** @throws AdLibraryError if an answer of `whoami` does not confirm that the service accepts the key */
export function assertIdentity(whoami: Answer): void {
  if (isIdentity(whoami)) return;
  throw new AdLibraryError({
    kind: 'unauthorized',
    problem: 'The service does not say whose key this is (whoami), so nothing that is stored for the key is shown.',
    sent: false,
  });
}
