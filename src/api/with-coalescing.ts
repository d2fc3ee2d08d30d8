import { abortedError } from './abort.ts';
import type { InFlightCall, InFlightCalls } from './in-flight-calls.ts';
import { type Call, fingerprintStart, gatedOnly, replayed, type Send } from './send.ts';

interface Shared extends InFlightCall {
  /** Whether one caller's receipt shows the charge. */
  isPaid: boolean;
}

/**
 * Merges concurrent equal gated calls of one tenant into one. The receipt of one remaining caller shows the charge,
 * those of the others show none. Writes are not merged, but they are also completed once they were sent.
 */
export function withCoalescing(send: Send, inFlight: InFlightCalls): Send {
  const shared = new Map<string, Shared>();
  const itemsOf = ({ tenantId, path }: Call) =>
    `${tenantId} ${fingerprintStart('listCollectionItems', { collectionId: path.collectionId ?? '' })}`;

  /** Later callers must see a write, so they do not join requests for the items of its collection. */
  const leaveAlone = (start: string) => {
    for (const name of shared.keys()) if (name.startsWith(start)) shared.delete(name);
  };

  const write: Send = async (call) => {
    const start = itemsOf(call);
    leaveAlone(start);
    const inFlightCall = inFlight.start(call, send);
    void inFlightCall.settled.then(() => leaveAlone(start));
    return inFlightCall.join(call.signal);
  };

  const read = gatedOnly(send, async (call) => {
    const { signal } = call;
    if (signal.aborted) throw abortedError(signal, false);
    const name = `${call.tenantId} ${call.fingerprint}`;
    const known = shared.get(name);
    const inFlightCall = known && !known.isAborted() ? known : start(name, call);
    const answer = await inFlightCall.join(signal);
    if (inFlightCall.isPaid) return replayed(answer);
    inFlightCall.isPaid = true;
    return answer;
  });

  function start(name: string, call: Call): Shared {
    const inFlightCall: Shared = { ...inFlight.start(call, send), isPaid: false };
    shared.set(name, inFlightCall);
    void inFlightCall.settled.then(() => {
      if (shared.get(name) === inFlightCall) shared.delete(name);
    });
    return inFlightCall;
  }

  return (call) => (call.operation.writes ? write(call) : read(call));
}
