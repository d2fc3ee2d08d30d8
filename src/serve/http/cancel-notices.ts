/** Requests under way, so that a cancel notice, which comes in a request of its own, finds the one it means. */
export interface CancelNotices {
  /** Has `callOff` called when a notice names this request; returns what to call when the request has ended. */
  listen(owner: string, id: unknown, callOff: () => void): () => void;
  /** Calls off the request of this id, unless callers who share a key have several under way. */
  arrived(owner: string, id: unknown): void;
}

export function createCancelNotices(): CancelNotices {
  const running = new Map<string, Set<() => void>>();
  const nameOf = (owner: string, id: unknown) => `${owner} ${JSON.stringify(id)}`;
  return {
    listen(owner, id, callOff) {
      const name = nameOf(owner, id);
      const namesakes = running.get(name) ?? new Set();
      running.set(name, namesakes.add(callOff));
      return () => {
        namesakes.delete(callOff);
        if (namesakes.size === 0) running.delete(name);
      };
    },
    arrived(owner, id) {
      const [only, ...others] = running.get(nameOf(owner, id)) ?? [];
      if (others.length === 0) only?.();
    },
  };
}
