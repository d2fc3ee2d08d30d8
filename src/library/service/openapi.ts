import * as z from 'zod';
import { type OperationName, operations } from '../../api/operations.ts';
import * as schemas from '../../api/schemas.ts';
import { filtersExtension, type SearchFilter } from '../../api/search-filters.ts';
import { libraryFilters } from '../search/filters.ts';
import { isCondition } from '../search/search-request.ts';
import { scopeNames, terms } from './accounts.ts';

type Json = Record<string, unknown>;

/** The answer and the body of each operation, by the names of the document. */
const bodies: Record<OperationName, [gives: string, takes?: string]> = {
  whoami: ['Identity'],
  getAccount: ['Account'],
  getCredits: ['CreditStatus'],
  listCollections: ['CollectionListResult'],
  listCollectionItems: ['CollectionItemsResult'],
  addCollectionItem: ['AddCollectionItemResult', 'AddCollectionItemRequest'],
  searchAds: ['AdListResult', 'AdSearchRequest'],
  getAd: ['Ad'],
  searchPages: ['PageListResult', 'PageSearchRequest'],
  getPage: ['Page'],
};

/** The API as OpenAPI 3.1, from the same schemas, endpoint table and filter descriptions that serve it. */
export function openApiDocument(origin: string): Json {
  const paths: Record<string, Json> = {};
  for (const { name, method, path } of Object.values(operations))
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation(name) };
  const info = { title: 'Ad and Page Library Public API', version: '1.0.0' };
  return {
    openapi: '3.1.0',
    info: { ...info, license: { name: 'MIT', identifier: 'MIT' } },
    [filtersExtension]: libraryFilters,
    servers: [{ url: origin }],
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: `Scopes: ${scopeNames.join(', ')}` } },
      schemas: {
        ...namedSchemas(),
        ...searchSchemas('Ad', libraryFilters.ads),
        ...searchSchemas('Page', libraryFilters.pages),
      },
    },
  };
}

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const json = (name: string) => ({ content: { 'application/json': { schema: ref(name) } } });

function operation(name: OperationName): Json {
  const { tells, scope, price: { credits, perItems } = { credits: 0 } } = terms[name];
  const [gives, takes] = bodies[name];
  const price = `Credits: ${credits}${perItems ? ` per started ${perItems} items in the answer` : ''}.`;
  const headers = ['Request-Id', ...tells.map((one) => `Credits-${one}`)];
  const header = { schema: { type: 'string' } };
  return {
    operationId: name,
    description: scope ? `Scope: ${scope}. ${price}` : price,
    parameters: parameters(name),
    ...(takes && { requestBody: { required: true, ...json(takes) } }),
    responses: {
      200: {
        description: 'OK',
        headers: Object.fromEntries(headers.map((rest) => [`X-Service-${rest}`, header])),
        ...json(gives),
      },
      '4XX': { description: 'What was wrong; nothing is charged', ...json('ErrorBody') },
    },
  };
}

function parameters(name: OperationName): Json[] {
  const inPath = [...operations[name].path.matchAll(/\{(\w+)\}/g)].map(([, key = '']) => ({
    ...{ name: key, in: 'path', required: true },
    schema: { type: 'string', ...(key !== 'pageId' && { format: 'uuid' }) },
  }));
  if (name !== 'listCollectionItems') return inPath;
  return [
    ...inPath,
    { name: 'itemType', in: 'query', required: true, schema: { type: 'string', enum: schemas.ItemType.options } },
    { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 100, default: 50 } },
    { name: 'cursor', in: 'query', schema: { type: 'string' } },
  ];
}

/** Fields that the first page of a search may have besides the document's. */
const ofFirstPage = { notes: { type: 'array', items: { type: 'string' } }, counts: { type: 'object' } };

/** Every schema of the document by its name; in place of SearchRequest there is one for each search. */
function namedSchemas(): Json {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(schemas)) {
    // An answer as a client takes it is no schema of the document.
    if (schema instanceof z.ZodType && !id.endsWith('Answer') && id !== 'SearchRequest') registry.add(schema, { id });
  }
  const made = z.toJSONSchema(registry, { uri: (id) => ref(id).$ref, io: 'input', target: 'draft-2020-12' }).schemas;
  for (const list of [made.AdListResult, made.PageListResult]) Object.assign(list?.properties ?? {}, ofFirstPage);
  return Object.fromEntries(Object.entries(made).map(([id, { $schema, $id, ...schema }]) => [id, schema]));
}

/** The body of a search, and what its `not` takes. */
function searchSchemas(item: string, filters: SearchFilter[]): Json {
  const object = (some: SearchFilter[], others: Json = {}) => ({
    ...{ type: 'object', additionalProperties: false },
    properties: { ...others, ...Object.fromEntries(some.map((filter) => [filter.key, filterSchema(item, filter)])) },
  });
  const countable = filters.flatMap(({ key, counted }) => (counted ? key : []));
  return {
    [`${item}Conditions`]: object(filters.filter(isCondition)),
    [`${item}SearchRequest`]: object(filters, {
      cursor: { type: 'string', description: 'From an earlier answer; goes on alone, without the filters' },
      countBy: { type: 'string', enum: countable, description: 'Counts the values of this key with the first page' },
    }),
  };
}

function filterSchema(item: string, { type, description, values, open, example, maxLength, ...rest }: SearchFilter) {
  const { default: usual, minimum, maximum } = rest;
  const about = { description, default: usual, ...(example !== undefined && { examples: [example] }) };
  const text = { type: 'string', ...(values && (open ? { examples: values } : { enum: values })) };
  if (type === 'filters') return { description, ...ref(`${item}Conditions`) };
  if (type === 'query' || type === 'string') return { ...text, ...about, minLength: 1, maxLength };
  if (type === 'strings')
    return { ...about, anyOf: [text, { type: 'array', items: text, minItems: 1, maxItems: maxLength }] };
  return { ...about, type: type === 'date' ? 'string' : type, minimum, maximum };
}
