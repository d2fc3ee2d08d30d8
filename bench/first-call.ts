import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { buildCommandLine, buildImportFlag } from '../test/support/process.ts';
import { computeMedian } from './row.ts';

/**
 * A command-line flag that loads a script into the server process. The script replies to each message with the
 * processor time of the process and its threads, in milliseconds.
 */
const processorTimeFlag = buildImportFlag(
  'process.on("message", () => { const { user, system } = process.cpuUsage(); process.send((user + system) / 1000); });' +
    'process.channel.unref();',
);

type Message = { id?: number; result?: { isError?: boolean } };

/**
 * Starts the demo server over stdio, lists its tools, and then sends the same tool call `callCount` times. Returns the
 * processor time between each call and its result, in milliseconds.
 */
async function measureCallTimes(callCount: number, env: Record<string, string>): Promise<number[]> {
  const args = [processorTimeFlag, ...buildCommandLine().args];
  const child = spawn(process.execPath, args, { env, stdio: ['pipe', 'pipe', 'inherit', 'ipc'] });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error('The process has no standard streams.');
  const pendingRequests = new Map<number, (message: Message) => void>();
  createInterface(stdout).on('line', (line) => {
    const message: Message = JSON.parse(line);
    pendingRequests.get(message.id ?? 0)?.(message);
  });
  const send = (message: object) => stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const sendRequest = (method: string, params: object = {}) =>
    new Promise<Message>((resolve, reject) => {
      const id = pendingRequests.size + 1;
      pendingRequests.set(id, resolve);
      child.once('exit', () => reject(new Error('The process ended before it answered.')));
      send({ id, method, params });
    });
  const readProcessorMs = () =>
    new Promise<number>((resolve) => {
      child.once('message', (processorMs) => resolve(Number(processorMs)));
      child.send('');
    });
  const clientInfo = { name: 'bench', version: '1' };
  await sendRequest('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  send({ method: 'notifications/initialized' });
  await sendRequest('tools/list');
  const callTimesMs: number[] = [];
  for (let call = 0; call < callCount; call++) {
    const processorMsBefore = await readProcessorMs();
    const { result } = await sendRequest('tools/call', {
      name: 'search_ads',
      arguments: { filters: { query: 'serum' } },
    });
    if (result === undefined || result.isError) throw new Error('The call failed.');
    callTimesMs.push((await readProcessorMs()) - processorMsBefore);
  }
  child.kill();
  return callTimesMs;
}

/**
 * Starts a demo server `roundCount` times. Returns the median processor time of a server's first call and of a later,
 * cached call, in milliseconds.
 */
export async function measureFirstCall(roundCount: number, env: Record<string, string>) {
  const timesByRound: number[][] = [];
  for (let round = 0; round < roundCount; round++)
    timesByRound.push(await measureCallTimes(5, { ...env, AD_LIBRARY_DEMO: 'true' }));
  return {
    firstCallMs: computeMedian(timesByRound.map(([first = 0]) => first)),
    laterCallMs: computeMedian(timesByRound.map((times) => times.at(-1) ?? 0)),
  };
}
