import type { AuthInfo } from '@modelcontextprotocol/sdk/server/auth/types.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage, JSONRPCRequest } from '@modelcontextprotocol/sdk/types.js';

/** What a server is told beside a request: with which key it came, and of which era it is where the SDK line asks. */
export interface Beside {
  authInfo?: AuthInfo | undefined;
  classification?: { era: 'legacy' | 'modern'; revision?: string };
}

export interface Answer {
  message: JSONRPCMessage;
  /** The SDK turned the request down itself: it does so at once, and calls handlers a turn later. */
  refused: boolean;
}

/** The wire to an SDK server that answers one request at a time and stays connected for the next. */
export class CallLane implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage, beside?: Beside) => void;
  private settle: ((message?: JSONRPCMessage) => void) | undefined;

  async start(): Promise<void> {}

  /** Resolves with the answer; with nothing when the lane is closed before there is one. */
  ask(request: JSONRPCRequest, beside: Beside): Promise<Answer | undefined> {
    return new Promise((resolve) => {
      let refused = true;
      this.settle = (message) => {
        this.settle = undefined;
        resolve(message && { message, refused });
      };
      this.onmessage?.(request, beside);
      refused = false;
    });
  }

  /** The only message that has a reader is the answer to the request under way. */
  async send(message: JSONRPCMessage): Promise<void> {
    if (!('method' in message)) this.settle?.(message);
  }

  /** Aborts what is under way. */
  async close(): Promise<void> {
    this.onclose?.();
    this.settle?.();
  }
}
