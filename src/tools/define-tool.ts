import type * as z from 'zod';
import type { OperationName } from '../api/operations.ts';
import type { ToolContext } from './tool-context.ts';

/** MCP's tool annotations, all four of them (specification, *Tools*). */
export interface Annotations {
  readOnlyHint: boolean;
  destructiveHint: boolean;
  idempotentHint: boolean;
  openWorldHint: boolean;
}

/** Reads from the service and changes nothing there. */
export const readOnly: Annotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: true,
};

/** What every tool says of itself. */
interface ToolDescription<Input extends z.ZodObject> {
  name: string;
  title: string;
  description: string;
  annotations: Annotations;
  /** What it calls of the API. Whether it is paid for follows from them. */
  operations: readonly OperationName[];
  input: Input;
  /** What is listed of its data: loose at every level, so that a new key of the service breaks no client. */
  output: z.ZodObject;
}

/**
 * A tool: what it is called, what it takes, what it gives, how it runs, how it reads. It knows nothing of MCP or of
 * credits, and throws what goes wrong: who calls it adds the receipt and explains errors.
 */
export interface ItemTool<Input extends z.ZodObject = z.ZodObject, Data extends object = object>
  extends ToolDescription<Input> {
  /** Returns data that fits `output`. */
  run(input: z.output<Input>, context: ToolContext): Promise<Data>;
  /** Turns that data into a text that is complete on its own. */
  render(data: Data, input: z.output<Input>, context: ToolContext): string;
}

/** A tool that lists: its text is written while the list is cut to fit, and so returned with the data. */
export interface ListTool<Input extends z.ZodObject = z.ZodObject> extends ToolDescription<Input> {
  run(input: z.output<Input>, context: ToolContext): Promise<Rendered>;
  render?: never;
}

/** Data that fits `output`, and a text that fits a result. */
export interface Rendered {
  data: object;
  text: string;
}

export type Tool = ItemTool | ListTool;

export const defineTool = <Input extends z.ZodObject, Data extends object>(tool: ItemTool<Input, Data>) => tool;

export const defineListTool = <Input extends z.ZodObject>(tool: ListTool<Input>) => tool;
