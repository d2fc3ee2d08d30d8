import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import type { JsonSchemaValidator, jsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/types.js';

const compiledValidators = new Map<string, JsonSchemaValidator<unknown>>();

/**
 * Validates tool results against the listed output schemas, for the clients of tests. By default, each client compiles
 * the output schemas of all tools, which takes longer than most tests. With this validator, all clients of the process
 * share the compiled schemas. A schema is compiled when the first result of its tool arrives.
 */
export const outputValidator: jsonSchemaValidator = {
  getValidator: <T>(schema: Parameters<jsonSchemaValidator['getValidator']>[0]) => {
    const schemaText = JSON.stringify(schema);
    const validate: JsonSchemaValidator<unknown> = (result) => {
      const compiled = compiledValidators.get(schemaText) ?? new AjvJsonSchemaValidator().getValidator(schema);
      compiledValidators.set(schemaText, compiled);
      return compiled(result);
    };
    return validate as JsonSchemaValidator<T>;
  },
};
