import type * as z from 'zod';
import type { OperationName } from '../api/operations.ts';
import type { Spending } from '../credits/credit-text.ts';
import type { PriceBounds } from '../credits/prices.ts';
import type { AdRowReader } from '../dataset/ad-rows.ts';
import type { GatherContext } from '../dataset/gather.ts';
import type { ErrorContext } from '../dataset/gathering-report.ts';
import type { DatasetSql } from '../dataset/snapshot.ts';
import type { Pictures } from '../pictures/pictures.ts';
import { type ExportedFile, type Exports, exportTtlMs } from '../storage/exports.ts';
import type { DataOf } from '../views/fields.ts';
import { quote, quoteUnlessWord } from '../views/safe-text.ts';
import type { Cursors } from './cursors.ts';

type Annotations = Record<'readOnlyHint' | 'destructiveHint' | 'idempotentHint' | 'openWorldHint', boolean>;

export const readOnly: Annotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: true,
};

export interface ToolDescription {
  name: string;
  title: string;
  description: string;
  /** Sentence in the server instructions that says when to use the tool for questions about many ads. */
  guide?: string;
  /** MCP annotation hints, e.g. whether the tool only reads. */
  annotations: Annotations;
  /** API operations that the tool calls. They also determine whether the tool is paid. */
  operations: readonly OperationName[];
  /** True if one tool call may make several API calls. The receipt then shows the sum of their charges. */
  makesSeveralCalls?: true;
  /**
   * True if the tool stores user data, such as labels or watches. Unlike ads, this data cannot be read from the service
   * again.
   */
  keepsRecords?: true;
  canReportProgress?: true;
  /** True if a successful call creates a file, which then appears in the list of resources. */
  createsFile?: true;
  /**
   * True if a call blocks the event loop for more than a few milliseconds. Each caller can run only one such call at a
   * time.
   */
  isHeavy?: true;
  /** True if hosts that support views show the results on the board. */
  showsBoard?: true;
  /** True if only the board calls the tool. The result then carries its data only in `_meta`. */
  onlyForBoard?: true;
}

interface ExampleIds {
  adIds: readonly string[];
  pageId: string;
  collectionId: string;
}

interface ToolDeclaration<Input extends z.ZodObject, Output extends z.ZodObject> extends ToolDescription {
  /**
   * Returns the arguments of an example call on demo data, for the docs and tests. Examples run in the order of the
   * catalog.
   */
  example(ids: ExampleIds): Record<string, unknown>;
  /**
   * Returns the data that the board needs. It is sent separately, because some hosts drop the structured data of a
   * result.
   */
  forBoard?(data: object, result: ToolOutput): object;
  input: Input;
  /** Schema of the result. Every object in it is loose, so that a new field of the service breaks no client. */
  output: Output;
}

/**
 * A tool of the catalog. It does not depend on MCP or on credits. It throws its errors, and its caller adds the receipt
 * and explains the errors.
 */
export interface Tool<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodObject = z.ZodObject>
  extends ToolDeclaration<Input, Output> {
  run(input: z.output<Input>, context: ToolContext): Promise<ToolOutput<DataOf<Output>>>;
  /** Formats the data as text that is complete on its own. Not defined if `run` already returns the text. */
  render?(data: DataOf<Output>, input: z.output<Input>, context: ToolContext): string;
}

/** The result of a tool call, before the receipt is added. */
export interface ToolOutput<Data extends object = object> {
  data: Data;
  /** The final text. Set by tools that shorten their data while they write the text. */
  text?: string;
  attachments?: readonly (ResourceLink | ImageContent)[];
  /** For a list, the price of the next page if its response is not cached. */
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

/** Time reserved before the deadline of a call to send the result, in milliseconds. */
const resultMarginMs = 1000;

/**
 * Returns the time in milliseconds that drawing a picture may still take. After this time, the result is sent without
 * the picture.
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

export const listFileAddresses = ({ uri, path, linkPath }: ExportedFile, { linkOrigin }: ToolContext) => ({
  uri,
  ...(path !== undefined && { file: path }),
  ...(linkOrigin && linkPath && { link: `${linkOrigin}${linkPath}` }),
});

export function formatFileLocation(file: ExportedFile, context: ToolContext, companion?: ExportedFile) {
  const { path, lifetimeText, problem, ttlMs } = file;
  const { uri, link } = listFileAddresses(file, context);
  const readableText = `can be read for ${ttlMs > exportTtlMs ? 'a day' : 'an hour'} as ${uri}`;
  if (link) return `Open it at ${link}: it ${readableText}, too${lifetimeText ? `, ${lifetimeText}` : ''}`;
  if (path === undefined) {
    const problemText = problem ? `. ${problem}. To get a file, set AD_LIBRARY_FILES to a folder` : '';
    return `It ${readableText}${lifetimeText ? `, ${lifetimeText}` : ''}${problemText}`;
  }
  const companionText = companion?.path === undefined ? '' : `, with ${quoteUnlessWord(companion.name)} beside it`;
  return `It is in ${quote(path)}${companionText}, ${lifetimeText}, and ${readableText}`;
}

/** Returns the tool unchanged. Infers the types of `run` and `render` from the schemas. */
export const defineTool = <Input extends z.ZodObject, Output extends z.ZodObject>(tool: Tool<Input, Output>) => tool;

export interface CallerContext
  extends Pick<GatherContext, 'api' | 'dataset' | 'isCached' | 'cachedTotal' | 'callBudget' | 'acquireLock'> {
  adRows(): AdRowReader;
  sql(): DatasetSql;
  exports(): Exports;
  /** Version of this server, for notes on how data was gathered. */
  version: string;
  spending(): Promise<Spending>;
  /**
   * Returns the price of a page with this number of items. Undefined until the service has charged for a page of this
   * list.
   */
  getPagePrice(list: OperationName, items: number): Promise<PriceBounds | undefined>;
  pictures(): Promise<Pictures>;
  cursors: Cursors;
}

/** Everything a tool needs to run: the API under the caller's key, the time, and the token budget of the result. */
export interface ToolContext extends CallerContext, GatherContext, ErrorContext {
  isDemo: boolean;
  /** True if the call only estimates a price. Such a call sends no paid request and changes nothing. */
  isEstimate: boolean;
  /** True if the user chose "read the first page only" in the confirmation form. `maxAds` is then the size of one page. */
  isFirstPageOnly: boolean;
  /** True if the caller also wants the result of `check_watches` as an HTML file. */
  wantsHtml: boolean;
  /** Lifetime of cached responses, in milliseconds. */
  cacheMs: number;
  /** Token budget for the text that the tool writes. */
  resultTokens: number;
  /** Maximum number of UTF-8 bytes of that text. Infinite for most hosts. */
  resultBytes: number;
  /** Origin of file links that the caller can open, if the server offers links. */
  linkOrigin?: string | undefined;
  /** Returns the name of the tool that calls an operation. Models know tools but not operations. */
  getToolName(operation: string): string;
  isOffered(tool: string): boolean;
}
