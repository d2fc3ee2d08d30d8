import { AdLibraryError, raceAbort } from '../api/call.ts';

/** Lets calls that take the same turn go one after the other. */
export interface Turns {
  /** Resolves, when the turn is free, to what ends it. Rejects with `busy` if the signal aborts first. */
  take(name: string, signal: AbortSignal): Promise<() => void>;
}

/** The turns of one process. */
export class NamedTurns implements Turns {
  readonly #running = new Map<string, Promise<void>>();

  async take(name: string, signal: AbortSignal): Promise<() => void> {
    for (let running = this.#running.get(name); running; running = this.#running.get(name))
      await raceAbort(running, signal).catch(() => {
        throw tooBusy();
      });
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#running.set(name, ended);
    return () => {
      this.#running.delete(name);
      end();
    };
  }
}

export const tooBusy = () =>
  new AdLibraryError({ kind: 'busy', problem: 'Another call is reading the same ads.', sent: false });
