import { expect, test } from 'vitest';
import { trackInFlightCalls } from '../../src/answers/answers.ts';
import { type Call, operations, type Send } from '../../src/api/call.ts';
import { memoryCallRegister } from '../../src/state/memory-state.ts';
import { gateOf } from '../support/gate.ts';

const call: Call = {
  operation: operations.getAd,
  path: { adId: '1' },
  query: {},
  fingerprint: 'f',
  apiKey: 'k',
  tenantId: 't',
  signal: new AbortController().signal,
};

function inFlightCalls() {
  const register = memoryCallRegister({ maxPerTenant: 10, maxInAll: 10 });
  return trackInFlightCalls({ register, timeoutMs: 60_000, onLost: () => {} });
}

test('what is aborted at shutdown settles before the calls are closed', async () => {
  const inFlight = inFlightCalls();
  const { opened: sent, open: arrive } = gateOf();
  const { opened: settling, open: settle } = gateOf();
  const order: string[] = [];
  const send: Send = async ({ signal }) => {
    arrive();
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    await settling;
    order.push('settled');
    throw signal.reason;
  };
  const { settled } = inFlight.start(call, send);
  await sent;
  const closed = inFlight.close(0).then(() => order.push('closed'));
  setImmediate(settle);
  await Promise.all([closed, settled]);
  expect(order).toEqual(['settled', 'closed']);
});

test('what never settles does not hold a shutdown', async () => {
  const inFlight = inFlightCalls();
  inFlight.start(call, () => new Promise(() => {}));
  await inFlight.close(0);
});
