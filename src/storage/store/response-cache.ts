import { randomUUID } from 'node:crypto';
import { createAbortError } from '../../api/abort.ts';
import type { ServiceResponse } from '../../api/call.ts';
import { getResponseSchema } from '../../api/client.ts';
import { isDeeperThan } from '../../api/json.ts';
import type { OperationName } from '../../api/operations.ts';
import type {
  CachedResponse,
  ClaimedCall,
  ClaimRequest,
  ClaimResult,
  ResponseCache,
  StateOptions,
} from '../call-state.ts';
import { createMemoryResponseCache, isNewerThan } from '../memory-response-cache.ts';
import { longTermTtlMs, type StoreAccess } from './access.ts';
import type { LeaseHolder } from './leases.ts';

/**
 * The stored document of one API call. It contains the cached response. While a replica is sending the call, it also
 * contains the replica's claim (the right to send the call).
 */
interface StoredCall {
  cached?: { operation: OperationName; response: StoredResponse; arrivedAt: number } | undefined;
  /** The claim (the right to send the call) of the process that is currently sending the call. */
  claim?: StoredClaim;
  /** The id of the latest claim (the right to send the call) whose process died while sending the call. */
  lostClaimId?: string | undefined;
}

interface StoredClaim extends LeaseHolder {
  id: string;
}

/**
 * An API response without its parsed `validatedBody`, which is not stored because it can be parsed again from
 * `rawBody`.
 */
type StoredResponse = Omit<ServiceResponse, 'validatedBody'>;

/** How long the store remembers that a process is sending a call, or died while sending it, in milliseconds. */
const claimTtlMs = 3_600_000;
/**
 * The maximum nesting depth of a response that is written to the store. Before Node 26, serializing a deeper value
 * causes a stack overflow. Responses of the service have about eight levels.
 */
const maxResponseDepth = 500;
/**
 * The memory limit for the responses that the store did not accept, so that only this process caches them, in bytes.
 */
const maxLocalCacheBytes = 64 * 1024 * 1024;

interface StoredResponsesOptions extends Pick<StateOptions, 'ttlMs' | 'now'> {
  /**
   * True if a call may be sent again after the process that sent it has died. The service may then charge twice for the
   * call.
   */
  canResendLostCalls?: boolean;
}

/**
 * Opens the response cache that replicas share.
 *
 * Each call is one document, which contains the cached response and the claim of the replica that is sending the call.
 * A claim is the right to send the call. Because both are in one document, a replica that obtains the claim knows that
 * no response was stored meanwhile, and a replica that waits for the claim finds the response. If the store does not
 * accept a response, only this replica caches it.
 */
export function openStoredResponseCache(
  access: StoreAccess,
  { ttlMs, now, canResendLostCalls = false }: StoredResponsesOptions,
): ResponseCache {
  const { documents, store, leases, queue, buildKey } = access;
  const localCache = createMemoryResponseCache({ maxBytes: maxLocalCacheBytes, ttlMs, now });
  const getResponseKey = (tenantId: string, name: string) => buildKey(tenantId, 'answer', name);
  const getGroupKey = (tenantId: string, group: string) => buildKey(tenantId, 'removed', group);
  /**
   * Groups of outdated responses, e.g. all lists of one collection, that could not yet be marked as removed in the
   * store. Until they are marked, this replica does not cache responses of these groups.
   */
  const unmarkedGroups = new Set<string>();
  /**
   * The ids of claims of dead processes that are still in the store, although `claim` has already returned `lost` for
   * them. Further calls ignore these claims.
   */
  const reportedClaimIds = new Set<string>();
  /**
   * Returns the cached response of a document, or undefined if there is no response or if it has expired.
   * @param storeTime the current time of the store
   */
  const parseCachedResponse = (doc: StoredCall | undefined, storeTime: number): CachedResponse | undefined => {
    const ageMs = storeTime - (doc?.cached?.arrivedAt ?? Number.NEGATIVE_INFINITY);
    if (doc?.cached === undefined || Math.abs(ageMs) >= ttlMs) return undefined;
    const { operation, response } = doc.cached;
    const parsedValue = getResponseSchema(operation).safeParse(response.rawBody);
    return parsedValue.success
      ? { response: { ...response, validatedBody: parsedValue.data }, arrivedAt: now() - ageMs }
      : undefined;
  };

  const get = async (tenantId: string, name: string): Promise<CachedResponse | undefined> => {
    const key = getResponseKey(tenantId, name);
    const reply = await documents.read<StoredCall>(key).catch(() => undefined);
    // While the store is unreachable, use the document that this replica last read.
    const storedDocument = reply ?? documents.getCached<StoredCall>(key);
    const localResponse = await localCache.get(tenantId, name);
    if (localResponse && localResponse.arrivedAt >= (storedDocument?.doc?.cached?.arrivedAt ?? 0)) return localResponse;
    return (
      storedDocument &&
      parseCachedResponse(
        storedDocument.doc,
        storedDocument.readAt + ('ageMs' in storedDocument ? storedDocument.ageMs : 0),
      )
    );
  };

  const claim = async (call: ClaimedCall, name: string | undefined, request: ClaimRequest): Promise<ClaimResult> => {
    if (name === undefined || !store.isUp()) return localCache.claim(call, name, request);
    const {
      request: { operation },
      owner: { tenantId },
      signal,
    } = call;
    const { arrivedAfter = Number.NEGATIVE_INFINITY, onProcessDied } = request;
    const [claimId, key] = [randomUUID(), getResponseKey(tenantId, name)];
    leases.open(claimId);
    let isOpen = true;
    const close = () => {
      isOpen = false;
      leases.close(claimId);
    };
    const endClaim = async (next = omitClaim) => {
      if (!isOpen) return;
      close();
      const endOwnClaim = (doc: StoredCall | undefined) => ({
        ...(doc?.claim?.id === claimId && { next: next(doc), ttlMs: Math.max(ttlMs, claimTtlMs) }),
        result: undefined,
      });
      await queue.write(() => documents.update<StoredCall, void>(key, endOwnClaim));
    };
    const cacheResponse = async (cached: CachedResponse) => {
      const { validatedBody, ...response } = cached.response;
      const isStoredInStore =
        !store.isNearlyFull() &&
        !isDeeperThan(maxResponseDepth, response.rawBody) &&
        (await documents
          .write<StoredCall>(
            key,
            (arrivedAt) => ({ cached: { operation: operation.name, response, arrivedAt } }),
            ttlMs,
          )
          .then(() => true)
          .catch(() => false));
      if (isStoredInStore) localCache.forget(tenantId, name);
      const isCached = isStoredInStore || localCache.put(tenantId, name, cached);
      if (isStoredInStore) close();
      await endClaim();
      return isCached;
    };
    /**
     * Returns true if another call holds the claim (the right to send the request). A claim that this process has ended
     * or has reported as lost does not count, although the store may still contain it.
     */
    const isHeldByOtherCall = (heldClaim: StoredClaim) =>
      heldClaim.id !== claimId && !leases.isClosed(heldClaim.id, heldClaim) && !reportedClaimIds.has(heldClaim.id);
    /** Replaces the claim of a dead process with `lostClaimId`, so that the next call can send the request again. */
    const markClaimAsLost = (lostClaimId: string) => {
      const replaceClaim = (doc: StoredCall | undefined) => ({
        ...(doc?.claim?.id === lostClaimId && { next: { cached: doc.cached, lostClaimId }, ttlMs: claimTtlMs }),
        result: undefined,
      });
      return queue.write(async () => {
        await documents.update<StoredCall, void>(key, replaceClaim);
        reportedClaimIds.delete(lostClaimId);
      });
    };
    const grantedClaim: ClaimResult = {
      kind: 'granted',
      cacheResponse,
      removeResponse: () => endClaim(() => null),
      endClaim: () => endClaim(),
    };
    try {
      for (let awaitedClaimId: string | undefined; ; ) {
        const step = await documents.update<StoredCall, ClaimStep>(key, (doc, storeTime, version) => {
          const { cached, lostClaimId } = doc ?? {};
          const otherClaim = doc?.claim && isHeldByOtherCall(doc.claim) ? doc.claim : undefined;
          const cachedResponse = parseCachedResponse(doc, storeTime);
          if (cachedResponse && isNewerThan(cachedResponse, arrivedAfter, now()))
            return { result: { kind: 'cached', cachedResponse } };
          const isAbandoned = otherClaim && leases.isAbandoned(otherClaim, storeTime);
          if (isAbandoned && !canResendLostCalls) return { result: { kind: 'lost', id: otherClaim.id } };
          if (otherClaim && !isAbandoned) return { result: { kind: 'waits', id: otherClaim.id, version } };
          if (awaitedClaimId !== undefined && lostClaimId === awaitedClaimId)
            return { result: { kind: 'lost', id: lostClaimId } };
          const next = {
            ...(cachedResponse && { cached }),
            lostClaimId,
            claim: { id: claimId, owner: leases.owner, takenAt: storeTime },
          };
          return { next, ttlMs: Math.max(ttlMs, claimTtlMs), result: { kind: 'granted' } };
        });
        if (step.kind === 'cached') {
          close();
          return step;
        }
        if (step.kind === 'granted') return grantedClaim;
        if (step.kind === 'lost') {
          await onProcessDied(step.id);
          // If this call was cancelled, its caller does not get the result `lost`. Then leave the claim in the store, so
          // that the next call gets this result. Without the claim, the next call would send the request again.
          signal.throwIfAborted();
          close();
          reportedClaimIds.add(step.id);
          void markClaimAsLost(step.id);
          return { kind: 'lost' };
        }
        awaitedClaimId = step.id;
        await documents.waitForChange(key, step.version, signal);
      }
    } catch {
      // The store failed, so it may or may not contain the claim of this call. Send the request without waiting for
      // other replicas.
      if (!signal.aborted) return grantedClaim;
      void endClaim();
      throw createAbortError(signal, false);
    }
  };

  return {
    get,
    claim,
    resolveName: async (tenantId, { group, fingerprint }) => {
      if (group === undefined) return fingerprint;
      const key = getGroupKey(tenantId, group);
      const groupDocument = await documents.read(key).catch(() => undefined);
      return groupDocument === undefined || unmarkedGroups.has(key)
        ? undefined
        : `${groupDocument.version} ${fingerprint}`;
    },
    forgetGroup: async (tenantId, group) => {
      const key = getGroupKey(tenantId, group);
      unmarkedGroups.add(key);
      await queue.write(async () => {
        await documents.write(key, () => ({}), longTermTtlMs);
        unmarkedGroups.delete(key);
      });
    },
  };
}

type ClaimStep =
  | Extract<ClaimResult, { kind: 'cached' }>
  | { kind: 'granted' }
  | { kind: 'waits'; id: string; version: string }
  | { kind: 'lost'; id: string };

const omitClaim = ({ cached, lostClaimId }: StoredCall): StoredCall | null =>
  cached || lostClaimId ? { cached, lostClaimId } : null;
