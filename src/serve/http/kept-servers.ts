import type { JSONRPCRequest } from '@modelcontextprotocol/sdk/types.js';
import { type Answer, type Beside, CallLane } from './call-lane.ts';

/** A request for a server that is kept, and what is said beside it. */
export interface Asking extends Beside {
  request: JSONRPCRequest;
  /** Is given what calls the request off; returns what to call when it has ended. */
  underWay(callOff: () => void): () => void;
}

/** Resolves with the answer, or with nothing where the request was called off. */
export type Ask = (asking: Asking) => Promise<Answer | undefined>;

/** Servers that wait for their next request; more of them are needed for moments only. */
const mostIdle = 64;

/**
 * Asks servers that are kept connected, each of which serves strictly one request at a time: the HTTP transports of the
 * SDKs serve one exchange each, and building a server and its transport costs several times what a call does. A server
 * whose request did not end with the answer of a handler is not used again.
 */
export function keptServers(connect: (lane: CallLane) => Promise<unknown>): Ask {
  const idle: CallLane[] = [];
  const open = async () => {
    const lane = new CallLane();
    await connect(lane);
    return lane;
  };
  return async ({ request, underWay, ...beside }) => {
    const lane = idle.pop() ?? (await open());
    let calledOff = false;
    const ended = underWay(() => {
      calledOff = true;
      void lane.close();
    });
    let answer: Answer | undefined;
    try {
      answer = calledOff ? undefined : await lane.ask(request, beside);
      return answer;
    } finally {
      ended();
      if (answer && !answer.refused && !calledOff && idle.length < mostIdle) idle.push(lane);
      else void lane.close();
    }
  };
}
