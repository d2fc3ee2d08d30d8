import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A server that acts as the language model of a host. Its replies follow a fixed script, and it records the requests of
 * hosts. It supports the four protocols that the hosts use.
 *
 * The `@copilotkit/aimock` package supports these protocols as well, but cannot be used here. It drops tools in
 * namespaces and `tool_search` calls, which Codex needs, and it does not record requests exactly as the hosts sent
 * them.
 */

/** A JSON value in a request or a reply. Its fields depend on the protocol that the host uses. */
// biome-ignore lint/suspicious/noExplicitAny: each protocol has its own types, and the bench reads a few fields of each.
type Json = any;

type Protocol = 'chat' | 'responses' | 'anthropic' | 'gemini';

/** A request from a host to its model. */
export interface ModelRequest {
  protocol: Protocol;
  body: Json;
}

/** A step of the script, in which the model calls one of our tools. */
export interface ScriptStep {
  toolName: string;
  /** Returns the arguments of the call. `adIds` contains the ids of all ads in earlier results. */
  buildArguments(adIds: readonly string[]): object;
}

interface OfferedTool {
  name: string;
  namespace?: string | undefined;
  type?: string | undefined;
  /** True if the host does not send the schema of the tool until the model has searched for the tool. */
  isDeferred?: boolean;
}

type ModelReply = { text: string } | { tool: OfferedTool; args: object };

const pathPatterns: Record<Protocol, RegExp> = {
  chat: /\/chat\/completions/,
  responses: /\/responses(?:\?|$)/,
  anthropic: /\/messages(?:\?|$)/,
  gemini: /:(?:stream)?[gG]enerateContent/,
};

export async function startScriptedModel(steps: readonly ScriptStep[]) {
  const requests: ModelRequest[] = [];
  const script = createScript(steps);
  const server = createServer(async (request, response) => {
    const body = await readJson(request);
    const [protocol] = Object.entries(pathPatterns).find(([, pattern]) => pattern.test(request.url ?? '')) ?? [];
    if (protocol === undefined || body === undefined) return sendOtherResponse(request, response);
    const modelRequest = { protocol: protocol as Protocol, body };
    requests.push(modelRequest);
    const reply = script.getReply(modelRequest);
    replyWriters[modelRequest.protocol](
      response,
      body,
      reply,
      /stream/.test(request.url ?? '') || body.stream === true,
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    /** The names of the tools that the script should have called, but that the host did not offer to its model. */
    missingTools: script.missingTools,
    close: () => server.closeAllConnections(),
  };
}

/**
 * Responds to requests that do not belong to the conversation, e.g. requests for the list of models or for a token
 * count.
 */
function sendOtherResponse({ url = '' }: IncomingMessage, response: ServerResponse): void {
  const model = { id: 'scripted-model', object: 'model', created: 1, owned_by: 'bench' };
  if (url.includes('count_tokens')) sendJson(response, { input_tokens: 1000 });
  else if (url.includes(':countTokens')) sendJson(response, { totalTokens: 1000 });
  else if (url.includes('/models')) sendJson(response, { object: 'list', data: [model] });
  else response.writeHead(404).end();
}

async function readJson(request: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return undefined;
  }
}

/**
 * Creates a script that chooses the model's reply to each request. Some hosts send the same request twice, so a
 * repeated request gets the same reply. Some hosts also request a title for the conversation. Such a request offers at
 * most three tools and gets a fixed reply.
 */
function createScript(steps: readonly ScriptStep[]) {
  const missingTools: string[] = [];
  let nextStep = 0;
  let lastSearchedStep = -1;
  let lastReply: { resultCount: number; reply: ModelReply } | undefined;
  const chooseReply = (request: ModelRequest): ModelReply => {
    const step = steps[nextStep];
    if (step === undefined) return { text: 'done' };
    const offeredTools = listOfferedTools(request);
    const tool = findTool(offeredTools, step.toolName);
    const args = step.buildArguments(findAdIds(request));
    if (tool && !tool.isDeferred) {
      nextStep += 1;
      return { tool, args };
    }
    const searchTool = offeredTools.find(({ name }) => /^(?:ToolSearch|tool_search)$/.test(name));
    if (searchTool && lastSearchedStep !== nextStep) {
      lastSearchedStep = nextStep;
      const query =
        searchTool.name === 'ToolSearch' ? `select:${tool?.name ?? step.toolName}` : step.toolName.replaceAll('_', ' ');
      return { tool: searchTool, args: { query } };
    }
    nextStep += 1;
    const indirectCallTool = offeredTools.find(({ name }) => name === 'tool_call');
    if (indirectCallTool)
      return { tool: indirectCallTool, args: { name: `mcp__ad-library__${step.toolName}`, arguments: args } };
    missingTools.push(step.toolName);
    return chooseReply(request);
  };
  return {
    missingTools,
    getReply(request: ModelRequest): ModelReply {
      const isConversation = listOfferedTools(request).length > 3;
      if (!isConversation) return { text: 'Ads' };
      const resultCount = countToolResults(request);
      if (lastReply?.resultCount !== resultCount) lastReply = { resultCount, reply: chooseReply(request) };
      return lastReply.reply;
    },
  };
}

const findTool = (offeredTools: readonly OfferedTool[], name: string): OfferedTool | undefined =>
  offeredTools.find((tool) => tool.name === name || new RegExp(`[^a-zA-Z0-9]${name}$`).test(tool.name));

/** Returns the tools that a host offers to its model in a request. */
export function listOfferedTools({ protocol, body }: ModelRequest): OfferedTool[] {
  const tools: Json[] = body.tools ?? [];
  if (protocol === 'gemini')
    return tools.flatMap(({ functionDeclarations = [] }) => functionDeclarations.map(({ name }: Json) => ({ name })));
  if (protocol === 'anthropic') {
    const messagesJson = JSON.stringify(body.messages ?? []);
    return tools.map(({ name, defer_loading }) => ({
      name,
      isDeferred: defer_loading === true && !messagesJson.includes(`"tool_name":"${name}"`),
    }));
  }
  const searchedTools = Array.isArray(body.input) ? body.input.flatMap((item: Json) => item.tools ?? []) : [];
  return [...tools, ...searchedTools].flatMap((tool) => flattenTool(tool));
}

const flattenTool = (tool: Json, namespace?: string): OfferedTool[] =>
  tool.type === 'namespace'
    ? tool.tools.flatMap((inner: Json) => flattenTool(inner, tool.name))
    : [{ name: tool.function?.name ?? tool.name ?? tool.type, type: tool.type, namespace }];

/**
 * Returns the messages of the conversation in a request to the model. The field that contains the messages depends on
 * the protocol.
 */
export const listMessages = ({ body }: ModelRequest): Json[] =>
  body.messages ?? body.contents ?? (Array.isArray(body.input) ? body.input : []);

const countToolResults = (request: ModelRequest): number =>
  JSON.stringify(listMessages(request)).match(/"role":"tool"|_output"|"tool_result"|"functionResponse"/g)?.length ?? 0;

const idPattern = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

function findAdIds(request: ModelRequest): string[] {
  const text = JSON.stringify(listMessages(request));
  const idsInText = text.matchAll(new RegExp(`\\d\\. (${idPattern.source})`, 'g'));
  const idsInData = text.matchAll(new RegExp(`"id\\\\*":\\s*\\\\*"(${idPattern.source})`, 'g'));
  return [...new Set([...idsInText, ...idsInData].flatMap(([, id]) => id ?? []))];
}

function sendJson(response: ServerResponse, value: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

function sendEvents(response: ServerResponse, events: readonly string[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end(events.join(''));
}

const formatEvent = (data: { type: string }): string => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

let lastId = 0;
const createId = (prefix: string): string => `${prefix}_${String(++lastId).padStart(16, '0')}`;

/** For each protocol, a function that writes a reply in the format of this protocol. */
const replyWriters: Record<
  Protocol,
  (response: ServerResponse, body: Json, reply: ModelReply, isStreaming: boolean) => void
> = {
  chat(response, { model }, reply, isStreaming) {
    const toolCalls = 'tool' in reply && [
      {
        index: 0,
        id: createId('call'),
        type: 'function',
        function: { name: reply.tool.name, arguments: JSON.stringify(reply.args) },
      },
    ];
    const message = toolCalls
      ? { content: null, tool_calls: toolCalls }
      : { content: 'text' in reply ? reply.text : '' };
    const finish_reason = toolCalls ? 'tool_calls' : 'stop';
    const usage = { prompt_tokens: 1000, completion_tokens: 20, total_tokens: 1020 };
    const sharedFields = { id: createId('chatcmpl'), created: 1, model };
    if (!isStreaming) {
      const choice = { index: 0, message: { role: 'assistant', ...message }, finish_reason };
      return sendJson(response, { ...sharedFields, object: 'chat.completion', choices: [choice], usage });
    }
    const formatChunk = (choices: object[], rest = {}) =>
      `data: ${JSON.stringify({ ...sharedFields, object: 'chat.completion.chunk', choices, ...rest })}\n\n`;
    sendEvents(response, [
      formatChunk([{ index: 0, delta: { role: 'assistant', ...message }, finish_reason: null }]),
      formatChunk([{ index: 0, delta: {}, finish_reason }]),
      formatChunk([], { usage }),
      'data: [DONE]\n\n',
    ]);
  },

  responses(response, { model }, reply, isStreaming) {
    const item = createOutputItem(reply);
    const usage = { input_tokens: 1000, output_tokens: 20, total_tokens: 1020 };
    const id = createId('resp');
    const buildResponse = (status: string, output: object[]) => ({
      ...{ id, object: 'response', created_at: 1, model, status, output, error: null, tools: [] },
      usage: status === 'completed' ? usage : null,
    });
    const completed = buildResponse('completed', [item]);
    if (!isStreaming) return sendJson(response, completed);
    sendEvents(response, [
      formatEvent({ type: 'response.created', response: buildResponse('in_progress', []) } as { type: string }),
      formatEvent({ type: 'response.output_item.added', output_index: 0, item } as { type: string }),
      formatEvent({ type: 'response.output_item.done', output_index: 0, item } as { type: string }),
      formatEvent({ type: 'response.completed', response: completed } as { type: string }),
    ]);
  },

  anthropic(response, { model }, reply, isStreaming) {
    const message = { id: createId('msg'), type: 'message', role: 'assistant', model, stop_sequence: null };
    const block =
      'tool' in reply
        ? { type: 'tool_use', id: createId('toolu'), name: reply.tool.name, input: reply.args }
        : { type: 'text', text: reply.text };
    const stop_reason = 'tool' in reply ? 'tool_use' : 'end_turn';
    const usage = { input_tokens: 1000, output_tokens: 20 };
    if (!isStreaming) return sendJson(response, { ...message, content: [block], stop_reason, usage });
    const delta =
      'tool' in reply
        ? { type: 'input_json_delta', partial_json: JSON.stringify(reply.args) }
        : { type: 'text_delta', text: reply.text };
    const emptyBlock = 'tool' in reply ? { ...block, input: {} } : { ...block, text: '' };
    const events = [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null, usage } },
      { type: 'content_block_start', index: 0, content_block: emptyBlock },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
      { type: 'message_stop' },
    ];
    sendEvents(response, events.map(formatEvent));
  },

  gemini(response, _body, reply, isStreaming) {
    const parts = 'tool' in reply ? [{ functionCall: { name: reply.tool.name, args: reply.args } }] : [reply];
    const value = {
      candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 1000, candidatesTokenCount: 20, totalTokenCount: 1020 },
    };
    if (isStreaming) return sendEvents(response, [`data: ${JSON.stringify(value)}\r\n\r\n`]);
    sendJson(response, value);
  },
};

/**
 * Creates the output item of a reply in the Responses protocol. Codex uses a special type of item to search for tools.
 */
function createOutputItem(reply: ModelReply): object {
  const status = 'completed';
  if ('text' in reply) {
    const content = [{ type: 'output_text', text: reply.text, annotations: [] }];
    return { type: 'message', id: createId('msg'), role: 'assistant', status, content };
  }
  const call_id = createId('call');
  const { name, namespace, type } = reply.tool;
  if (type === 'tool_search')
    return {
      type: 'tool_search_call',
      id: createId('ts'),
      call_id,
      execution: 'client',
      arguments: reply.args,
      status,
    };
  const args = { arguments: JSON.stringify(reply.args) };
  return { type: 'function_call', id: createId('fc'), call_id, name, ...(namespace && { namespace }), ...args, status };
}
