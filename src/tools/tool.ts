import * as z from 'zod';
import { type ErrorKind, invalidRequest, maxIdLength, type OperationName } from '../api/call.ts';
import type { Api } from '../api/client.ts';
import { ItemType } from '../api/schemas.ts';
import type { SearchFilter } from '../api/search-filters.ts';
import type { Spending } from '../credits/ledger.ts';
import type { CallBudget } from '../credits/meter.ts';
import type { AdRowReader } from '../dataset/ad-rows.ts';
import type { CountedAds, IsCached } from '../dataset/gather.ts';
import type { DatasetSql } from '../dataset/snapshot.ts';
import type { Pictures } from '../pictures/pictures.ts';
import type { Price } from '../present/list-text.ts';
import { isUuid, quote, word } from '../present/safe-text.ts';
import type { Dataset } from '../state/dataset.ts';
import type { ExportedFile, Exports } from '../state/exports.ts';
import type { CursorMemory } from '../state/state.ts';

/**
 * What each field of a result means: its type, a colon, and its meaning; `?` after a name marks a field that may be
 * missing. A type with a capital letter is an object of its own, in `resultObjects` or, where several tools share it, in
 * `scripts/docs/result-fields.ts`. Each tool's file exports these as `resultFields`, beside the tool and not in it: only
 * docs read them. In the schemas that the server lists, every conversation would pay for them.
 */
export type FieldMeanings = Record<string, string>;

/** The fields of a type, with their marks: what is added to the type or taken from it shows here. */
export type FieldsOf<Type> = {
  [Name in keyof Type & string as undefined extends Type[Name] ? `${Name}?` : Name]-?: string;
};

/** All four tool annotations of MCP (specification, *Tools*). */
interface Annotations {
  readOnlyHint: boolean;
  destructiveHint: boolean;
  idempotentHint: boolean;
  openWorldHint: boolean;
}

export const readOnly: Annotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: true,
};

/** The description of a tool, and what a server needs to know of the tool before a call. */
export interface ToolDescription {
  name: string;
  title: string;
  description: string;
  /**
   * When a model should use the tool for questions about many ads: a sentence of the instructions that a model reads
   * once.
   */
  guide?: string;
  /** Whether the tool only reads, and whether it calls the service. */
  annotations: Annotations;
  /** The API operations that the tool calls. Whether the tool is paid follows from them. */
  operations: readonly OperationName[];
  /** The tool may make several calls of the API: its receipt is their sum. */
  severalCalls?: true;
  /** The tool stores what a person made, which no service can send again. */
  keepsRecords?: true;
  /** The tool reports progress to clients that ask for it. */
  reportsProgress?: true;
  /** Hosts that can draw views show its results on the board. */
  showsBoard?: true;
  /** Only the board calls the tool: the result holds its data in `_meta` alone. */
  onlyForBoard?: true;
}

/** What examples take from the results of those before them. */
interface Found {
  adIds: readonly string[];
  pageId: string;
  collectionId: string;
}

/** What every tool declares. */
interface ToolDeclaration<Input extends z.ZodObject> extends ToolDescription {
  /** A call on demo data, for docs and tests. Calls come in the order of the catalogue. */
  example(found: Found): Record<string, unknown>;
  /** What the board needs of a result whose data a host may drop. */
  forBoard?(data: object, rendered: Rendered): object;
  input: Input;
  /** The schema that clients see. Loose at every level, so that a new key of the service breaks no client. */
  output: z.ZodObject;
}

/**
 * A tool: its name, what it takes, what it returns, how it runs and how its result reads. It knows nothing of MCP or of
 * credits, and throws its errors: its caller adds the receipt and explains what went wrong.
 */
export interface ItemTool<Input extends z.ZodObject = z.ZodObject, Data extends object = object>
  extends ToolDeclaration<Input> {
  /** Returns data that fits `output`. */
  run(input: z.output<Input>, context: ToolContext): Promise<Data>;
  /** Turns the data into a text that is complete on its own. */
  render(data: Data, input: z.output<Input>, context: ToolContext): string;
}

/** A tool that returns a list. Cutting the list to fit means writing its text, so `run` returns both. */
export interface ListTool<Input extends z.ZodObject = z.ZodObject> extends ToolDeclaration<Input> {
  run(input: z.output<Input>, context: ToolContext): Promise<Rendered>;
  render?: never;
}

/** Data that fits `output`, and a text that fits into a result. */
export interface Rendered {
  data: object;
  text: string;
  /** Content after the text: resources that a host may read, and pictures. */
  attached?: readonly (ResourceLink | ImageContent)[];
  /** Of a list: what its next call costs where no answer is cached. */
  price?: Price | undefined;
}

/** MCP specification, *Tools*, *Image Content*. */
export interface ImageContent {
  type: 'image';
  /** In base64. */
  data: string;
  mimeType: string;
}

export const jpegContent = (jpeg: Uint8Array): ImageContent => ({
  type: 'image',
  data: Buffer.from(jpeg).toString('base64'),
  mimeType: 'image/jpeg',
});

/** MCP specification, *Tools*, *Resource Links*. */
export interface ResourceLink {
  type: 'resource_link';
  uri: string;
  name: string;
  mimeType: string;
  /** In bytes. */
  size: number;
}

export const linkTo = ({ uri, name, mimeType, bytes }: ExportedFile): ResourceLink => ({
  type: 'resource_link',
  uri,
  name,
  mimeType,
  size: bytes,
});

/** Links to a written file and to the note beside it. */
export function locationText({ uri, path }: ExportedFile, beside?: ExportedFile): string {
  const readable = `can be read for an hour as ${uri}`;
  if (path === undefined) return `It ${readable}`;
  return `It is in ${quote(path)}${beside ? `, with ${word(beside.name)} beside it` : ''}, and ${readable}`;
}

export type Tool = ItemTool | ListTool;

export const defineTool = <Input extends z.ZodObject, Data extends object>(tool: ItemTool<Input, Data>) => tool;

export const defineListTool = <Input extends z.ZodObject>(tool: ListTool<Input>) => tool;

/** What belongs to one caller, for one call. */
export interface CallerContext {
  api: Api;
  /** The caller's dataset, with what other processes brought. */
  dataset(): Promise<Dataset>;
  /** Turns the ads of the dataset into rows. */
  adRows: AdRowReader;
  sql(): DatasetSql;
  /** The files that the caller exported. */
  exports(): Exports;
  /** The version of this server, for notes on how data were gathered. */
  version: string;
  /** What this process has spent for the caller. */
  spending(): Promise<Spending>;
  priceOf: PriceOf;
  isCached: IsCached;
  /** How many ads match, as a cached answer says. */
  cachedTotal(filters: object): Promise<CountedAds | undefined>;
  /** Opens a limit of credits for calls of the API that this tool call makes. */
  callBudget(maxCredits: number): Promise<CallBudget>;
  /** Waits until no other call of the caller has this turn; returns a function that ends it. */
  takeTurn(name: string): Promise<() => void>;
  /** Pictures of ads, fetched for the caller; loaded with the first use. */
  pictures(): Promise<Pictures>;
  viewMemo: ViewMemo;
  cursors: Cursors;
}

/** What a tool may use: the API on its caller's account, the time, and the space for its text. */
export interface ToolContext extends CallerContext {
  /** An id of the caller's key. */
  tenantId: string;
  /** Milliseconds since the epoch. */
  now: number;
  /** A clock that only goes on, and the deadline of the call. */
  clock(): number;
  deadline: number;
  /** Aborts when the caller leaves or at the deadline. */
  signal: AbortSignal;
  /** Whether all data is made up. */
  isDemo: boolean;
  /** Whether the process is asked to end. */
  isDraining(): boolean;
  /** Present if the client asked for progress. */
  onProgress?: ReportProgress;
  /** What is known of the filter keys of ads. */
  adFilters: readonly SearchFilter[];
  /** Explains an error in words, for a result that holds what was read before. */
  explain(thrown: unknown): { kind: ErrorKind; text: string };
  /** Maximum tokens of the tool's own text in a result. */
  resultTokens: number;
  /** The name of the tool that calls an operation. Models know operations by tool names only. */
  toolName(operation: string): string;
  /** Whether this server offers the tool of that name. */
  offers(tool: string): boolean;
}

/** Rendered pages of cached answers, so that an answer from the cache is not condensed again. */
export interface ViewMemo {
  /** The page of that name, made from the cached answer with that id. Written if the memo does not hold it. */
  page<Page extends Rendered>(cacheId: string, name: string, write: () => Page): Page;
}

/** Signs and remembers the cursors of one caller. */
export interface Cursors extends CursorMemory {
  /** Returns a short signature under the caller's key. */
  sign(text: string): string;
}

/** The price of a page of a list that asks for so many items; undefined if no charge was seen. */
type PriceOf = (list: OperationName, items: number) => Promise<Price | undefined>;

/** The progress of a long call. It grows with each report. */
export interface Progress {
  progress: number;
  total?: number;
  message: string;
}

export type ReportProgress = (progress: Progress) => void;

/** Arguments that several tools take. Schemas stay flat: some hosts reject the whole list for one union. */

export const noArguments = z.strictObject({});
export const detail = z.enum(['brief', 'full']).optional().describe('full: every field the service sent');
export const cursor = z.string().optional().describe('cursor of the previous result, unchanged');
export const filters = z.looseObject({}).optional().describe('Filter keys, sent to the service unchanged');
export const adFilters = z.looseObject({}).optional().describe('as in search_ads');
export const split = z.array(z.looseObject({})).min(1).max(30).optional().describe('each laid over filters');
export const fileName = z
  .string()
  .regex(/^[A-Za-z0-9][\w -]{0,79}$/, 'must be 1 to 80 letters, digits, spaces, - or _, without an ending')
  .optional()
  .describe('of the file, without its ending');
/** The document states no bounds for searches, so the service decides. */
export const searchLimit = z.int().min(1).optional().describe('Items per page');
export const itemsLimit = z.int().min(1).max(100).optional().describe('Items per page, default 50');
export const seen = z.boolean().optional().describe('true: accept the cached list copy, free; it may be incomplete');
export const fresh = z.boolean().optional().describe('true: pay again instead of using a cached answer');

const mustBeUuid = (source: string) => `must be a UUID (8-4-4-4-12 hexadecimal digits) from ${source}`;
/**
 * In lower case, so that one id makes one call. Not `z.uuid()`: that adds a long pattern to the listed schema, and
 * rejects ids that do not follow RFC 9562.
 */
const uuidFrom = (source: string) => z.string().refine(isUuid, mustBeUuid(source)).toLowerCase();

export const isShort = (id: string): boolean => id.length <= maxIdLength;
export const mustBeShort = `must be 1 to ${maxIdLength} characters, copied from an earlier result`;

export const adId = uuidFrom('a search or a collection').describe('id of an ad from a search or a collection');
export const mustBeAdId = mustBeUuid('a search or a collection');
export const collectionId = uuidFrom('list_collections').describe('id from list_collections');
export const itemType = ItemType.describe('a collection may hold both');

/** @throws AdLibraryError for filters that would turn pages by themselves, or arguments that cannot be combined */
export function checkQuestion(filters: readonly (object | undefined)[], exclusive: Record<string, unknown>): void {
  for (const key of ['limit', 'cursor'])
    if (filters.some((one) => one !== undefined && Object.hasOwn(one, key)))
      throw invalidRequest(`filters must not hold "${key}": this tool turns the pages itself.`);
  const given = Object.keys(exclusive).filter((name) => exclusive[name] !== undefined);
  if (given.length > 1) throw invalidRequest(`${given.join(' and ')} cannot be combined: pass one.`);
}
