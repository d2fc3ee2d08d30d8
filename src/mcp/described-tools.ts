import * as z from 'zod';
import { canCostCredits } from '../api/operations.ts';
import { allTools } from '../board/board.ts';
import type { Tool, ToolDescription } from '../tools/tool.ts';
import { createNoticeSchema } from '../views/account.ts';
import type { DataOf } from '../views/fields.ts';

const ReceiptView = z
  .looseObject({
    charged: z.number().nullable().describe('Credits charged. null if unknown.'),
    remaining: z.number().nullable().describe('Credits left. null if unknown.'),
    cached: z.boolean().describe('true if nothing was sent to the service.'),
    requestId: z.string().nullable().describe('Request id of the service. null if there is none.'),
    calls: z.number().optional().describe('Number of API calls.'),
    unusable: z.number().optional().describe('Number of paid items that are left out, because they have no id.'),
  })
  .meta({ title: 'Receipt' });
/** The receipt in the data of a tool result. The receipt states what the call cost. */
export type ReceiptView = DataOf<typeof ReceiptView>;

/** Fields that the server adds to the data of every tool result. */
const commonResultFields = { receipt: ReceiptView.describe('What the call cost.'), notice: createNoticeSchema() };

/** A JSON Schema of an object. */
export type ObjectSchema = { type: 'object' } & Record<string, unknown>;

/**
 * The description of a tool, without the tool's code. The server needs only the description to list the tool and to
 * check whether a call is allowed.
 */
export interface DescribedTool extends ToolDescription {
  inputSchema: ObjectSchema;
  outputSchema: ObjectSchema;
}

/** Converts a tool to its description, in which the input and output schemas are JSON Schemas. */
export function describeTool({
  run: _,
  render: __,
  buildBoardData: ___,
  buildExampleArguments: ____,
  inputSchema,
  createOutputSchema,
  ...tool
}: Tool) {
  return {
    ...tool,
    description: formatDescription(tool),
    inputSchema: { ...toJsonSchema(inputSchema), additionalProperties: false },
    outputSchema: toJsonSchema(createOutputSchema().extend(commonResultFields)),
  };
}

/** Returns the description of a tool, followed by a sentence that says whether the tool costs credits. */
export const formatDescription = (tool: ToolDescription): string =>
  `${tool.description} ${canCostCredits(tool) ? 'Costs credits.' : 'Free.'}`;

/** Converts a Zod schema to a JSON Schema that uses only features that every host accepts. */
function toJsonSchema(schema: z.ZodObject): ObjectSchema {
  const { $schema: _, ...listedSchema } = z.toJSONSchema(schema, {
    target: 'draft-2020-12',
    override: ({ jsonSchema }) => {
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      // Remove lower bounds of 0 and 1, because they would cost tokens in every conversation. The server validates the
      // arguments anyway.
      if (jsonSchema.minItems === 1) delete jsonSchema.minItems;
      if (jsonSchema.minLength === 1) delete jsonSchema.minLength;
      if (jsonSchema.minimum === 0 || jsonSchema.minimum === 1) delete jsonSchema.minimum;
      if (typeof jsonSchema.additionalProperties === 'object') {
        delete jsonSchema.additionalProperties;
        if (jsonSchema.properties && Object.keys(jsonSchema.properties).length === 0) {
          // Some hosts treat an object schema without named properties as an empty object. Setting
          // `additionalProperties` tells these hosts that any property is allowed.
          delete jsonSchema.properties;
          jsonSchema.additionalProperties = true;
        }
      }
      const types = (jsonSchema.anyOf ?? []).map(({ type }) => type);
      if (types.length > 0 && types.every((type) => typeof type === 'string')) {
        // Merge the alternatives of a nullable field into one schema, e.g. `type: ['string', 'null']`. No keyword is
        // lost, because at most one alternative has keywords other than `type`.
        Object.assign(jsonSchema, ...(jsonSchema.anyOf ?? []), { type: types });
        delete jsonSchema.anyOf;
      }
    },
  });
  return listedSchema as ObjectSchema;
}

/**
 * The descriptions of all tools. The build replaces this module with the computed descriptions, so that the server can
 * list the tools without loading their code.
 */
export const describedTools: readonly DescribedTool[] = allTools.map(describeTool);
