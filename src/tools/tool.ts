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
  /** When to use the tool for questions about many ads: a sentence of the instructions. */
  guide?: string;
  /** Whether the tool only reads, and whether it calls the service. */
  annotations: Annotations;
  /** The API operations that the tool calls. Whether the tool is paid follows from them. */
  operations: readonly OperationName[];
  /** The tool may make several calls of the API: its receipt is their sum. */
  makesSeveralCalls?: true;
  /** The tool stores what a person made, which no service can send again. */
  keepsRecords?: true;
  canReportProgress?: true;
  /** A successful call creates a file, which is then in the list of resources. */
  createsFile?: true;
  /** A call takes the thread that serves everybody more than a few milliseconds: each caller has one at a time. */
  isHeavy?: true;
  /** Hosts that can draw views show its results on the board. */
  showsBoard?: true;
  /** Only the board calls the tool. The result has its data only in `_meta`. */
  onlyForBoard?: true;
}

interface ExampleIds {
  adIds: readonly string[];
  pageId: string;
  collectionId: string;
}

interface ToolDeclaration<Input extends z.ZodObject, Output extends z.ZodObject> extends ToolDescription {
  /** A call on demo data, for docs and tests. Calls come in the order of the catalogue. */
  example(ids: ExampleIds): Record<string, unknown>;
  /** Returns the part of a result that the board needs. Some hosts drop the data of a result, so the board gets this part separately. */
  forBoard?(data: object, result: ToolOutput): object;
  input: Input;
  /** Loose at every level, so that a new key of the service breaks no client. */
  output: Output;
}

/**
 * A tool of the catalogue. It knows nothing of MCP or of credits, and throws its errors: its caller adds the receipt and
 * explains the errors.
 */
export interface Tool<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodObject = z.ZodObject>
  extends ToolDeclaration<Input, Output> {
  run(input: z.output<Input>, context: ToolContext): Promise<ToolOutput<DataOf<Output>>>;
  /** Formats the data as a text that is complete on its own. Missing if `run` returns the text. */
  render?(data: DataOf<Output>, input: z.output<Input>, context: ToolContext): string;
}

/** What a tool returns. */
export interface ToolOutput<Data extends object = object> {
  data: Data;
  /** The finished text, for a tool that cuts its data to fit while it writes the text. */
  text?: string;
  attachments?: readonly (ResourceLink | ImageContent)[];
  /** For a list: the price of its next page if no answer is cached. */
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

/** Time that a result without its picture needs before the deadline of the call. */
const resultMarginMs = 1000;

/** Returns how long a picture may still take, in milliseconds. Without the picture, the result still arrives in time. */
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

/** Declares a tool with the types of its schemas. */
export const defineTool = <Input extends z.ZodObject, Output extends z.ZodObject>(tool: Tool<Input, Output>) => tool;

export interface CallerContext
  extends Pick<GatherContext, 'api' | 'dataset' | 'isCached' | 'cachedTotal' | 'callBudget' | 'acquireLock'> {
  adRows(): AdRowReader;
  sql(): DatasetSql;
  exports(): Exports;
  /** The version of this server, for notes on how data were gathered. */
  version: string;
  spending(): Promise<Spending>;
  /** The price of a page of a list with this number of items; undefined if no charge was seen. */
  getPagePrice(list: OperationName, items: number): Promise<PriceBounds | undefined>;
  pictures(): Promise<Pictures>;
  cursors: Cursors;
}

/** What a tool may use: the API on its caller's account, the time, and the space for its text. */
export interface ToolContext extends CallerContext, GatherContext, ErrorContext {
  isDemo: boolean;
  /** The call only estimates its price: it sends no paid request and must change nothing. */
  isEstimate: boolean;
  /** Whether the caller wants what a check found as an HTML file, too. */
  wantsHtml: boolean;
  /** How long answers are cached, in milliseconds. */
  cacheMs: number;
  /** Maximum tokens of the tool's own text in a result. */
  resultTokens: number;
  /** The origin under which the caller can open links to files, if there is one. */
  linkOrigin?: string | undefined;
  /** The name of the tool that calls an operation. Models know operations by tool names only. */
  getToolName(operation: string): string;
  isOffered(tool: string): boolean;
}
