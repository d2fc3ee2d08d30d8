import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import type { SendCall, ServiceResponse } from '../api/call.ts';
import { AdLibraryError, type CommonFailureFields, type Failure } from '../api/errors.ts';
import { Identity } from '../api/schemas.ts';
import { createLruOptions } from '../lru-options.ts';
import type { AcceptedKeys } from '../storage/call-state.ts';

/**
 * The maximum number of rejected API keys that the server remembers. A call that was sent before the rejection may
 * still succeed afterwards, but must not mark the rejected key as accepted again.
 */
const maxRememberedRejections = 10_000;

/** Wraps `sendCall`. The wrapper updates `acceptedKeys` after each response and each error of the service. */
export function wrapWithKeyRecording(sendCall: SendCall, acceptedKeys: AcceptedKeys): SendCall {
  /**
   * For each rejected API key, the number of calls that had been sent when the rejection arrived. A call with this
   * number or a lower number was sent before the rejection, so its response does not mark the key as accepted.
   */
  const callCountsAtRejection = new LRUCache<string, number>(createLruOptions(maxRememberedRejections));
  let sentCallCount = 0;
  return async (call) => {
    const { tenantId } = call.owner;
    const callNumber = ++sentCallCount;
    const markAccepted = () =>
      callNumber > (callCountsAtRejection.get(tenantId) ?? 0) ? acceptedKeys.add(tenantId) : undefined;
    try {
      const response = await sendCall(call);
      const isWhoami = call.request.operation.name === 'whoami';
      const isFromService = isWhoami ? isIdentityResponse(response) : Boolean(response.receipt.requestId);
      if (isFromService) await markAccepted();
      return response;
    } catch (error) {
      const { kind, status = 0, code, requestId } = error instanceof AdLibraryError ? error.failure : emptyFailure;
      // A gateway may return status 401 without checking the key. Only the service itself sends an error code and a
      // request id.
      const isFromService = code !== undefined && requestId !== undefined;
      if (isFromService && kind === 'unauthorized') {
        callCountsAtRejection.set(tenantId, sentCallCount);
        await acceptedKeys.remove(tenantId);
      } else if (isFromService && statusesOfAcceptedKeys.includes(status)) await markAccepted();
      throw error;
    }
  };
}

const emptyFailure: Partial<Pick<Failure, 'kind'> & CommonFailureFields> = {};

/** The status codes that the service returns only after it has accepted the API key, e.g. 402 for too few credits. */
const statusesOfAcceptedKeys = [402, 403, 404, 422, 429];

const identitySchema = z.looseObject({
  authenticated: z.literal(true),
  user: Identity.shape.user.pick({ userId: true }),
});

/**
 * Returns true if a response of the `whoami` API operation has the form that the API document (*Identity*) defines for
 * a valid key. The status 200 alone is no proof, because a gateway may send this status with any body.
 */
const isIdentityResponse = ({ rawBody }: ServiceResponse): boolean => identitySchema.safeParse(rawBody).success;

/**
 * Checks that a response of the `whoami` API operation confirms the caller's API key.
 * @throws AdLibraryError `unauthorized` if the response does not confirm the key
 */
export function assertKeyAccepted(whoamiResponse: ServiceResponse): void {
  if (isIdentityResponse(whoamiResponse)) return;
  throw new AdLibraryError({
    kind: 'unauthorized',
    problem: 'The service did not confirm whose key this is (whoami), so data that is stored for the key is not shown.',
    wasSent: false,
  });
}
