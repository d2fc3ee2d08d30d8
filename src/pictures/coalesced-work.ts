import { raceAbort } from '../api/abort.ts';

interface Running<Value> {
  result: Promise<Value>;
  abort: AbortController;
  callers: number;
}

/** Whoever asks for the same at the same time shares one promise. The work ends early once the last of them has left. */
export class CoalescedWork<Value> {
  readonly #running = new Map<string, Running<Value>>();

  async do(name: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
    signal.throwIfAborted();
    const running = this.#running.get(name) ?? this.#start(name, work);
    running.callers++;
    try {
      return await raceAbort(running.result, signal);
    } finally {
      running.callers--;
      if (running.callers === 0) {
        this.#running.delete(name);
        running.abort.abort(signal.reason);
      }
    }
  }

  #start(name: string, work: (signal: AbortSignal) => Promise<Value>): Running<Value> {
    const abort = new AbortController();
    const running = { result: work(abort.signal), abort, callers: 0 };
    this.#running.set(name, running);
    return running;
  }
}
