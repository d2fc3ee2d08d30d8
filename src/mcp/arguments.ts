import * as z from 'zod';
import { AdLibraryError } from '../api/errors.ts';
import { parseJson } from '../api/json.ts';
import { quoteId } from '../views/tokens.ts';
import { isObject } from '../views/view.ts';

/**
 * Validates the arguments of a tool call. Some hosts send every value as a JSON string, so such strings are parsed. An
 * empty string or null counts as a missing optional argument.
 * @throws AdLibraryError `invalid_request` with one line per problem
 */
export function validateArguments<Input extends z.ZodObject>(
  inputSchema: Input,
  rawArguments: unknown,
): z.output<Input> {
  const normalizedArguments = isObject(rawArguments)
    ? normalizeArguments(inputSchema, rawArguments)
    : (rawArguments ?? {});
  const unsendableProblems = Object.entries(normalizedArguments).flatMap(([name, value]) =>
    describeUnsendableValue(name, value),
  );
  if (unsendableProblems.length > 0) throw createArgumentsError(unsendableProblems.slice(0, 1));
  const parsed = inputSchema.safeParse(normalizedArguments);
  if (parsed.success) return parsed.data;
  throw createArgumentsError(parsed.error.issues.map((issue) => describeIssue(issue, Object.keys(inputSchema.shape))));
}

const createArgumentsError = (problems: string[]) =>
  new AdLibraryError({ kind: 'invalid_request', problem: problems.join('\n'), wasSent: false });

/**
 * The maximum nesting depth of arguments. Search filters need fewer levels. A few thousand levels would overflow the
 * stack of a recursive function.
 */
const maxNestingDepth = 32;

/**
 * Describes a value in an argument that cannot be sent to the service unchanged, e.g. a long id that was passed as a
 * number and lost its last digits. Returns an empty list if there is no such value. Loops over the nesting levels,
 * because recursion could overflow the stack.
 */
function describeUnsendableValue(argumentName: string, argumentValue: unknown): string[] {
  let nestedValues = [argumentValue];
  for (let depth = 0; nestedValues.length > 0; depth++) {
    if (nestedValues.some(isInexactNumber)) {
      const advice = `at most ${Number.MAX_SAFE_INTEGER} is allowed. Pass a longer id as a text in quotes`;
      return [`${quoteId(argumentName)}: holds a number too large to be sent unchanged, ${advice}.`];
    }
    nestedValues = nestedValues.filter((innerValue) => typeof innerValue === 'object' && innerValue !== null);
    if (depth >= maxNestingDepth && nestedValues.length > 0) {
      const levels = `at most ${maxNestingDepth} levels of objects and lists are allowed`;
      return [`${quoteId(argumentName)}: nested too deeply, ${levels}.`];
    }
    if (nestedValues.some((innerValue) => Object.hasOwn(innerValue as object, '__proto__'))) {
      return [`${quoteId(argumentName)}: the key __proto__ cannot be sent. Leave it out.`];
    }
    nestedValues = nestedValues.flatMap((innerValue) => Object.values(innerValue as object));
  }
  return [];
}

/** Returns true for a number so large that JavaScript may have changed its digits when it parsed the JSON text. */
const isInexactNumber = (value: unknown): boolean =>
  typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER;

function normalizeArguments(inputSchema: z.ZodObject, rawArguments: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(rawArguments).flatMap(([name, value]): [string, unknown][] => {
    const fieldSchema = Object.hasOwn(inputSchema.shape, name) ? inputSchema.shape[name] : undefined;
    const parsedValue =
      typeof value === 'string' && fieldSchema !== undefined ? parseTextArgument(fieldSchema, value) : value;
    return fieldSchema instanceof z.ZodOptional && (parsedValue === '' || parsedValue === null)
      ? []
      : [[name, parsedValue]];
  });
  return Object.fromEntries(entries);
}

/** Parses an argument that arrives as a string although its schema expects another type, e.g. `"50"` for 50. */
function parseTextArgument(fieldSchema: unknown, argumentText: string): unknown {
  const valueSchema = fieldSchema instanceof z.ZodOptional ? fieldSchema.unwrap() : fieldSchema;
  if (valueSchema instanceof z.ZodString || valueSchema instanceof z.ZodEnum) return argumentText;
  const parsedValue = parseJson(argumentText);
  return parsedValue === undefined ? argumentText : parsedValue;
}

function describeIssue(issue: z.core.$ZodIssue, argumentNames: string[]): string {
  const name = issue.path.join('.') || 'arguments';
  if (issue.message.endsWith('received undefined')) return `${name} is required.`;
  if (issue.code !== 'unrecognized_keys') return `${name}: ${issue.message}.`;
  // Do not use Zod's message, because it repeats every unknown key. The keys come from the caller and can be numerous,
  // long or malicious.
  const unknownNames = issue.keys.slice(0, 5).map((key) => quoteId([...issue.path, key].join('.')));
  const argumentsText =
    argumentNames.length === 0 ? 'This tool takes no arguments' : `The tool takes: ${argumentNames.join(', ')}`;
  return `Unknown argument: ${unknownNames.join(', ')}. ${argumentsText}.`;
}
