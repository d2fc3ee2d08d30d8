import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';

export type { JSONRPCMessage };

/** What a lane writes to: the one transport that owns the pipes. */
interface Wire {
  send(message: JSONRPCMessage): Promise<void>;
}

/** A transport of one protocol era over a pipe that both share: it writes, and leaves reading and closing to the owner. */
export class EraTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport['onmessage']>;
  private readonly wire: Wire;

  constructor(wire: Wire) {
    this.wire = wire;
  }

  async start(): Promise<void> {}

  send(message: JSONRPCMessage): Promise<void> {
    return this.wire.send(message);
  }

  async close(): Promise<void> {
    this.onclose?.();
  }
}
