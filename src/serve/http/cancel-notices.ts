/** Running requests, so that a cancel notice, which comes in a request of its own, finds the one it cancels. */
export interface CancelNotices {
  /** Calls `cancel` when a notice names this request; returns a function to call when the request has ended. */
  listen(tenantId: string, id: unknown, cancel: () => void): () => void;
  /** Cancels the request with this id, unless callers who share a key have several running. */
  arrived(tenantId: string, id: unknown): void;
}

export function createCancelNotices(): CancelNotices {
  const running = new Map<string, Set<() => void>>();
  const nameOf = (tenantId: string, id: unknown) => `${tenantId} ${JSON.stringify(id)}`;
  return {
    listen(tenantId, id, cancel) {
      const name = nameOf(tenantId, id);
      const sameName = running.get(name) ?? new Set();
      running.set(name, sameName.add(cancel));
      return () => {
        sameName.delete(cancel);
        if (sameName.size === 0) running.delete(name);
      };
    },
    arrived(tenantId, id) {
      const [only, ...others] = running.get(nameOf(tenantId, id)) ?? [];
      if (others.length === 0) only?.();
    },
  };
}
