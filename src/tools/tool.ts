import type * as z from 'zod';
import type { OperationName } from '../api/operations.ts';
import type { Spending } from '../credits/credit-text.ts';
import type { PriceBounds } from '../credits/prices.ts';
import type { AdRowReader } from '../dataset/ad-rows.ts';
import type { GatherContext } from '../dataset/gather.ts';
import type { ErrorExplainer } from '../dataset/gathering-report.ts';
import type { DatasetSql } from '../dataset/snapshot.ts';
import type { TenantPictures } from '../pictures/pictures.ts';
import { type ExportedFile, exportTtlMs, type TenantExports } from '../storage/exports.ts';
import type { DataOf } from '../views/fields.ts';
import { quote, quoteUnlessWord } from '../views/safe-text.ts';
import type { SigningCursorStore } from './cursors.ts';

type ToolAnnotations = Record<'readOnlyHint' | 'destructiveHint' | 'idempotentHint' | 'openWorldHint', boolean>;

export const readOnlyAnnotations: ToolAnnotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: true,
};

/** The description of a tool for hosts and models, without its schemas and code. */
export interface ToolDescription {
  name: string;
  title: string;
  description: string;
  /**
   * A sentence for the server instructions, which MCP hosts give to the model. The sentence says which questions about
   * many ads this tool answers, e.g. `How many, or which share: count_ads.`
   */
  usageHint?: string;
  /** The MCP annotations, i.e. hints about the tool for hosts, e.g. `readOnlyHint`. */
  annotations: ToolAnnotations;
  /** The API operations that the tool calls. These operations determine whether a call can cost credits. */
  operations: readonly OperationName[];
  /**
   * True if one tool call may make several API calls. The receipt (the note about spent credits) then shows the sum of
   * their charges.
   */
  makesSeveralApiCalls?: true;
  /** The value of the `maxCredits` argument if the caller sets none, in credits. */
  defaultMaxCredits?: number;
  /**
   * True if the tool stores user data, such as labels. Lost user data cannot be restored, whereas lost ads can be
   * downloaded again.
   */
  storesUserData?: true;
  canReportProgress?: true;
  /** True if a successful call creates a file. The server then tells clients that the list of resources has changed. */
  createsFile?: true;
  /**
   * True if a call blocks the event loop for more than a few milliseconds. Each caller can run only one such call at a
   * time.
   */
  isCpuIntensive?: true;
  /** True if hosts that support MCP Apps show the result on the board (the interactive view of ads). */
  showsBoard?: true;
  /**
   * True if only the board (the interactive view of ads) calls the tool, and the model never does. The data is then
   * sent only in `_meta`.
   */
  isOnlyForBoard?: true;
}

interface ExampleIds {
  adIds: readonly string[];
  pageId: string;
  collectionId: string;
}

interface ToolDeclaration<Input extends z.ZodObject, Output extends z.ZodObject> extends ToolDescription {
  /**
   * Returns the arguments of an example call on demo data. The documentation and the tests run the examples of all
   * tools in the order of the tool list.
   */
  buildExampleArguments(ids: ExampleIds): Record<string, unknown>;
  /**
   * Returns the data for the board (the interactive view of ads). This data is sent separately from the result, because
   * some hosts drop the structured data of a result.
   */
  buildBoardData?(data: object, result: ToolOutput): object;
  inputSchema: Input;
  /**
   * The schema of the result. All objects in the schema allow unknown fields, so that clients still accept the result
   * if the service adds a field.
   */
  createOutputSchema(): Output;
}

/**
 * A tool that a model or the board (the interactive view of ads) can call. The code that runs the tool formats thrown
 * errors as messages and adds the receipt (the note about spent credits).
 */
export interface Tool<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodObject = z.ZodObject>
  extends ToolDeclaration<Input, Output> {
  run(input: z.output<Input>, context: ToolContext): Promise<ToolOutput<DataOf<Output>>>;
  /**
   * Formats the data as text, for hosts that do not show structured data. Undefined if `run` itself returns the text.
   */
  render?(data: DataOf<Output>, input: z.output<Input>, context: ToolContext): string;
}

/** The result of a tool call before the receipt (the note about spent credits) is added. */
export interface ToolOutput<Data extends object = object> {
  data: Data;
  /** The final text of the result. Only set by tools that return as many items as fit in the text. */
  text?: string;
  /**
   * True if the tool has already checked that `text` fits in `maxTextTokens` and `maxTextBytes` of its context. The
   * server then does not measure the text again.
   */
  isTextWithinLimits?: boolean;
  attachments?: readonly (ResourceLink | ImageContent)[];
  /** For a list, the price of the next page if that page is not cached. */
  nextPagePrice?: PriceBounds | undefined;
}

/** A picture in an MCP result. `data` is encoded in base64. */
export interface ImageContent {
  type: 'image';
  data: string;
  mimeType: string;
}

/** Creates the content of an MCP result from a JPEG picture. */
export const createJpegContent = (jpeg: Uint8Array): ImageContent => ({
  type: 'image',
  data: Buffer.from(jpeg).toString('base64'),
  mimeType: 'image/jpeg',
});

/** The reason for a missing picture if `allowsPictures` is false. */
export const picturesNotAllowedReason = 'this host does not show pictures to its model';

/** The time that is reserved at the end of a call for sending the result, in milliseconds. */
const sendingReserveMs = 1000;

/**
 * Returns the time that remains for drawing a picture, in milliseconds. If drawing takes longer, the result is sent
 * without the picture.
 */
export const getRemainingDrawingMs = ({ deadline, getTime }: Pick<ToolContext, 'deadline' | 'getTime'>): number =>
  deadline - getTime() - sendingReserveMs;

/** A link to an exported file in an MCP result. `size` is in bytes. */
export interface ResourceLink {
  type: 'resource_link';
  uri: string;
  name: string;
  mimeType: string;
  size: number;
}

/** Creates the link to an exported file. */
export const createResourceLink = ({ uri, name, mimeType, bytes }: ExportedFile): ResourceLink => ({
  type: 'resource_link',
  uri,
  name,
  mimeType,
  size: bytes,
});

/** Builds the result fields that say where a file is: its URI, its path and its download link. */
export const buildFileLocationFields = ({ uri, path, linkPath }: ExportedFile, { linkOrigin }: ToolContext) => ({
  uri,
  ...(path !== undefined && { file: path }),
  ...(linkOrigin && linkPath && { link: `${linkOrigin}${linkPath}` }),
});

/** Formats a sentence that says where an exported file is, and how long it can be read. */
export function formatFileLocation(file: ExportedFile, context: ToolContext, companionFile?: ExportedFile) {
  const { path, lifetimeText, problem, ttlMs } = file;
  const { uri, link } = buildFileLocationFields(file, context);
  const availabilityText = `can be read for ${ttlMs > exportTtlMs ? 'a day' : 'an hour'} as ${uri}`;
  if (link) return `Open it at ${link}: it ${availabilityText}, too${lifetimeText ? `, ${lifetimeText}` : ''}`;
  if (path === undefined) {
    const problemText = problem ? `. ${problem}. To get a file, set AD_LIBRARY_FILES to a folder` : '';
    return `It ${availabilityText}${lifetimeText ? `, ${lifetimeText}` : ''}${problemText}`;
  }
  const companionText =
    companionFile?.path === undefined ? '' : `, with ${quoteUnlessWord(companionFile.name)} beside it`;
  return `It is in ${quote(path)}${companionText}, ${lifetimeText}, and ${availabilityText}`;
}

/**
 * Returns the tool unchanged. The function exists because TypeScript then infers the types of `run` and `render` from
 * the schemas of the tool.
 */
export const defineTool = <Input extends z.ZodObject, Output extends z.ZodObject>(tool: Tool<Input, Output>) => tool;

/** The dependencies of a tool call that belong to one caller, e.g. the dataset and the exported files. */
export interface CallerContext
  extends Pick<
    GatherContext,
    'api' | 'openDataset' | 'isCached' | 'findCachedTotal' | 'createCallBudget' | 'acquireLock'
  > {
  getAdRowReader(): AdRowReader;
  getDatasetSql(): DatasetSql;
  getExports(): TenantExports;
  /** The version of this server, which is mentioned in exported files. */
  serverVersion: string;
  readSpending(): Promise<Spending>;
  /**
   * Returns the price of a list page with this number of items. If the number is undefined, returns a price for any
   * page size. Only charges reveal the price, so the method returns undefined until the service has charged for a page
   * of this list.
   */
  getPagePrice(listOperation: OperationName, itemCount: number | undefined): Promise<PriceBounds | undefined>;
  loadPictures(): Promise<TenantPictures>;
  cursors: SigningCursorStore;
}

/**
 * The dependencies and limits of a tool call, e.g. the API with the caller's key, the current time, and the maximum
 * size of the result.
 */
export interface ToolContext extends CallerContext, GatherContext, ErrorExplainer {
  isDemo: boolean;
  /**
   * True if the call only estimates the price of its arguments. The call must not send paid requests or change
   * anything. A tool with the `maxCredits` argument then returns an estimate, whatever `maxCredits` is.
   */
  isEstimate: boolean;
  /** True if the caller also wants the result of `check_watches` as an HTML file. */
  wantsHtml: boolean;
  /** False if the host does not show pictures to its model. The result must then not contain a picture. */
  allowsPictures: boolean;
  /** How long responses are cached, in milliseconds. 0 if responses are not cached. */
  cacheLifetimeMs: number;
  /** The maximum number of tokens in the text that the tool returns. */
  maxTextTokens: number;
  /** The maximum number of UTF-8 bytes in the text that the tool returns. Infinity for hosts without such a limit. */
  maxTextBytes: number;
  /**
   * The origin of download links, e.g. `https://ads.example.com`. Undefined if this server offers no download links.
   */
  linkOrigin?: string | undefined;
  /**
   * Returns the name of the tool that calls an API operation, e.g. `search_ads` for `searchAds`. Messages mention the
   * tool, because models do not know the operations of the API.
   */
  getToolName(operation: string): string;
  isToolOffered(toolName: string): boolean;
}
