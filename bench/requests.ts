import { connect } from 'node:net';
import { Client } from 'undici';
import { seededRandom } from '../scripts/demo-market/market.ts';
import { type Question, type SoakCaller, type ToolResult, type Traffic, trafficOf } from './traffic.ts';

/** What became of one request, by the kind it was. */
export interface Outcome {
  kind: string;
  /** What was wrong, if anything. */
  wrong?: string;
}

/** One caller with a connection of its own. */
export interface HttpCaller {
  /** Asks something, and says what became of it. */
  once(): Promise<Outcome>;
  close(): Promise<void>;
}

interface Posted {
  status: number;
  text: string;
}

const legacy = '2025-11-25';
const modern = '2026-07-28';

/** Keys nobody has, each of which the server sees once: what it keeps by key grows by these. */
let unknownKeys = 0;
export const unknownKeysSeen = () => unknownKeys;
/** Ads and pages by who has seen them: each lies in the dataset of a key. */
const seen = new Set<string>();
export const itemsSeen = () => seen.size;
const ids = /"(?:id|pageId)":"([^"]+)"/g;
const unknownKey = () => `svc_live_stranger${unknownKeys++}`;

/** @param origins each call goes to the next of them */
export function httpCaller(origins: readonly string[], caller: SoakCaller, number: number): HttpCaller {
  const clients = origins.map((origin) => new Client(origin));
  const [origin = ''] = origins;
  const random = seededRandom(number + 1000);
  const traffic = trafficOf(caller, number);
  const revision = number % 2 ? modern : legacy;
  let id = 0;

  const headersOf = (method: string, name?: string, key = caller.key) => ({
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${key}`,
    'mcp-protocol-version': revision,
    ...(revision === modern && { 'mcp-method': method, ...(name !== undefined && { 'mcp-name': name }) }),
  });
  const messageOf = (method: string, params: object) => ({
    jsonrpc: '2.0',
    id: ++id,
    method,
    params: { ...params, ...(revision === modern && { _meta: meta }) },
  });
  const send = async (headers: Record<string, string>, body: string, signal?: AbortSignal): Promise<Posted> => {
    const client = clients[id % clients.length] as Client;
    const answer = await client.request({ path: '/mcp', method: 'POST', headers, body, signal: signal ?? null });
    return { status: answer.statusCode, text: await answer.body.text() };
  };
  const call = ({ tool, args }: Pick<Question, 'tool' | 'args'>, key?: string, signal?: AbortSignal) => {
    const body = JSON.stringify(messageOf('tools/call', { name: tool, arguments: args }));
    return send(headersOf('tools/call', tool, key), body, signal);
  };

  const asks = async (): Promise<Outcome> => {
    const question = traffic.next();
    const posted = await call(question);
    for (const [, item] of posted.text.matchAll(ids)) seen.add(`${number} ${item}`);
    return { kind: question.tool.replace(/\d+$/, '…'), ...judged(question, traffic, posted, id) };
  };
  /** Whatever comes of it is right, but for an answer that is one and a failure of the server. */
  const hangsUp = async (key = caller.key, question: Pick<Question, 'tool' | 'args'> = traffic.next()) => {
    const kind = key === caller.key ? 'hangs up' : 'hangs up on a write with a wrong key';
    const signal = AbortSignal.timeout(random.between(0, 12));
    const { status } = await call(question, key, signal).catch(() => ({ status: 200 }));
    return status === 200 ? { kind } : { kind, wrong: `status ${status}` };
  };
  const expects = async (kind: string, status: number, holds: string, posting: Promise<Posted>): Promise<Outcome> => {
    const posted = await posting;
    const right = posted.status === status && posted.text.includes(holds);
    return right ? { kind } : { kind, wrong: `status ${posted.status}: ${posted.text.slice(0, 300)}` };
  };
  const headers = headersOf('tools/list');
  const oddities: (() => Promise<Outcome>)[] = [
    () => hangsUp(),
    () => hangsUp(),
    () => hangsUp(unknownKey(), write),
    () => breaksOff(origin, caller.key),
    () => expects('wrong key', 200, 'unauthorized', call({ tool: 'whoami', args: {} }, unknownKey())),
    () => expects('no key', 401, 'needs your API key', send({ ...headers, authorization: '' }, '{}')),
    () => expects('not JSON', 400, 'not JSON', send(headers, random.pick(['{"jsonrpc":', 'hello', '']))),
    () => expects('too deep', 400, 'levels', send(headers, '['.repeat(100))),
    () => expects('not of its type', 415, 'application/json', send({ ...headers, 'content-type': 'text/plain' }, '{}')),
    () => expects('lists', 200, 'search_ads', send(headers, JSON.stringify(messageOf('tools/list', {})))),
    () => expects('batch', 400, 'one message at a time', send(legacyHeaders(caller.key), batch)),
    () => expects('initialize', 200, 'serverInfo', send(legacyHeaders(caller.key), initialize)),
    () => expects('cancel notice', 202, '', send(legacyHeaders(caller.key), notice)),
  ];
  return {
    async once() {
      const ask = random.chance(0.85) ? asks : random.pick(oddities);
      return ask().catch((error: Error) => ({ kind: 'no answer', wrong: error.message }));
    },
    close: async () => void (await Promise.all(clients.map((client) => client.close()))),
  };
}

function judged(question: Question, traffic: Traffic, { status, text }: Posted, id: number): { wrong?: string } {
  const { tool, args } = question;
  const reply = `${tool} ${JSON.stringify(args).slice(0, 200)}: status ${status}: ${text.slice(0, 600)}`;
  if (status !== 200) return { wrong: reply };
  const answer = JSON.parse(text) as { id?: number; result?: ToolResult };
  if (answer.id !== id || !answer.result || !question.right(answer.result)) return { wrong: reply };
  traffic.learn(question, answer.result);
  return {};
}

/** Leaves in the middle of a body. */
function breaksOff(origin: string, key: string): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(origin).port), '127.0.0.1', () => {
      const head = Object.entries({ ...legacyHeaders(key), host: '127.0.0.1', 'content-length': '5000' });
      socket.write(`POST /mcp HTTP/1.1\r\n${head.map((pair) => pair.join(': ')).join('\r\n')}\r\n\r\n{"jsonrpc":`);
      setTimeout(() => socket.destroy(), 2);
    });
    socket.on('error', () => {});
    socket.once('close', () => resolve({ kind: 'breaks off in the body' }));
  });
}

const legacyHeaders = (key: string) => ({
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  authorization: `Bearer ${key}`,
});
const meta = {
  'io.modelcontextprotocol/protocolVersion': modern,
  'io.modelcontextprotocol/clientInfo': { name: 'soak', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const rpc = (message: object) => ({ jsonrpc: '2.0', ...message });
const whoami = { method: 'tools/call', params: { name: 'whoami', arguments: {} } };
const batch = JSON.stringify([rpc({ id: 'a', ...whoami }), rpc({ id: 'b', ...whoami })]);
const clientInfo = { name: 'soak', version: '1' };
const initialize = JSON.stringify(
  rpc({ id: 1, method: 'initialize', params: { protocolVersion: legacy, capabilities: {}, clientInfo } }),
);
const notice = JSON.stringify(rpc({ method: 'notifications/cancelled', params: { requestId: 'none' } }));
const write = {
  tool: 'add_collection_item',
  args: {
    collectionId: '6a1f7e0c-0000-4000-8000-00000000c011',
    itemType: 'ads',
    itemId: '6a1f7e0c-0000-4000-8000-000000000001',
  },
};
