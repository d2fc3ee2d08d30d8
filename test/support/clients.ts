import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { mcpAppsCapabilities } from './capabilities.ts';
import { outputValidator } from './output-validator.ts';
import { baselineCompilerFlags, buildCommandLine, unwritableHome } from './process.ts';
import { readResult } from './server.ts';

/** The clients of both SDK versions. `auto` negotiates the protocol revision; `pinned` offers only the newest one. */
export const clientKinds = ['v1', 'v2 auto', 'v2 pinned to 2026-07-28'] as const;
/** The name of one kind of client. */
export type ClientKind = (typeof clientKinds)[number];

type AnyClient = Pick<LegacyClient, 'close' | 'getInstructions'> & {
  listTools(): Promise<{ tools: { name: string; inputSchema: object; description?: string | undefined }[] }>;
  listPrompts(): Promise<{ prompts: { name: string }[] }>;
  listResources(): Promise<{ resources: object[] }>;
  readResource(params: { uri: string }): Promise<{ contents: object[] }>;
  getPrompt(params: { name: string; arguments: Record<string, string> }): Promise<{ messages: { content: object }[] }>;
};

interface CallOptions {
  signal?: AbortSignal;
  onprogress?(progress: { progress: number; total?: number | undefined; message?: string | undefined }): void;
}

type CallTool = (
  params: { name: string; arguments: Record<string, unknown> },
  options?: CallOptions,
) => Promise<unknown>;

/** Wraps a client of either SDK version, so that tests can call both with the same methods. */
const wrapClient = (client: AnyClient, callTool: CallTool) => ({
  listTools: async () => (await client.listTools()).tools,
  call: async (name: string, args: Record<string, unknown> = {}, signal?: AbortSignal) =>
    readResult(await callTool({ name, arguments: args }, signal && { signal })),
  callWithProgress: async (name: string, args: Record<string, unknown>, options: CallOptions) =>
    readResult(await callTool({ name, arguments: args }, options)),
  listPrompts: async () => (await client.listPrompts()).prompts.map(({ name }) => name),
  getPrompt: async (name: string, args: Record<string, string> = {}) => {
    const { messages } = await client.getPrompt({ name, arguments: args });
    return messages.map(({ content }) => ('text' in content ? String(content.text) : '')).join('\n');
  },
  listResources: async () => (await client.listResources()).resources,
  read: async (uri: string) => (await client.readResource({ uri })).contents,
  getInstructions: () => client.getInstructions(),
  close: () => client.close(),
});

/** A client with the same methods for both SDK versions. */
export type TestClient = ReturnType<typeof wrapClient>;

/** Starts the built command with these arguments and connects a client to it over stdio. */
export const connectStdio = (kind: ClientKind, args: string[], env: Record<string, string> = {}): Promise<TestClient> =>
  connectCommand(kind, { ...buildCommandLine(args), env });

/** Starts a command and connects a client to it over stdio. The command inherits only `PATH` from the environment. */
export function connectCommand(
  kind: ClientKind,
  launchOptions: { command: string; args: string[]; env?: Record<string, string>; cwd?: string },
): Promise<TestClient> {
  const env = {
    PATH: process.env.PATH ?? '',
    ...unwritableHome,
    NODE_OPTIONS: baselineCompilerFlags.join(),
    ...launchOptions.env,
  };
  const parameters = { ...launchOptions, env, stderr: 'pipe' as const };
  return connectClient(
    kind,
    () => new LegacyStdio(parameters),
    () => new ModernStdio(parameters),
  );
}

/** Connects a client to an MCP endpoint over HTTP, optionally with an API key. */
export function connectHttp(kind: ClientKind, address: string, key?: string): Promise<TestClient> {
  const url = new URL(address);
  const options = { requestInit: { headers: key === undefined ? {} : { authorization: `Bearer ${key}` } } };
  return connectClient(
    kind,
    () => new LegacyHttp(url, options),
    () => new ModernHttp(url, options),
  );
}

async function connectClient(
  kind: ClientKind,
  createLegacyTransport: () => LegacyStdio | LegacyHttp,
  createModernTransport: () => ModernStdio | ModernHttp,
): Promise<TestClient> {
  if (kind === 'v1') {
    const client = new LegacyClient(
      { name: 'test', version: '1' },
      { capabilities: mcpAppsCapabilities, jsonSchemaValidator: outputValidator },
    );
    await client.connect(createLegacyTransport() as LegacyStdio);
    return wrapClient(client, (params, options) => client.callTool(params, undefined, options));
  }
  const versionNegotiation = { mode: kind === 'v2 auto' ? 'auto' : { pin: '2026-07-28' } } as const;
  const client = new ModernClient(
    { name: 'test', version: '1' },
    { capabilities: mcpAppsCapabilities, versionNegotiation },
  );
  await client.connect(createModernTransport());
  return wrapClient(client, (params, options) => client.callTool(params, options));
}
