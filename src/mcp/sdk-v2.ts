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
import { FormNeeded, type FormPresenter } from './confirm-spend.ts';
import { identifyClient } from './hosts.ts';
import { createProgressReporter, type RequestSchemas, refusedReadCode } from './protocol.ts';

/**
 * Allows clients to cache lists for an hour. A list is the same for every caller and does not change while the process
 * runs.
 */
const listHint = { ttlMs: 3_600_000, cacheScope: 'public' } as const;
const cacheHints = { 'tools/list': listHint, 'prompts/list': listHint, 'server/discover': listHint };

export function bindV2(catalog: Catalog, session: Session): Server {
  const { serverInfo, instructions } = catalog;
  const { apiKey, tenantId, connection, waitUntilSent, linkOrigin, userAgent, output, servesOneRequest } = session;
  const capabilities = catalog.capabilities(session);
  const server = new Server(serverInfo, { capabilities, instructions, cacheHints });
  // Over stdio, the SDK does not set `getClientVersion()` and `getClientCapabilities()`, so read both from the request.
  const getClientIdentity = (envelope: RequestMeta = {}) => {
    const { [CLIENT_INFO_META_KEY]: clientInfo, [CLIENT_CAPABILITIES_META_KEY]: capabilities } = envelope;
    return identifyClient({ name: clientInfo?.name, capabilities, userAgent });
  };
  // The SDK sends this notification only to clients that have subscribed with `subscriptions/listen`.
  const announceFile = () => void server.sendResourceListChanged().catch(() => {});
  const onFileCreated = servesOneRequest ? undefined : announceFile;
  server.setRequestHandler('tools/list', async (_request, { mcpReq }) => ({
    tools: await catalog.tools({ client: getClientIdentity(mcpReq.envelope), output }),
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
      .callTool({ name, arguments: args, onProgress: reporter?.report, onFileCreated, ...caller })
      .catch(buildInputRequest)
      .finally(() => reporter?.end());
  });
  server.setRequestHandler('prompts/list', () => ({ prompts: catalog.prompts }));
  server.setRequestHandler('prompts/get', ({ params }) =>
    catalog.getPrompt(params, (problem) => new ProtocolError(ProtocolErrorCode.InvalidParams, problem)),
  );
  server.setRequestHandler('skills/list', listSkillsSchemas, () => ({ skills: catalog.skills, ...listHint }));
  server.setRequestHandler('skills/get', getSkillSchemas, ({ uri }) => ({
    ...catalog.getSkill(uri, (problem) => new ProtocolError(ProtocolErrorCode.InvalidParams, problem)),
    ...listHint,
  }));
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }));
  server.setRequestHandler('resources/list', async () => ({
    resources: await catalog.listResources({ apiKey, tenantId }),
  }));
  server.setRequestHandler('resources/read', ({ params: { uri } }, { mcpReq: { id, signal } }) => {
    const errors = {
      notFound: (problem: string) => new ResourceNotFoundError(uri, problem),
      refused: (problem: string) => new ProtocolError(refusedReadCode, problem),
    };
    return catalog.readResource({ apiKey, tenantId, uri, signal, responseSent: waitUntilSent?.(id), errors });
  });
  return server;
}

/** Key of the form in the result of a call that asks the user. A call shows at most one form, so the key is fixed. */
const formName = 'confirm';

/**
 * Returns the object with which a call asks the user. It contains the user's answer if the client repeats the call
 * after showing a form. Returns undefined if the client has not announced support for forms.
 */
function findFormPresenter({ envelope, inputResponses, requestState }: RequestOfClient): FormPresenter | undefined {
  const capabilities: { elicitation?: { form?: object; url?: object } } =
    envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
  const { elicitation } = capabilities;
  // A client that announces elicitation without a mode supports forms (MCP specification, *Elicitation*,
  // *Capabilities*).
  if (elicitation === undefined || (elicitation.url && !elicitation.form)) return undefined;
  const state = requestState();
  const answer = inputResponse(inputResponses, formName);
  const isAnswered = typeof state === 'string' && answer.kind === 'elicit';
  return { timing: 'betweenCalls', ...(isAnswered && { answered: { state, answer } }) };
}

interface RequestOfClient {
  envelope?: RequestMeta | undefined;
  inputResponses?: Record<string, unknown> | undefined;
  requestState(): unknown;
}

/**
 * Returns a result that asks the client to show a form and repeat the call with the answer.
 * @throws the error itself if it is not a `FormNeeded`
 */
function buildInputRequest(error: unknown) {
  if (!(error instanceof FormNeeded)) throw error;
  const { form, state } = error;
  return inputRequired({ inputRequests: { [formName]: inputRequired.elicit(form) }, requestState: state });
}

/** The keys in a request's `_meta` that identify the client. The SDK's types do not declare them. */
interface RequestMeta {
  [CLIENT_INFO_META_KEY]?: { name?: string };
  [CLIENT_CAPABILITIES_META_KEY]?: object;
}

/**
 * The request schemas of skills, an MCP extension (SEP-2640) that this SDK does not include. They are constants,
 * because each request creates a new server object.
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
