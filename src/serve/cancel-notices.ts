/** Requests under way, so that a cancel notice, which comes in a request of its own, finds the one it means. */
export interface CancelNotices {
  /** Has `call` aborted when a notice names this request; returns what to call when the request has ended. */
  listen(key: string, id: unknown, call: AbortController): () => void;
  /** Calls off the request of this id, unless callers who share the key have several under way. */
  arrived(key: string, id: unknown): void;
}

export function createCancelNotices(): CancelNotices {
  const running = new Map<string, Set<AbortController>>();
  const nameOf = (key: string, id: unknown) => `${key} ${JSON.stringify(id)}`;
  return {
    listen(key, id, call) {
      const name = nameOf(key, id);
      const namesakes = running.get(name) ?? new Set();
      running.set(name, namesakes.add(call));
      return () => {
        namesakes.delete(call);
        if (namesakes.size === 0) running.delete(name);
      };
    },
    arrived(key, id) {
      const [only, ...others] = running.get(nameOf(key, id)) ?? [];
      if (others.length === 0) only?.abort();
    },
  };
}
