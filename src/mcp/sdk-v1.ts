import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  ErrorCode,
  GetPromptRequestSchema,
  InitializeRequestSchema,
  JSONRPCRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  PingRequestSchema,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { jsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/types.js';
import * as z from 'zod';
import { withDeadline } from '../api/abort.ts';
import type { Catalog, Session } from './catalog.ts';
import type { FormPresenter } from './confirm-spending.ts';
import { identifyClient } from './hosts.ts';
import { createProgressReporter, type RequestSchemas, refusedReadErrorCode } from './protocol.ts';

/** Creates an SDK server for protocol revisions up to 2025-11-25. The server uses `catalog` to answer requests. */
export function createSdkV1Server(catalog: Catalog, session: Session): Server {
  const { serverInfo, instructions } = catalog;
  const {
    apiKey,
    tenantId,
    connection,
    waitUntilSent,
    linkOrigin,
    userAgent,
    output,
    handlesSingleRequest,
    inputEndSignal,
  } = session;
  const capabilities = catalog.getCapabilities(session);
  const server = new Server(serverInfo, { capabilities, instructions, jsonSchemaValidator: acceptAllValidator });
  // The client sends its name and capabilities in the handshake. Over HTTP there is no handshake, so `name` and
  // `capabilities` are undefined.
  const getClientIdentity = () =>
    identifyClient({ name: server.getClientVersion()?.name, capabilities: server.getClientCapabilities(), userAgent });
  // Notify the client of a new file before the response is sent, so that the client can already read the file when the
  // model asks for it.
  const announceFile = () => void server.sendResourceListChanged().catch(() => {});
  const onFileCreated = handlesSingleRequest ? undefined : announceFile;
  server.setRequestHandler(ListToolsRequestSchema, async () => ({
    tools: await catalog.getToolList({ client: getClientIdentity(), output }),
  }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal, requestId, _meta, sendNotification }) => {
    const reporter = createProgressReporter(_meta, (progress) =>
      sendNotification({ method: 'notifications/progress', params: { ...progress } }),
    );
    const { name, arguments: args } = params;
    const responseSent = waitUntilSent?.(requestId);
    const formPresenter = findFormPresenter(server, inputEndSignal);
    const caller = {
      apiKey,
      tenantId,
      connection,
      client: getClientIdentity(),
      output,
      signal,
      responseSent,
      linkOrigin,
      formPresenter,
    };
    return catalog
      .callTool({ name, arguments: args, onProgress: reporter?.reportProgress, onFileCreated, ...caller })
      .finally(() => reporter?.stopReporting());
  });
  server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: catalog.prompts }));
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) =>
    catalog.getPrompt(params, (problem) => new McpError(ErrorCode.InvalidParams, problem)),
  );
  server.setRequestHandler(ListSkillsRequestSchema, () => ({ skills: catalog.skills }));
  server.setRequestHandler(GetSkillRequestSchema, ({ params: { uri } }) =>
    catalog.getSkill(uri, (problem) => new McpError(ErrorCode.InvalidParams, problem)),
  );
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [] }));
  server.setRequestHandler(ListResourcesRequestSchema, async () => ({
    resources: await catalog.listResources({ apiKey, tenantId }),
  }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }, { signal, requestId }) => {
    const errorFactories = {
      notFound: (problem: string) => new McpError(resourceNotFoundCode, problem),
      refused: (problem: string) => new McpError(refusedReadErrorCode, problem),
    };
    return catalog.readResource({
      apiKey,
      tenantId,
      uri,
      signal,
      responseSent: waitUntilSent?.(requestId),
      errorFactories,
    });
  });
  return server;
}

/** The schemas of requests for skills. Skills are an MCP extension (SEP-2640) that this SDK does not include. */
const ListSkillsRequestSchema = z.looseObject({ method: z.literal('skills/list') });
const GetSkillRequestSchema = z.looseObject({
  method: z.literal('skills/get'),
  params: z.looseObject({ uri: z.string() }),
});

/** The error code for a missing resource in protocol revisions up to 2025-11-25. The SDK does not export this code. */
const resourceNotFoundCode = -32_002;

/**
 * Returns an object that shows forms to the user during a call. Returns undefined if the client has not announced that
 * it supports forms.
 * @param inputEndSignal aborts when the client can no longer send an answer
 */
function findFormPresenter(server: Server, inputEndSignal: AbortSignal | undefined): FormPresenter | undefined {
  if (server.getClientCapabilities()?.elicitation?.form === undefined) return undefined;
  return {
    timing: 'duringCall',
    show: (form, signal) =>
      withDeadline(
        { signals: inputEndSignal ? [signal, inputEndSignal] : [signal], timeoutMs: formTimeoutMs },
        (formSignal) => server.elicitInput({ ...form }, { signal: formSignal, timeout: formTimeoutMs }),
      ),
  };
}

/**
 * The time limit that the SDK applies to a form, in milliseconds. `confirm-spending.ts` ends a form earlier, so a user
 * never sees the timeout error of the SDK. The default of the SDK is 60 seconds.
 */
const formTimeoutMs = 120_000;

/**
 * A validator that accepts every answer to a form. `confirm-spending.ts` validates the answers, and the SDK's default
 * validator is slow to load.
 */
const acceptAllValidator: jsonSchemaValidator = {
  getValidator: () => (answer) => ({ valid: true, data: answer as never, errorMessage: undefined }),
};

export const requestSchemasV1: RequestSchemas = {
  request: JSONRPCRequestSchema,
  initialize: InitializeRequestSchema,
  ping: PingRequestSchema,
  'tools/list': ListToolsRequestSchema,
  'tools/call': CallToolRequestSchema,
  'prompts/list': ListPromptsRequestSchema,
  'prompts/get': GetPromptRequestSchema,
  'resources/list': ListResourcesRequestSchema,
  'resources/templates/list': ListResourceTemplatesRequestSchema,
  'resources/read': ReadResourceRequestSchema,
};
