import { abortedError } from './abort.ts';
import { AdLibraryError } from './errors.ts';
import type { InFlightCall, InFlightCalls } from './in-flight-calls.ts';
import { type Answer, type Call, gatedOnly, replayed, type Send } from './send.ts';
import { answerNameOf, itemsOf } from './with-cache.ts';

interface Shared extends InFlightCall {
  call: Call;
  /** Whether one caller's receipt shows the charge. */
  isPaid: boolean;
}

/**
 * Merges concurrent equal gated calls of one tenant into one. The receipt of one remaining caller shows the charge,
 * those of the others show none. Writes are not merged, but they are also completed once they were sent.
 */
export function withCoalescing(send: Send, inFlight: InFlightCalls): Send {
  const shared = new Map<string, Shared>();

  /** Later callers must see a write, so they do not join requests for the items of its collection. */
  const leaveAlone = (written: Call) => {
    const { tenantId } = written;
    const items = itemsOf(written);
    for (const [name, { call }] of shared)
      if (call.tenantId === tenantId && answerNameOf(call).group === items) shared.delete(name);
  };

  const write: Send = async (call) => {
    leaveAlone(call);
    const inFlightCall = inFlight.start(call, send);
    void inFlightCall.settled.then(() => leaveAlone(call));
    return inFlightCall.join(call.signal);
  };

  const read = gatedOnly(send, async (call) => {
    const { signal } = call;
    if (signal.aborted) throw abortedError(signal, false);
    const name = `${call.tenantId} ${call.fingerprint}`;
    for (;;) {
      const known = shared.get(name);
      if (known === undefined || known.isAborted()) return join(start(name, call), signal);
      try {
        return await join(known, signal);
      } catch (error) {
        if (!isOverMaxCredits(error)) throw error;
        leave(name, known);
      }
    }
  });

  function start(name: string, call: Call): Shared {
    const inFlightCall: Shared = { ...inFlight.start(call, send), call, isPaid: false };
    shared.set(name, inFlightCall);
    void inFlightCall.settled.then(() => leave(name, inFlightCall));
    return inFlightCall;
  }

  const leave = (name: string, inFlightCall: Shared) => {
    if (shared.get(name) === inFlightCall) shared.delete(name);
  };

  return (call) => (call.operation.writes ? write(call) : read(call));
}

async function join(inFlightCall: Shared, signal: AbortSignal): Promise<Answer> {
  const answer = await inFlightCall.join(signal);
  if (inFlightCall.isPaid) return replayed(answer);
  inFlightCall.isPaid = true;
  return answer;
}

/** What another tool call may spend says nothing about this one. The budget of the server is the same for both. */
const isOverMaxCredits = (error: unknown) =>
  error instanceof AdLibraryError && error.failure.maxCredits !== undefined && error.failure.sent === false;
