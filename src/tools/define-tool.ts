import type * as z from 'zod';
import { type OperationName, operations } from '../api/call.ts';
import type { Price } from '../present/list-text.ts';
import type { ToolContext } from './tool-context.ts';

/** All four tool annotations of MCP (specification, *Tools*). */
export interface Annotations {
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

/** What is told of a tool, and what a server needs to know of it before a call. */
export interface ToolDescription {
  name: string;
  title: string;
  description: string;
  annotations: Annotations;
  /** The API operations that it calls. Whether the tool is paid follows from them. */
  operations: readonly OperationName[];
  /** It may make several calls of the API: its receipt is their sum. */
  severalCalls?: true;
  /** It reports progress to clients that ask for it. */
  reportsProgress?: true;
  /** Hosts that can draw views show its results on the board. */
  showsBoard?: true;
  /** Only the board calls it: what it returns is in the `_meta` of its result, and nowhere else. */
  onlyForBoard?: true;
}

/** What every tool declares. */
interface ToolDeclaration<Input extends z.ZodObject> extends ToolDescription {
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
  /** Of a list: what its next call costs where no answer is kept. */
  price?: Price | undefined;
}

/** MCP specification, *Tools*, *Image Content*. */
export interface ImageContent {
  type: 'image';
  /** In base64. */
  data: string;
  mimeType: string;
}

/** MCP specification, *Tools*, *Resource Links*. */
export interface ResourceLink {
  type: 'resource_link';
  uri: string;
  name: string;
  mimeType: string;
  /** In bytes. */
  size: number;
}

export type Tool = ItemTool | ListTool;

export const defineTool = <Input extends z.ZodObject, Data extends object>(tool: ItemTool<Input, Data>) => tool;

export const defineListTool = <Input extends z.ZodObject>(tool: ListTool<Input>) => tool;

/** Whether a call of the tool may be charged. */
export const isGated = (tool: ToolDescription): boolean => tool.operations.some((name) => operations[name].gated);

/** Tool names for a sentence: `search_ads, get_ad and get_page`. */
export function namesOf(listed: readonly ToolDescription[]): string {
  const names = listed.map(({ name }) => name);
  return [names.slice(0, -1).join(', '), names.at(-1)].filter(Boolean).join(' and ');
}
