import { AdLibraryError, type ErrorKind, errorKinds } from '../../src/api/errors.ts';
import { explainError } from '../../src/mcp/explain-error.ts';
import { adFields, adMeanings, pageFields, pageMeanings, type SentField } from '../../src/present/fields.ts';
import { tools } from '../../src/tools/catalog.ts';
import type { FieldMeanings } from '../../src/tools/tool.ts';
import { replaceMarked } from './marked.ts';
import { addedToAds, addedToPages, always, objects, paging } from './result-fields.ts';

const types: Record<SentField['is'], string> = {
  text: 'string',
  date: 'string',
  number: 'number',
  flag: 'boolean',
  words: 'string[]',
  id: 'string',
};

interface Described {
  resultFields?: FieldMeanings;
  resultObjects?: Record<string, FieldMeanings>;
}

/** What the files of the tools say of their results. */
const described = await Promise.all(
  tools.map(async ({ name }): Promise<Described> => {
    const file = new URL(`../../src/tools/${name.replaceAll('_', '-')}.ts`, import.meta.url);
    return (await import(file.href)) as Described;
  }),
);

/** Every object of a result, ads and pages among them, which hold what the API sends and what the server adds. */
export const allObjects: Record<string, FieldMeanings> = {
  Ad: { ...addedToAds, ...sentFields(adFields, adMeanings) },
  Page: { ...addedToPages, ...sentFields(pageFields, pageMeanings) },
  ...objects,
  ...Object.assign({}, ...described.map(({ resultObjects }) => resultObjects)),
};

function sentFields(fields: Record<string, SentField>, meanings: Record<string, string>): FieldMeanings {
  const described = Object.entries(fields).map(([name, { is, brief, standard }]) => {
    const shown = brief ? '' : standard ? '; not in lists' : '; with `detail: "full"` alone';
    return [`${name}?`, `${types[is]}: ${meanings[name]}${shown}`] as const;
  });
  return Object.fromEntries(described);
}

/** @throws Error naming a tool whose result nobody has described */
export function fieldsOf(name: string): FieldMeanings {
  const at = tools.findIndex((tool) => tool.name === name);
  const fields = described[at]?.resultFields;
  if (fields === undefined) throw new Error(`The file of ${name} must export resultFields: what its result holds.`);
  return { ...fields, ...('hasMore' in (tools[at]?.output.shape ?? {}) && paging) };
}

export const typeAndMeaning = (text: string): [string, string] => {
  const end = text.indexOf(': ');
  return [text.slice(0, end), text.slice(end + 2)];
};

const linked = (type: string) =>
  type
    .split(' | ')
    .map((one) => one.replace(/^[A-Z]\w+/, (name) => `[${name}](#${name.toLowerCase()})`))
    .join(' or ')
    .replaceAll('[][]', '\\[\\]\\[\\]')
    .replaceAll('[]', '\\[\\]');

function table(fields: FieldMeanings): string {
  const rows = Object.entries(fields).map(([name, text]) => {
    const [type, meaning] = typeAndMeaning(text);
    return `| \`${name.replace('?', '')}\`${name.endsWith('?') ? ' ?' : ''} | ${linked(type)} | ${meaning} |`;
  });
  return ['| field | type | meaning |', '|---|---|---|', ...rows].join('\n');
}

const resultTables = (): string =>
  [
    `### Every result\n\n${table(always)}`,
    ...tools.map(({ name }) => `### ${name}\n\n${table(fieldsOf(name))}`),
    ...Object.entries(allObjects)
      .filter(([name]) => isUsed(name))
      .map(([name, fields]) => `### ${name}\n\n${table(fields)}`),
  ].join('\n\n');

/** A list names the objects of all tools, also of those that are not there yet. */
const isUsed = (object: string): boolean =>
  [always, ...tools.map(({ name }) => fieldsOf(name)), ...Object.values(allObjects)]
    .flatMap(Object.values)
    .some((text) => new RegExp(`\\b${object}\\b`).test(typeAndMeaning(text)[0])) || ['Ad', 'Page'].includes(object);

/** Where an error comes from. */
const causes: Record<ErrorKind, string> = {
  no_api_key: 'stdio without key or address; over HTTP, a request without a key is refused with 401 before that',
  unauthorized: 'status 401',
  payment_required: 'status 402',
  forbidden: 'status 403',
  not_found: 'status 404, or no such collection',
  invalid_request: 'status 422, or arguments that the server itself refuses; nothing is sent then',
  usage_limit: 'status 429, or a window that is known to be full; `usageLimit` says which',
  credit_budget: '`AD_LIBRARY_CREDIT_BUDGET` or the `maxCredits` of the call; nothing is sent',
  unavailable:
    'status 500 and above; or the server cannot use what it keeps, as a shared state that cannot be reached: the text says so, and nothing is sent',
  unexpected_response: 'an answer that is not the API’s, mostly a web page or a proxy',
  network: 'no connection, or one that broke',
  timeout: '`AD_LIBRARY_TIMEOUT_MS` is over',
  busy: 'too many calls at once; nothing is sent',
  internal: 'a fault of this server; its log says more',
};

function errorTable(): string {
  const rows = errorKinds.map((kind) => {
    const { text, error } = explainError(new AdLibraryError({ kind }), []);
    const [happened] = text.split('\n');
    return `| \`${kind}\` | ${causes[kind]} | ${error.retryable ? 'yes' : 'no'} | ${happened} |`;
  });
  return ['| kind | when | retryable | its text begins |', '|---|---|---|---|', ...rows].join('\n');
}

export const withResults = (page: string): string =>
  replaceMarked(replaceMarked(page, 'results', resultTables()), 'errors', errorTable());
