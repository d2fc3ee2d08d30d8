import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  inputRequired,
  inputResponse,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  specTypeSchemas,
} from '@modelcontextprotocol/server';
import * as z from 'zod';
import type { Catalog, Session } from './catalog.ts';
import { FormNeededError, type FormPresenter } from './confirm-spending.ts';
import { identifyClient } from './hosts.ts';
import { createProgressReporter, type RequestError, type RequestSchemas, refusedReadErrorCode } from './protocol.ts';

/**
 * Tells clients that they may cache a response for an hour. Every caller gets the same response, which does not change
 * while the process runs.
 */
const publicCacheHint = { ttlMs: 3_600_000, cacheScope: 'public' } as const;
/**
 * Tells clients that they may cache the list of tools for five minutes, but not share it. The list depends on the host,
 * and it gets more filters when a local library (a server of imported ads) starts later than this server.
 */
const toolListCacheHint = { ttlMs: 300_000, cacheScope: 'private' } as const;
const cacheHints = {
  'tools/list': toolListCacheHint,
  'prompts/list': publicCacheHint,
  'server/discover': publicCacheHint,
};

/** Creates an SDK server for protocol revision 2026-07-28. The server uses `catalog` to answer requests. */
export function createSdkV2Server(catalog: Catalog, session: Session): Server {
  const { serverInfo, instructions } = catalog;
  const { apiKey, tenantId, connection, waitUntilSent, linkOrigin, userAgent, output, handlesSingleRequest } = session;
  const capabilities = catalog.getCapabilities(session);
  const server = new Server(serverInfo, { capabilities, instructions, cacheHints });
  // Read the client's name and capabilities from the request, because over stdio, the SDK does not set
  // `getClientVersion()` and `getClientCapabilities()`.
  const getClientIdentity = (envelope: RequestMeta = {}) => {
    const { [CLIENT_INFO_META_KEY]: clientInfo, [CLIENT_CAPABILITIES_META_KEY]: capabilities } = envelope;
    return identifyClient({ name: clientInfo?.name, capabilities, userAgent });
  };
  // The SDK sends this notification only to clients that have subscribed with `subscriptions/listen`.
  const announceFile = () => void server.sendResourceListChanged().catch(() => {});
  const onFileCreated = handlesSingleRequest ? undefined : announceFile;
  server.setRequestHandler('tools/list', async (_request, { mcpReq }) => ({
    tools: await catalog.getToolList({ client: getClientIdentity(mcpReq.envelope), output }),
  }));
  server.setRequestHandler('tools/call', ({ params }, { mcpReq }) => {
    const { id, signal, _meta } = mcpReq;
    const reporter = createProgressReporter(_meta, (progress) =>
      mcpReq.notify({ method: 'notifications/progress', params: { ...progress } }),
    );
    const { name, arguments: args } = params;
    const responseSent = waitUntilSent?.(id);
    const caller = {
      apiKey,
      tenantId,
      connection,
      client: getClientIdentity(mcpReq.envelope),
      output,
      signal,
      responseSent,
      linkOrigin,
      formPresenter: findFormPresenter(mcpReq),
    };
    return catalog
      .callTool({ name, arguments: args, onProgress: reporter?.reportProgress, onFileCreated, ...caller })
      .catch(buildInputRequest)
      .finally(() => reporter?.stopReporting());
  });
  server.setRequestHandler('prompts/list', () => ({ prompts: catalog.prompts }));
  server.setRequestHandler('prompts/get', ({ params }) =>
    catalog.getPrompt(params, (problem) => new ProtocolError(ProtocolErrorCode.InvalidParams, problem)),
  );
  server.setRequestHandler('skills/list', listSkillsSchemas, () => ({ skills: catalog.skills, ...publicCacheHint }));
  server.setRequestHandler('skills/get', getSkillSchemas, ({ uri }) => ({
    ...catalog.getSkill(uri, (problem) => new ProtocolError(ProtocolErrorCode.InvalidParams, problem)),
    ...publicCacheHint,
  }));
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }));
  server.setRequestHandler('resources/list', async () => ({
    resources: await catalog.listResources({ apiKey, tenantId }),
  }));
  server.setRequestHandler('resources/read', ({ params: { uri } }, { mcpReq: { id, signal } }) => {
    const errorFactories = {
      notFound: (problem: string) => new ResourceNotFoundError(uri, problem),
      refused: (problem: string) => new ProtocolError(refusedReadErrorCode, problem),
    };
    return catalog.readResource({ apiKey, tenantId, uri, signal, responseSent: waitUntilSent?.(id), errorFactories });
  });
  return server;
}

/** Creates a server that rejects every request with the same error. */
export function createRefusingServer({ serverInfo }: Pick<Catalog, 'serverInfo'>, error: RequestError): Server {
  const server = new Server(serverInfo);
  server.fallbackRequestHandler = () => Promise.reject(new ProtocolError(error.code, error.message));
  return server;
}

/**
 * The key of the form in a result that asks the client to show a form. Such a result contains only one form, so the key
 * is constant.
 */
const formKey = 'confirm';

/**
 * Returns the object with which a call asks the user to confirm a price. If the client repeats the call after showing
 * the form, this object contains the user's answer. Returns undefined if the client has not announced that it supports
 * forms.
 */
function findFormPresenter({ envelope, inputResponses, requestState }: ClientRequest): FormPresenter | undefined {
  const capabilities: { elicitation?: { form?: object; url?: object } } =
    envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
  const { elicitation } = capabilities;
  // A client may announce elicitation as `{}`, without the modes `form` and `url`. Such a client supports forms (MCP
  // specification, *Elicitation*, *Capabilities*).
  if (elicitation === undefined || (elicitation.url && !elicitation.form)) return undefined;
  const formState = requestState();
  const formAnswer = inputResponse(inputResponses, formKey);
  const isAnswered = typeof formState === 'string' && formAnswer.kind === 'elicit';
  return { timing: 'betweenCalls', ...(isAnswered && { userAnswer: { signedState: formState, answer: formAnswer } }) };
}

interface ClientRequest {
  envelope?: RequestMeta | undefined;
  inputResponses?: Record<string, unknown> | undefined;
  requestState(): unknown;
}

/**
 * Returns a result that asks the client to show a form and to repeat the call with the user's answer.
 * @throws `error` unchanged if it is not a `FormNeededError`
 */
function buildInputRequest(error: unknown) {
  if (!(error instanceof FormNeededError)) throw error;
  const { form, signedState } = error;
  return inputRequired({ inputRequests: { [formKey]: inputRequired.elicit(form) }, requestState: signedState });
}

/** The fields of a request's `_meta` that identify the client. The SDK's types do not declare these fields. */
interface RequestMeta {
  [CLIENT_INFO_META_KEY]?: { name?: string };
  [CLIENT_CAPABILITIES_META_KEY]?: object;
}

/**
 * The schemas of requests for skills, an MCP extension (SEP-2640) that this SDK does not include. Created only once,
 * because the server creates a new `Server` object for each HTTP request.
 */
const listSkillsSchemas = { params: z.looseObject({}) };
const getSkillSchemas = { params: z.looseObject({ uri: z.string() }) };

export const requestSchemasV2: RequestSchemas = {
  request: specTypeSchemas.JSONRPCRequest,
  'tools/list': specTypeSchemas.ListToolsRequest,
  'tools/call': specTypeSchemas.CallToolRequest,
  'prompts/list': specTypeSchemas.ListPromptsRequest,
  'prompts/get': specTypeSchemas.GetPromptRequest,
  'resources/list': specTypeSchemas.ListResourcesRequest,
  'resources/templates/list': specTypeSchemas.ListResourceTemplatesRequest,
  'resources/read': specTypeSchemas.ReadResourceRequest,
};
