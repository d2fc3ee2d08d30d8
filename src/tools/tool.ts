import type * as z from 'zod';
import type { OperationName } from '../api/operations.ts';
import type { Spending } from '../credits/credit-text.ts';
import type { PriceBounds } from '../credits/prices.ts';
import type { AdRowReader } from '../dataset/ad-rows.ts';
import type { GatherContext } from '../dataset/gather.ts';
import type { ErrorContext } from '../dataset/gathering-report.ts';
import type { DatasetSql } from '../dataset/snapshot.ts';
import type { Pictures } from '../pictures/pictures.ts';
import { type ExportedFile, exportTtlMs, type TenantExports } from '../storage/exports.ts';
import type { DataOf } from '../views/fields.ts';
import { quote, quoteUnlessWord } from '../views/safe-text.ts';
import type { Cursors } from './cursors.ts';

type Annotations = Record<'readOnlyHint' | 'destructiveHint' | 'idempotentHint' | 'openWorldHint', boolean>;

export const readOnlyAnnotations: Annotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: true,
};

export interface ToolDescription {
  name: string;
  title: string;
  description: string;
  /**
   * A sentence for the server instructions, which MCP hosts give to the model. It says when to use this tool for
   * questions about many ads, e.g. `How many, or which share: count_ads.`
   */
  guide?: string;
  /** MCP annotations, i.e. hints for hosts about the tool, e.g. `readOnlyHint`. */
  annotations: Annotations;
  /** The API operations that the tool calls. They determine whether a call can cost credits. */
  operations: readonly OperationName[];
  /**
   * True if one tool call may make several API calls. The receipt (the note about spent credits) then shows their sum.
   */
  makesSeveralCalls?: true;
  /** True if the tool stores user data, such as labels. Unlike ads, lost user data cannot be downloaded again. */
  storesUserData?: true;
  canReportProgress?: true;
  /** True if a successful call creates a file. Clients are then told that the list of resources changed. */
  createsFile?: true;
  /**
   * True if a call blocks the event loop for more than a few milliseconds. Each caller can run only one such call at a
   * time.
   */
  isHeavy?: true;
  /** True if hosts that support MCP Apps show the result on the board (the interactive view of ads). */
  showsBoard?: true;
  /**
   * True if only the board (the interactive view of ads) calls the tool, never the model. The data is then sent only in
   * `_meta`.
   */
  onlyForBoard?: true;
}

interface ExampleIds {
  adIds: readonly string[];
  pageId: string;
  collectionId: string;
}

interface ToolDeclaration<Input extends z.ZodObject, Output extends z.ZodObject> extends ToolDescription {
  /**
   * Returns arguments for an example call on demo data. The documentation and the tests run the examples of all tools
   * in the order of the tool list.
   */
  buildExampleArguments(ids: ExampleIds): Record<string, unknown>;
  /**
   * Returns the data for the board (the interactive view of ads). It is sent separately from the result, because some
   * hosts drop structured data.
   */
  buildBoardData?(data: object, result: ToolOutput): object;
  input: Input;
  /**
   * Schema of the result. Every object in it accepts unknown fields, so that clients still accept the result if the
   * service adds a field.
   */
  output: Output;
}

/**
 * A tool that a model or the board (the interactive view of ads) can call. Its caller formats thrown errors as messages
 * and adds the receipt (the note about spent credits).
 */
export interface Tool<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodObject = z.ZodObject>
  extends ToolDeclaration<Input, Output> {
  run(input: z.output<Input>, context: ToolContext): Promise<ToolOutput<DataOf<Output>>>;
  /**
   * Formats the data as text, for hosts that do not show structured data. Undefined if `run` already returns the text.
   */
  render?(data: DataOf<Output>, input: z.output<Input>, context: ToolContext): string;
}

/** The result of a tool call before the receipt (the note about spent credits) is added. */
export interface ToolOutput<Data extends object = object> {
  data: Data;
  /** The final text of the result. Set only by tools that return as many items as fit in the text. */
  text?: string;
  attachments?: readonly (ResourceLink | ImageContent)[];
  /** For a list: the price of the next page, if that page is not cached. */
  price?: PriceBounds | undefined;
}

export interface ImageContent {
  type: 'image';
  data: string;
  mimeType: string;
}

export const createJpegContent = (jpeg: Uint8Array): ImageContent => ({
  type: 'image',
  data: Buffer.from(jpeg).toString('base64'),
  mimeType: 'image/jpeg',
});

/** The reason for a missing picture if `allowsPictures` is false. */
export const picturesNotAllowedReason = 'this host does not show pictures to its model';

/** Time reserved at the end of a call for sending the result, in milliseconds. */
const resultMarginMs = 1000;

/**
 * Returns how many milliseconds remain for drawing a picture. After that time, the result is sent without the picture.
 */
export const getRemainingDrawingMs = ({ deadline, clock }: Pick<ToolContext, 'deadline' | 'clock'>): number =>
  deadline - clock() - resultMarginMs;

export interface ResourceLink {
  type: 'resource_link';
  uri: string;
  name: string;
  mimeType: string;
  size: number;
}

export const createResourceLink = ({ uri, name, mimeType, bytes }: ExportedFile): ResourceLink => ({
  type: 'resource_link',
  uri,
  name,
  mimeType,
  size: bytes,
});

export const buildFileAddressFields = ({ uri, path, linkPath }: ExportedFile, { linkOrigin }: ToolContext) => ({
  uri,
  ...(path !== undefined && { file: path }),
  ...(linkOrigin && linkPath && { link: `${linkOrigin}${linkPath}` }),
});

export function formatFileLocation(file: ExportedFile, context: ToolContext, companionFile?: ExportedFile) {
  const { path, lifetimeText, problem, ttlMs } = file;
  const { uri, link } = buildFileAddressFields(file, context);
  const readableText = `can be read for ${ttlMs > exportTtlMs ? 'a day' : 'an hour'} as ${uri}`;
  if (link) return `Open it at ${link}: it ${readableText}, too${lifetimeText ? `, ${lifetimeText}` : ''}`;
  if (path === undefined) {
    const problemText = problem ? `. ${problem}. To get a file, set AD_LIBRARY_FILES to a folder` : '';
    return `It ${readableText}${lifetimeText ? `, ${lifetimeText}` : ''}${problemText}`;
  }
  const companionText =
    companionFile?.path === undefined ? '' : `, with ${quoteUnlessWord(companionFile.name)} beside it`;
  return `It is in ${quote(path)}${companionText}, ${lifetimeText}, and ${readableText}`;
}

/** Returns the tool unchanged. TypeScript infers the types of `run` and `render` from the schemas in the argument. */
export const defineTool = <Input extends z.ZodObject, Output extends z.ZodObject>(tool: Tool<Input, Output>) => tool;

export interface CallerContext
  extends Pick<
    GatherContext,
    'api' | 'openDataset' | 'isCached' | 'findCachedTotal' | 'createCallBudget' | 'acquireLock'
  > {
  getAdRowReader(): AdRowReader;
  getDatasetSql(): DatasetSql;
  getExports(): TenantExports;
  /** Version of this server, which exported files mention. */
  version: string;
  readSpending(): Promise<Spending>;
  /**
   * Returns the price of a list page with this number of items. Returns undefined until the service has charged for a
   * page of this list, because only charges show the price.
   */
  getPagePrice(listOperation: OperationName, itemCount: number): Promise<PriceBounds | undefined>;
  loadPictures(): Promise<Pictures>;
  cursors: Cursors;
}

/** What a tool call may use and must respect: e.g. the API with the caller's key, the current time, and size limits. */
export interface ToolContext extends CallerContext, GatherContext, ErrorContext {
  isDemo: boolean;
  /** True if the call only estimates a price. It must not send paid requests or change anything. */
  isEstimate: boolean;
  /** True if the caller also wants the result of `check_watches` as an HTML file. */
  wantsHtml: boolean;
  /** False if the host does not show pictures to its model. The result must then contain no picture. */
  allowsPictures: boolean;
  /** How long responses are cached, in milliseconds. 0 if they are not cached. */
  cacheMs: number;
  /** Maximum number of tokens in the text that the tool returns. */
  resultTokens: number;
  /** Maximum number of UTF-8 bytes in the text that the tool returns. Infinity for hosts without such a limit. */
  resultBytes: number;
  /** Origin of download links, e.g. `https://ads.example.com`. Undefined if this server offers no links. */
  linkOrigin?: string | undefined;
  /**
   * Returns the name of the tool that calls an API operation, e.g. `search_ads` for `searchAds`. Models know tools, but
   * not the operations of the API.
   */
  getToolName(operation: string): string;
  isOffered(toolName: string): boolean;
}
