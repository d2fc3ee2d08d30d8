import { AdLibraryError, type ErrorKind, errorKinds, type Failure } from '../../src/api/errors.ts';
import { describedTools } from '../../src/mcp/described-tools.ts';
import { explainError } from '../../src/mcp/explain-error.ts';
import { replaceMarkedSection } from './marked.ts';

/** A JSON Schema from the tool list. The documentation has a separate table for each object with a title. */
interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
}

function formatType({ type = 'any', title, items }: Schema): string {
  if (title !== undefined)
    return title
      .split(' or ')
      .map((name) => `[${name}](#${name.toLowerCase()})`)
      .join(' or ');
  const names = [type].flat().map((name) => (name === 'array' ? formatArrayType(formatType(items ?? {})) : name));
  return names.join(' or ');
}

const formatArrayType = (type: string) => `${/ or (?!.*\]$)/.test(type) ? `(${type})` : type}\\[\\]`;

const escapeTableText = (text: string) => text.replaceAll('<', '\\<').replaceAll('|', '\\|');

function formatFieldTable({ properties = {}, required = [] }: Schema, omittedNames: readonly string[] = []): string {
  const rows = Object.entries(properties)
    .filter(([name]) => !omittedNames.includes(name))
    .map(([name, schema]) => {
      const optionalMark = required.includes(name) ? '' : ' ?';
      return `| \`${name}\`${optionalMark} | ${formatType(schema)} | ${escapeTableText(schema.description ?? '')} |`;
    });
  return ['| Field | Type | Meaning |', '|---|---|---|', ...rows].join('\n');
}

/**
 * Returns all objects in a schema that have a title, because the documentation has a separate table for each of them.
 * Outer objects come before the objects that they contain.
 */
function listTitledSchemas(schema: Schema): Schema[] {
  const innerSchemas = [...Object.values(schema.properties ?? {}), ...(schema.items ? [schema.items] : [])].flatMap(
    listTitledSchemas,
  );
  return schema.title === undefined ? innerSchemas : [schema, ...innerSchemas];
}

function formatResultTables(): string {
  const tools = describedTools.filter(({ isOnlyForBoard }) => !isOnlyForBoard);
  const schemas = tools.map(({ outputSchema }) => outputSchema as Schema);
  const objects = new Map(schemas.flatMap(listTitledSchemas).map((schema) => [schema.title ?? '', schema]));
  const sharedFieldNames = ['receipt', 'notice'];
  const [{ properties = {} } = {}] = schemas;
  const sharedFields = Object.fromEntries(sharedFieldNames.map((name) => [name, properties[name] ?? {}]));
  return [
    `### Every result\n\n${formatFieldTable({ properties: sharedFields, required: ['receipt'] })}`,
    ...tools.map(
      ({ name, outputSchema }) => `### ${name}\n\n${formatFieldTable(outputSchema as Schema, sharedFieldNames)}`,
    ),
    ...[...objects]
      .filter(([title]) => !title.includes(' or '))
      .map(([title, schema]) => `### ${title}\n\n${formatFieldTable(schema)}`),
  ].join('\n\n');
}

/** The causes of each kind of error, in words for the documentation. */
const causesByErrorKind: Record<ErrorKind, string> = {
  no_api_key:
    'over stdio, the API key or the base URL is missing; over HTTP, the server instead refuses a request without a key with status 401',
  unauthorized: 'status 401',
  payment_required: 'status 402',
  forbidden: 'status 403',
  not_found: 'status 404, or the collection does not exist',
  invalid_request: 'status 422, or the server refuses the arguments and sends nothing',
  usage_limit: 'status 429, or the server knows that a usage limit is reached; `usageLimit` names the limit',
  credit_budget: 'the call could exceed `AD_LIBRARY_CREDIT_BUDGET` or its `maxCredits`, so the server does not send it',
  unavailable:
    'status 500 or above, or the server cannot use its stored data, for example because the shared store cannot be reached. The text names the cause and states what was charged',
  unexpected_response: 'the response is not from the API; usually it is a web page, or it comes from a proxy',
  network: 'the connection failed or broke',
  timeout: 'the call took longer than `AD_LIBRARY_TIMEOUT_MS`',
  busy: 'too many calls are running, so this call was not sent; or another process uses the folder of `AD_LIBRARY_FILES`, another call reads the same ads, or the storage is full. The text names the cause',
  internal: 'an error in this server; the log has details',
};

function formatErrorTable(): string {
  const rows = errorKinds.map((kind) => {
    const { text, error } = explainError(new AdLibraryError({ kind } as Failure), []);
    const [firstLine] = text.split('\n');
    return `| \`${kind}\` | ${causesByErrorKind[kind]} | ${error.retryable ? 'yes' : 'no'} | ${firstLine} |`;
  });
  return ['| Kind | Cause | Retryable | The text begins with |', '|---|---|---|---|', ...rows].join('\n');
}

/** Inserts the tables of results and errors into a Markdown page. */
export const insertResults = (page: string): string =>
  replaceMarkedSection(replaceMarkedSection(page, 'results', formatResultTables()), 'errors', formatErrorTable());
