import { fingerprint } from './fingerprint.ts';
import type { Partition } from './partition.ts';
import type { Answer, Send } from './send.ts';

interface Flight {
  answer: Promise<Answer>;
  abort: AbortController;
  waiting: number;
}

export interface MergingOptions {
  partition: Partition;
  /** Told of every answer that saved a call. */
  onSaved(key: string, answer: Answer): void;
}

/**
 * Makes equal calls of one key that are under way at once into one. Who cancels leaves the others unharmed; the last
 * one to leave aborts the call. Only the first pays: the others' receipts say so.
 */
export function withMerging(send: Send, { partition, onSaved }: MergingOptions): Send {
  const flights = new Map<string, Flight>();

  return async (call) => {
    if (call.operation.method !== 'GET' && !call.operation.gated) return send(call);
    call.signal.throwIfAborted();
    const name = `${partition(call.key)} ${fingerprint(call)}`;
    const joined = flights.get(name);
    const flight = joined ?? takeOff(name);
    flight.waiting++;
    try {
      const answer = await raceAbort(flight.answer, call.signal);
      if (!joined) return answer;
      onSaved(call.key, answer);
      return { ...answer, receipt: { ...answer.receipt, charged: 0, cached: true } };
    } finally {
      flight.waiting--;
      if (flight.waiting === 0) {
        // A flight nobody waits for takes nobody else on board.
        if (flights.get(name) === flight) flights.delete(name);
        flight.abort.abort(call.signal.reason);
      }
    }

    function takeOff(name: string): Flight {
      const abort = new AbortController();
      const flight = { answer: send({ ...call, signal: abort.signal }), abort, waiting: 0 };
      flights.set(name, flight);
      flight.answer.catch(() => {}).finally(() => flights.get(name) === flight && flights.delete(name));
      return flight;
    }
  };
}

function raceAbort<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}
