/** A request under way, which may end before its answer. */
export interface Ending {
  /** Resolves when the request is called off. */
  early: Promise<void>;
  wasEarly(): boolean;
  /** Calls it off. */
  now(): void;
  /** To be called when the request has ended, either way. */
  over(): void;
}

/** Requests under way, so that a cancel notice, which comes in a request of its own, finds the one it means. */
export interface CancelNotices {
  started(key: string, id: unknown): Ending;
  /** Calls off the request of this id, unless callers who share the key have several under way. */
  arrived(key: string, id: unknown): void;
}

export function createCancelNotices(): CancelNotices {
  const running = new Map<string, Set<Ending>>();
  const nameOf = (key: string, id: unknown) => `${key} ${JSON.stringify(id)}`;
  return {
    started(key, id) {
      const name = nameOf(key, id);
      const namesakes = running.get(name) ?? new Set();
      running.set(name, namesakes);
      const ending = createEnding(() => {
        namesakes.delete(ending);
        if (namesakes.size === 0) running.delete(name);
      });
      if (id !== undefined) namesakes.add(ending);
      return ending;
    },
    arrived(key, id) {
      const [only, ...others] = running.get(nameOf(key, id)) ?? [];
      if (others.length === 0) only?.now();
    },
  };
}

function createEnding(over: () => void): Ending {
  let called = false;
  let resolve = () => {};
  const early = new Promise<void>((done) => {
    resolve = done;
  });
  const now = () => {
    called = true;
    resolve();
  };
  return { early, now, over, wasEarly: () => called };
}
