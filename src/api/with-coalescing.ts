import { raceAbort } from './abort.ts';
import { fingerprint, fingerprintStart } from './fingerprint.ts';
import { type Answer, type Call, gatedOnly, replayed, type Send } from './send.ts';

interface Flight {
  answer: Promise<Answer>;
  abort: AbortController;
  waiting: number;
  /** Has come back: there is nothing left to abort. */
  landed: boolean;
  /** Somebody's receipt shows the charge. */
  paid: boolean;
}

/**
 * Makes equal paid calls of one key that are under way at once into one. Who cancels leaves the others unharmed; the
 * last one to leave aborts the call. Only one of those who stay pays: the others' receipts say so.
 */
export function withCoalescing(send: Send): Send {
  const flights = new Map<string, Flight>();
  const leaveAlone = (owner: string) => {
    const start = `${owner} ${fingerprintStart('listCollectionItems')}`;
    for (const name of flights.keys()) if (name.startsWith(start)) flights.delete(name);
  };

  const write = (call: Call) => {
    // Whoever asks from now on wants to see what was written: lists under way take nobody else on board.
    leaveAlone(call.tenantId);
    return send(call).finally(() => leaveAlone(call.tenantId));
  };

  const ask = gatedOnly(send, async (call) => {
    call.signal.throwIfAborted();
    const name = `${call.tenantId} ${fingerprint(call)}`;
    const flight = flights.get(name) ?? takeOff(name);
    flight.waiting++;
    try {
      const answer = await raceAbort(flight.answer, call.signal);
      if (flight.paid) return replayed(answer);
      flight.paid = true;
      return answer;
    } finally {
      flight.waiting--;
      if (flight.waiting === 0 && !flight.landed) {
        // A flight nobody waits for takes nobody else on board.
        if (flights.get(name) === flight) flights.delete(name);
        flight.abort.abort(call.signal.reason);
      }
    }

    function takeOff(name: string): Flight {
      const abort = new AbortController();
      const answer = send({ ...call, signal: abort.signal });
      const flight = { answer, abort, waiting: 0, landed: false, paid: false };
      flights.set(name, flight);
      const land = () => {
        flight.landed = true;
        if (flights.get(name) === flight) flights.delete(name);
      };
      flight.answer.then(land, land);
      return flight;
    }
  });

  return (call) => (call.operation.writes ? write(call) : ask(call));
}
