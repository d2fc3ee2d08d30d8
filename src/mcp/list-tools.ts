import * as z from 'zod';
import { isGated } from '../tools/catalog.ts';
import type { Tool } from '../tools/define-tool.ts';
import { listedBoard } from './board-meta.ts';
import type { ArgumentHints } from './filter-descriptions.ts';
import { ReceiptView } from './receipts.ts';

/** A tool in `tools/list` (MCP specification, *Tools*), in the part that both SDKs share. */
export interface ListedTool {
  name: string;
  title: string;
  description: string;
  inputSchema: ObjectSchema;
  outputSchema?: ObjectSchema;
  annotations: Tool['annotations'] & { title: string };
  _meta?: Record<string, unknown>;
}
type ObjectSchema = { type: 'object' } & Record<string, unknown>;

export interface ListOptions {
  /** False where results have no structured content: then no output schemas are listed. */
  withOutput: boolean;
  /** By tool name, where the filter keys are known. */
  filterHints?: Readonly<Record<string, ArgumentHints>> | undefined;
}

export function listTools(tools: Iterable<Tool>, { withOutput, filterHints = {} }: ListOptions): ListedTool[] {
  return [...tools].map((tool) => ({
    name: tool.name,
    title: tool.title,
    description: describe(tool),
    inputSchema: inputSchema(tool.input, filterHints[tool.name]),
    ...(withOutput && { outputSchema: jsonSchema(tool.output.extend({ receipt: ReceiptView })) }),
    annotations: { title: tool.title, ...tool.annotations },
    ...listedBoard(tool),
  }));
}

/** What a tool does, and whether a call of it is paid. */
export const describe = (tool: Tool): string =>
  `${tool.description} ${isGated(tool) ? 'Costs credits; the result says how many.' : 'Not gated by credits.'}`;

function inputSchema(input: z.ZodObject, hints: ArgumentHints = unknownFilters): ObjectSchema {
  const listed: ObjectSchema = { ...jsonSchema(input), additionalProperties: false };
  const { filters, limit, ...others } = listed.properties as Record<string, object>;
  // Tools without pages of their own point to search_ads.
  if (filters === undefined || limit === undefined) return listed;
  const described = { ...filters, description: hints.filters };
  return { ...listed, properties: { filters: described, limit: { ...limit, ...limitHints(hints.limit) }, ...others } };
}

const unknownFilters: ArgumentHints = {
  filters:
    "Keys as in the service's documentation, sent unchanged. An unknown key may be refused, or ignored and charged.",
  limit: undefined,
};

const limitHints = (limit: ArgumentHints['limit']) => ({
  ...(limit?.default !== undefined && { description: `Items per page, default ${limit.default}` }),
  ...(limit?.maximum !== undefined && { maximum: limit.maximum }),
});

/**
 * JSON Schema in the subset that every host accepts: no `$schema`, no union for a nullable value, no bound that is only
 * the limit of a JavaScript number, no empty `additionalProperties`.
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
          // Without this, some hosts take an object that names no keys for one that must be empty.
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
