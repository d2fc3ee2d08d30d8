import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { PROTOCOL_VERSION_META_KEY } from '@modelcontextprotocol/server';
import { expect, test } from 'vitest';
import { versionKey } from '../../../src/mcp/protocol.ts';
import { LineStream } from '../../../src/serve/stdio.ts';

function openStream() {
  const stdin = new PassThrough();
  const stdout = new PassThrough({ highWaterMark: 64 });
  const messages: JSONRPCMessage[] = [];
  const lines = new LineStream(stdin, stdout, {
    onMessage: async (message) => void messages.push(message),
    onBatch: () => 'no batches here.',
    onProblem: () => {},
  });
  const ended = lines.readAll();
  const answer = async () => JSON.parse(String((await once(stdout, 'data'))[0]));
  return { stdin, stdout, messages, lines, ended, answer };
}
const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
const turn = () => new Promise((resolve) => setImmediate(resolve));

test('a message may come in any pieces, several at once, with any line ends', async () => {
  const { stdin, messages } = openStream();
  const greeting = { jsonrpc: '2.0', method: 'x', params: { text: 'Grüße 👋🏽' } };
  for (const byte of Buffer.from(`${JSON.stringify(greeting)}\r\n`)) stdin.write(Buffer.from([byte]));
  stdin.write(`\n${JSON.stringify(ping)}\n${JSON.stringify(ping)}\n{"jsonrpc`);
  await turn();
  expect(messages).toEqual([greeting, ping, ping]);
});

test.each([
  ['not json', -32_700, null],
  ['42', -32_600, null],
  [`[${JSON.stringify(ping)}]`, -32_600, null],
  ['{"jsonrpc":"1.0","id":7,"method":"ping"}', -32_600, 7],
  ['{"jsonrpc":"2.0","id":"a"}', -32_600, 'a'],
])('%s is answered with %d, and the session goes on', async (line, code, id) => {
  const { stdin, messages, answer } = openStream();
  stdin.write(`${line}\n${JSON.stringify(ping)}\n`);
  expect(await answer()).toMatchObject({ jsonrpc: '2.0', id, error: { code } });
  expect(messages).toEqual([ping]);
});

test('a message past the limit is refused without being kept, and the session goes on', async () => {
  const { stdin, messages, answer } = openStream();
  const answered = answer();
  const piece = Buffer.alloc(1024 * 1024, 'x');
  for (let megabyte = 0; megabyte < 11; megabyte++) stdin.write(piece);
  stdin.write(`\n${JSON.stringify(ping)}\n`);
  expect(await answered).toMatchObject({ error: { code: -32_700, message: expect.stringContaining('10 MB') } });
  await turn();
  expect(messages).toEqual([ping]);
});

test('the last message needs no line break, and one that was cut off is refused', async () => {
  const whole = openStream();
  whole.stdin.end(JSON.stringify(ping));
  await whole.ended;
  expect(whole.messages).toEqual([ping]);
  const cut = openStream();
  cut.stdin.end('{"jsonrpc":"2.0"');
  expect(await cut.answer()).toMatchObject({ error: { code: -32_700 } });
  await cut.ended;
  expect(cut.messages).toEqual([]);
});

test('it notices when its output is closed, and sending is still no error', async () => {
  const { stdout, lines } = openStream();
  stdout.destroy(Object.assign(new Error('EPIPE'), { code: 'EPIPE' }));
  await lines.outputClosed;
  await lines.send({ jsonrpc: '2.0', method: 'x' });
});

test('sending takes as long as the reader does', async () => {
  const { stdout, lines } = openStream();
  let left = 0;
  for (let message = 0; message < 3; message++) void lines.send(ping as JSONRPCMessage).then(() => left++);
  await turn();
  const before = left;
  stdout.resume();
  await turn();
  expect(before).toBeLessThan(3);
  expect(left).toBe(3);
});

test('no more input is read while answers are unread', async () => {
  const { stdin, stdout, messages, lines } = openStream();
  const line = `${JSON.stringify(ping)}\n`;
  void lines.send({ jsonrpc: '2.0', id: 0, result: { text: 'x'.repeat(1000) } });
  stdin.write(line.repeat(50));
  await turn();
  expect(messages.length).toBeLessThan(2);
  stdout.resume();
  await turn();
  await turn();
  expect(messages).toHaveLength(50);
});

test('the mark of the new era is the one its SDK knows', () => {
  expect(versionKey).toBe(PROTOCOL_VERSION_META_KEY);
});
