import type * as z from 'zod';
import type { ToolContext } from './tool-context.ts';

/** MCP's tool annotations, all four said (specification, *Tools*). */
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

/**
 * A tool: what it is called, what it takes, what it gives, how it runs, how it reads. It knows nothing of MCP or of
 * credits, and throws what goes wrong: who calls it adds the receipt and explains errors.
 */
export interface Tool<Input extends z.ZodObject = z.ZodObject, Data extends object = object> {
  name: string;
  title: string;
  description: string;
  annotations: Annotations;
  input: Input;
  /** What is listed of `run`'s data: loose at every level, so that a new key of the service breaks no client. */
  output: z.ZodObject;
  /** Returns data that fits `output`. */
  run(input: z.output<Input>, context: ToolContext): Promise<Data>;
  /** Turns that data into a text that is complete on its own. */
  render(data: Data, input: z.output<Input>, context: ToolContext): string;
}

export const defineTool = <Input extends z.ZodObject, Data extends object>(tool: Tool<Input, Data>) => tool;
