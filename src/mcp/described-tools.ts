import * as z from 'zod';
import { isGated } from '../api/operations.ts';
import { allTools } from '../board/board.ts';
import type { Tool, ToolDescription } from '../tools/tool.ts';
import type { DataOf } from '../views/fields.ts';

const ReceiptView = z.looseObject({
  charged: z.number().nullable(),
  remaining: z.number().nullable(),
  cached: z.boolean(),
  requestId: z.string().nullable(),
});
/**
 * `calls` is stated by tools that make several calls, `unusable` where items without an id were left out. Neither is
 * listed in the schemas, nor is the notice of demo data, because each tool would repeat them.
 */
export type ReceiptView = DataOf<typeof ReceiptView> & { calls?: number; unusable?: number };

const everyResult = { receipt: ReceiptView };

export type ObjectSchema = { type: 'object' } & Record<string, unknown>;

/** A tool without its code: all that a list of tools says, and what a server needs to know before a call. */
export interface DescribedTool extends ToolDescription {
  inputSchema: ObjectSchema;
  outputSchema: ObjectSchema;
}

export function describeTool({ run: _, render: __, forBoard: ___, example: ____, input, output, ...tool }: Tool) {
  return {
    ...tool,
    description: describe(tool),
    inputSchema: { ...jsonSchema(input), additionalProperties: false },
    outputSchema: jsonSchema(output.extend(everyResult)),
  };
}

export const describe = (tool: ToolDescription): string =>
  `${tool.description} ${isGated(tool) ? 'Costs credits.' : 'Free.'}`;

/** JSON Schema in the subset that every host accepts. */
function jsonSchema(schema: z.ZodObject): ObjectSchema {
  const { $schema: _, ...listed } = z.toJSONSchema(schema, {
    target: 'draft-2020-12',
    override: ({ jsonSchema: json }) => {
      if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum;
      if (json.minimum === Number.MIN_SAFE_INTEGER) delete json.minimum;
      // No model passes a negative number, and the bound would cost tokens in every conversation. Calls are checked.
      if (json.minItems === 1) delete json.minItems;
      if (json.minLength === 1) delete json.minLength;
      if (json.minimum === 0 || json.minimum === 1) delete json.minimum;
      if (typeof json.additionalProperties === 'object') {
        delete json.additionalProperties;
        if (json.properties && Object.keys(json.properties).length === 0) {
          // Without this, some hosts treat an object without named keys as one that must be empty.
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

/** The build puts the values in place of this module: a process lists its tools before it has loaded any. */
export const describedTools: readonly DescribedTool[] = allTools.map(describeTool);
