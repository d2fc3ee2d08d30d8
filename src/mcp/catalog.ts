import type { Credentials } from '../api/client.ts';
import type { AdLibraryError } from '../api/errors.ts';
import type { SearchFilters } from '../api/search-filters.ts';
import { boardResource, boardUri, readBoardResource } from '../board/board-resource.ts';
import { boardMetaKey } from '../board/payload.ts';
import { createLazyGetter } from '../lazy-getter.ts';
import { joinNonEmpty } from '../views/safe-text.ts';
import type { ServerContext, ToolCall, ToolResult } from './call-tool.ts';
import type { CallBackend } from './caller-context.ts';
import { describedTools } from './described-tools.ts';
import { convertFilterTexts } from './filter-texts.ts';
import { chooseResultFormat, type OutputSetting, type ResultFormat } from './hosts.ts';
import { buildInstructions } from './instructions.ts';
import { type ListedTool, listTools } from './list-tools.ts';
import { type CreateError, getPrompt, listPrompts, type PromptRequest, selectPrompts } from './prompts.ts';
import type { Resource, ResourceRequest } from './resources.ts';
import { skill, skillTools } from './skill.ts';

/** The caller and the transport of an MCP session. Over HTTP, every request is a session of its own. */
export interface Session extends Credentials {
  /** Resolves when the response to the request with this id has been written to the client. */
  waitUntilSent?(requestId: unknown): Promise<void>;
  linkOrigin?: string | undefined;
  /** Aborts when the client closes the server's standard input, because the client can then no longer answer a form. */
  inputEndSignal?: AbortSignal;
  /** The `User-Agent` header of an HTTP request. */
  userAgent?: string | undefined;
  output?: OutputSetting | undefined;
  /**
   * True if the server object handles only one request, as it does over HTTP. Such an object cannot send notifications
   * after the response.
   */
  handlesSingleRequest?: true;
}

/**
 * The functions and values that the adapters for both MCP SDK versions use, e.g. to list the tools. Created once per
 * process and shared by all callers.
 */
export type Catalog = ReturnType<typeof createCatalog>;

interface CatalogOptions {
  server: ServerContext;
  version: string;
  openCallBackend(): Promise<CallBackend>;
  /**
   * Returns the service's search filters that are known so far. Returns the same object until more filters become
   * known, so that callers can detect a change with `!==`.
   */
  getSearchFilters?: (() => Promise<SearchFilters | undefined>) | undefined;
}

/** Creates the catalog, which lists and runs the tools, prompts, resources and skills of the server. */
export function createCatalog({ server, version, openCallBackend, getSearchFilters }: CatalogOptions) {
  const toolNames = describedTools.map(({ name }) => name);
  const prompts = selectPrompts((tool) => server.tools.has(tool), toolNames);
  const offersBoard = [...server.tools.values()].some((tool) => tool.showsBoard);
  const skills = skillTools.every((tool) => server.tools.has(tool)) ? [skill.entry] : [];
  /**
   * Finds a resource by its URI.
   * @throws the error that `errorFactories.notFound` creates if the resource does not exist
   */
  const findResource = async (request: ResourceRequest): Promise<Resource> => {
    const { findExport, findSkillFile } = await import('./resources.ts');
    const skillFile = skills.length > 0 ? findSkillFile(request.uri) : undefined;
    if (skillFile) return skillFile;
    if (!offersBoard || request.uri !== boardUri)
      return findExport((await getCallBackend()).getExports(request), request);
    const board = await readBoardResource();
    return { readContents: async () => board };
  };
  const chooseFormat = ({ client = {}, output = server.output }: Pick<ToolCall, 'client' | 'output'>) =>
    chooseResultFormat(client, { ...server, output });
  // Import the modules for tool calls on the first call, because many sessions only list the tools.
  const getCallBackend = createLazyGetter(async () => {
    const [{ callTool }, callBackend] = await Promise.all([import('./call-tool.ts'), openCallBackend()]);
    const context = { ...server, ...callBackend, getAdFilters: readAdFilters };
    return {
      ...callBackend,
      callTool: async (call: ToolCall) => {
        const resultFormat = chooseFormat(call);
        const convertedArguments = await convertFilterTexts(
          server.tools.get(call.name),
          call.arguments,
          getSearchFilters,
        );
        const result = await callTool(context, { ...call, arguments: convertedArguments }, resultFormat);
        const tool = server.tools.get(call.name);
        if (tool?.createsFile && !result.isError) call.onFileCreated?.();
        return tool?.isOnlyForBoard ? result : removeUnusableBoardData(result, resultFormat);
      },
    };
  });
  const readAdFilters = async () => (await getSearchFilters?.())?.ads ?? [];
  let cachedToolLists: { filters?: SearchFilters | undefined; tools: Map<string, ListedTool[]> } = { tools: new Map() };
  return {
    serverInfo: { name: 'ad-library-mcp', title: 'Ad Library', version },
    /**
     * Returns the capabilities that the server announces to a client. Of all lists, only the list of resources can
     * change, because a tool call can create a file.
     */
    getCapabilities: ({ handlesSingleRequest }: Pick<Session, 'handlesSingleRequest'>) => ({
      tools: {},
      prompts: {},
      resources: handlesSingleRequest ? {} : { listChanged: true },
      extensions: { 'io.modelcontextprotocol/skills': {} },
    }),
    instructions: joinNonEmpty(
      [
        buildInstructions({ offeredTools: [...server.tools.values()], cachesAnswers: server.cacheLifetimeMs > 0 }),
        server.notice,
      ],
      '\n',
    ),
    hasTool: (name: string) => server.tools.has(name),
    /** Returns the tool list for a client. The list is cached until more search filters of the service become known. */
    getToolList: async (client: Pick<ToolCall, 'client' | 'output'>) => {
      const filters = await getSearchFilters?.();
      if (cachedToolLists.filters !== filters) cachedToolLists = { filters, tools: new Map() };
      const { output, canShowBoard } = chooseFormat(client);
      const listKey = `${output === 'text'} ${canShowBoard}`;
      const options = { includesOutputSchemas: output !== 'text', includesBoard: canShowBoard, filters };
      const tools = cachedToolLists.tools.get(listKey) ?? listTools(server.tools.values(), options);
      cachedToolLists.tools.set(listKey, tools);
      return tools;
    },
    prompts: listPrompts(prompts),
    /** The skills that this server offers. The list is empty if a tool that the skill needs is disabled. */
    skills,
    getSkill: (uri: string, createError: CreateError) => {
      const matchingSkill = skills.find((servedSkill) => servedSkill.uri === uri);
      if (matchingSkill) return { skill: matchingSkill };
      throw createError('No skill is served at that address: skills/list names those that are.');
    },
    /** The time limit of a tool call, in milliseconds. Includes the time that the call waits for a free slot. */
    timeoutMs: server.timeoutMs,
    callTool: async (call: ToolCall) => (await getCallBackend()).callTool(call),
    canToolReportProgress: (name: unknown) =>
      typeof name === 'string' && server.tools.get(name)?.canReportProgress === true,
    /** Builds the result of a call that was rejected before its tool could run. */
    buildRejectedResult: async (error: AdLibraryError) =>
      (await import('./call-tool.ts')).buildErrorResult(server, error).result,
    getPrompt: (request: PromptRequest, createError: CreateError) => getPrompt(prompts, request, createError),
    listResources: async (caller: Credentials) => {
      const { describeFile } = await import('./resources.ts');
      const files = await (await getCallBackend()).getExports(caller).list();
      return [...(offersBoard ? [boardResource] : []), ...files.map(describeFile)];
    },
    findResource,
    readResource: async (request: ResourceRequest) => (await findResource(request)).readContents(),
  };
}

/** Removes the data for the board (the interactive view of ads) if the host cannot show the board. */
function removeUnusableBoardData(result: ToolResult, { canShowBoard }: ResultFormat): ToolResult {
  if (canShowBoard) return result;
  const { _meta, ...otherFields } = result;
  const { [boardMetaKey]: _, ...otherMeta } = _meta ?? {};
  return { ...otherFields, ...(Object.keys(otherMeta).length > 0 && { _meta: otherMeta }) };
}
