import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { command, compiledOnce, noPlace } from './process.ts';
import { type Result, readResult } from './server.ts';

/** What the suites ask of a client, whichever SDK line it is of. */
export interface TestClient {
  listTools(): Promise<{ name: string; inputSchema: object; description?: string | undefined }[]>;
  call(name: string, args?: Record<string, unknown>, signal?: AbortSignal): Promise<Result>;
  /** The same, asking for progress. */
  follow(name: string, args: Record<string, unknown>, options: CallOptions): Promise<Result>;
  listPrompts(): Promise<string[]>;
  prompt(name: string, args?: Record<string, string>): Promise<string>;
  resources(): Promise<object[]>;
  read(uri: string): Promise<object[]>;
  instructions(): string | undefined;
  close(): Promise<void>;
}

export const clientKinds = ['v1', 'v2 auto', 'v2 pinned to 2026-07-28'] as const;
export type ClientKind = (typeof clientKinds)[number];

type AnyClient = Pick<LegacyClient, 'close' | 'getInstructions'> & {
  listTools(): Promise<{ tools: Awaited<ReturnType<TestClient['listTools']>> }>;
  listPrompts(): Promise<{ prompts: { name: string }[] }>;
  listResources(): Promise<{ resources: object[] }>;
  readResource(params: { uri: string }): Promise<{ contents: object[] }>;
  getPrompt(params: { name: string; arguments: Record<string, string> }): Promise<{ messages: { content: object }[] }>;
};

export interface CallOptions {
  signal?: AbortSignal;
  onprogress?(progress: { progress: number; total?: number | undefined; message?: string | undefined }): void;
}

type CallTool = (
  params: { name: string; arguments: Record<string, unknown> },
  options?: CallOptions,
) => Promise<unknown>;

export const wrap = (client: AnyClient, callTool: CallTool): TestClient => ({
  listTools: async () => (await client.listTools()).tools,
  call: async (name, args = {}, signal) => readResult(await callTool({ name, arguments: args }, signal && { signal })),
  follow: async (name, args, options) => readResult(await callTool({ name, arguments: args }, options)),
  listPrompts: async () => (await client.listPrompts()).prompts.map(({ name }) => name),
  prompt: async (name, args = {}) => {
    const { messages } = await client.getPrompt({ name, arguments: args });
    return messages.map(({ content }) => ('text' in content ? String(content.text) : '')).join('\n');
  },
  resources: async () => (await client.listResources()).resources,
  read: async (uri) => (await client.readResource({ uri })).contents,
  instructions: () => client.getInstructions(),
  close: () => client.close(),
});

export const modernClient = (kind: ClientKind) =>
  new ModernClient(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: kind === 'v2 auto' ? 'auto' : { pin: '2026-07-28' } } },
  );

/** A client of the built command over real pipes. */
export const connectStdio = (kind: ClientKind, args: string[], env: Record<string, string> = {}): Promise<TestClient> =>
  connectCommand(kind, { ...command(args), env });

/** A client of any command over real pipes, which gets nothing of this process's environment but its path. */
export function connectCommand(
  kind: ClientKind,
  started: { command: string; args: string[]; env?: Record<string, string>; cwd?: string },
): Promise<TestClient> {
  const env = { PATH: process.env.PATH ?? '', ...noPlace, NODE_OPTIONS: compiledOnce.join(), ...started.env };
  const parameters = { ...started, env, stderr: 'pipe' as const };
  return connected(kind, { legacy: () => new LegacyStdio(parameters), modern: () => new ModernStdio(parameters) });
}

/** A client of an MCP endpoint over real sockets, with a caller's key where one is given. */
export function connectHttp(kind: ClientKind, address: string, key?: string): Promise<TestClient> {
  const url = new URL(address);
  const options = { requestInit: { headers: key === undefined ? {} : { authorization: `Bearer ${key}` } } };
  return connected(kind, { legacy: () => new LegacyHttp(url, options), modern: () => new ModernHttp(url, options) });
}

interface Transports {
  legacy(): LegacyStdio | LegacyHttp;
  modern(): ModernStdio | ModernHttp;
}

async function connected(kind: ClientKind, transports: Transports): Promise<TestClient> {
  if (kind === 'v1') {
    const client = new LegacyClient({ name: 'test', version: '1' });
    await client.connect(transports.legacy() as LegacyStdio);
    return wrap(client, (params, options) => client.callTool(params, undefined, options));
  }
  const client = modernClient(kind);
  await client.connect(transports.modern());
  return wrap(client, (params, options) => client.callTool(params, options));
}
