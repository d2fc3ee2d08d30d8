import * as z from 'zod';
import { isGated } from '../tools/catalog.ts';
import type { Tool } from '../tools/define-tool.ts';
import { ReceiptView } from './receipt.ts';

/** A tool as `tools/list` gives it (MCP specification, *Tools*), in the part that both SDK lines share. */
export interface ListedTool {
  name: string;
  title: string;
  description: string;
  inputSchema: ObjectSchema;
  outputSchema?: ObjectSchema;
  annotations: Tool['annotations'] & { title: string };
}
type ObjectSchema = { type: 'object' } & Record<string, unknown>;

export interface ListOptions {
  /** Output schemas are left out where no structured content is sent. */
  withOutput: boolean;
  /** Describes the `filters` argument of a tool by name, where the filter keys are known. */
  filterHints?: Readonly<Record<string, string>> | undefined;
}

export function listTools(tools: Iterable<Tool>, { withOutput, filterHints = {} }: ListOptions): ListedTool[] {
  return [...tools].map((tool) => ({
    name: tool.name,
    title: tool.title,
    description: describe(tool),
    inputSchema: inputSchema(tool.input, filterHints[tool.name]),
    ...(withOutput && { outputSchema: jsonSchema(tool.output.extend({ receipt: ReceiptView })) }),
    annotations: { title: tool.title, ...tool.annotations },
  }));
}

/** What it does, and whether a call of it is paid. */
export const describe = (tool: Tool): string =>
  `${tool.description} ${isGated(tool) ? 'Costs credits; the result says how many.' : 'Not gated by credits.'}`;

function inputSchema(input: z.ZodObject, filterHint: string | undefined): ObjectSchema {
  const filters = input.shape.filters;
  const described =
    filters && filterHint ? input.extend({ filters: (filters as z.ZodType).describe(filterHint) }) : input;
  return { ...jsonSchema(described), additionalProperties: false };
}

/**
 * JSON Schema in the words every host takes: no `$schema`, no union for a nullable value, no bound that only says
 * what a JavaScript number can hold, no empty `additionalProperties`.
 */
function jsonSchema(schema: z.ZodObject): ObjectSchema {
  const { $schema: _, ...listed } = z.toJSONSchema(schema, {
    target: 'draft-2020-12',
    override: ({ jsonSchema: json }) => {
      if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum;
      if (json.minimum === Number.MIN_SAFE_INTEGER) delete json.minimum;
      if (typeof json.additionalProperties === 'object') {
        delete json.additionalProperties;
        if (json.properties && Object.keys(json.properties).length === 0) {
          // Without the word, some hosts read an object of no named keys as one that must be empty.
          delete json.properties;
          json.additionalProperties = true;
        }
      }
      const [value, nothing] = json.anyOf ?? [];
      if (json.anyOf?.length === 2 && nothing?.type === 'null' && typeof value?.type === 'string') {
        delete json.anyOf;
        Object.assign(json, value, { type: [value.type, 'null'] });
      }
    },
  });
  return listed as ObjectSchema;
}
