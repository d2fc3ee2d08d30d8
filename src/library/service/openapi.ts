import * as z from 'zod';
import { type OperationName, operations } from '../../api/call.ts';
import * as schemas from '../../api/schemas.ts';
import { ItemType } from '../../api/schemas.ts';
import { filtersExtension, type SearchFilter } from '../../api/search-filters.ts';
import { describeFilters, isCondition, libraryFilters } from '../search/filters.ts';
import { type LibraryConfig, type Price, scopeNames } from './config.ts';
import { creditHeaders } from './meter.ts';

type Json = Record<string, unknown>;

/** The schema of each operation's result, by its name in the document. */
const results: Record<OperationName, string> = {
  whoami: 'Identity',
  getAccount: 'Account',
  getCredits: 'CreditStatus',
  listCollections: 'CollectionListResult',
  listCollectionItems: 'CollectionItemsResult',
  addCollectionItem: 'AddCollectionItemResult',
  searchAds: 'AdListResult',
  getAd: 'Ad',
  searchPages: 'PageListResult',
  getPage: 'Page',
};

const summaries: Record<OperationName, string> = {
  whoami: 'Who the key belongs to',
  getAccount: 'The account',
  getCredits: 'Credits and usage windows',
  listCollections: 'All collections',
  listCollectionItems: 'Ads or pages of a collection',
  addCollectionItem: 'Save an ad or a page; added is false when it was already there',
  searchAds: 'Search ads',
  getAd: 'One ad',
  searchPages: 'Search advertiser pages',
  getPage: 'One advertiser page',
};

const statusTexts: Record<number, string> = {
  401: 'Invalid API key',
  402: 'Subscription or credits required',
  403: 'Missing required scope',
  404: 'Not found',
  422: 'Invalid body, query or id',
  429: 'Usage limit exceeded',
};

/** The API as OpenAPI 3.1, from the same schemas, endpoint table and filter descriptions that serve it. */
export function openApiDocument(config: LibraryConfig, origin: string): Json {
  const paths: Record<string, Json> = {};
  for (const { name, method, path } of Object.values(operations))
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation(name, config) };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Ad and Page Library Public API',
      version: '1.0.0',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    [filtersExtension]: describeFilters(config),
    servers: [{ url: origin }],
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: `Scopes: ${scopeNames.join(', ')}` } },
      schemas: {
        ...namedSchemas(),
        AdConditions: conditions(libraryFilters.ads),
        PageConditions: conditions(libraryFilters.pages),
        AdSearchRequest: searchRequest(libraryFilters.ads, 'AdConditions', config),
        PageSearchRequest: searchRequest(libraryFilters.pages, 'PageConditions', config),
      },
    },
  };
}

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const json = (name: string) => ({ content: { 'application/json': { schema: ref(name) } } });

function operation(name: OperationName, { scopes, prices }: LibraryConfig): Json {
  const { gated, path } = operations[name];
  const body = requestBodies[name];
  const finds = path.includes('{');
  const statuses = [
    401,
    403,
    ...(gated ? [402, 429] : []),
    ...(finds ? [404] : []),
    ...(finds || body ? [422] : []),
  ] as const;
  const scope = scopes[name];
  return {
    operationId: name,
    summary: summaries[name],
    description: [scope && `Scope: ${scope}.`, gated && priceText(prices[name])].filter(Boolean).join(' '),
    parameters: parameters(name),
    ...(body && { requestBody: { required: true, ...json(body) } }),
    responses: {
      200: { description: 'OK', headers: responseHeaders(creditHeaders[name]), ...json(results[name]) },
      ...Object.fromEntries(
        statuses
          .filter((status) => status !== 403 || scope)
          .map((status) => [status, { description: statusTexts[status], ...json('ErrorBody') }]),
      ),
    },
  };
}

const requestBodies: Partial<Record<OperationName, string>> = {
  addCollectionItem: 'AddCollectionItemRequest',
  searchAds: 'AdSearchRequest',
  searchPages: 'PageSearchRequest',
};

function priceText(price: Price = { credits: 0 }): string {
  return `Costs ${price.credits} credit${price.credits === 1 ? '' : 's'}${price.perItems ? ` per started ${price.perItems} items in the answer` : ''}.`;
}

function responseHeaders({ charged, remaining }: { charged: boolean; remaining: boolean }): Json {
  const text = { schema: { type: 'string' } };
  return {
    'X-Service-Request-Id': text,
    ...(charged && { 'X-Service-Credits-Charged': text }),
    ...(remaining && { 'X-Service-Credits-Remaining': text }),
  };
}

function parameters(name: OperationName): Json[] {
  const inPath = [...operations[name].path.matchAll(/\{(\w+)\}/g)].map(([, key = '']) => ({
    name: key,
    in: 'path',
    required: true,
    schema: { type: 'string', ...(key !== 'pageId' && { format: 'uuid' }) },
  }));
  if (name !== 'listCollectionItems') return inPath;
  return [
    ...inPath,
    { name: 'itemType', in: 'query', required: true, schema: { type: 'string', enum: ItemType.options } },
    { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 100, default: 50 } },
    { name: 'cursor', in: 'query', schema: { type: 'string' } },
  ];
}

/**
 * Every schema of the document by its name; schemas refer to each other. In place of SearchRequest there is one for each
 * search, and lists say what else this library sends with them.
 */
function namedSchemas(): Json {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(schemas)) {
    if (schema instanceof z.ZodType) registry.add(schema, { id });
  }
  const made = z.toJSONSchema(registry, { uri: (id) => ref(id).$ref, io: 'input', target: 'draft-2020-12' });
  const { SearchRequest: _, ...all } = made.schemas;
  for (const list of [all.AdListResult, all.PageListResult]) Object.assign(list?.properties ?? {}, { notes, counts });
  return Object.fromEntries(Object.entries(all).map(([id, { $schema, $id, ...schema }]) => [id, schema]));
}

const notes = {
  type: 'array',
  items: { type: 'string' },
  description:
    'With the first page of a search: values that no record has, and records that a filter leaves out unseen',
};

const counts = {
  type: 'object',
  description: 'Of the key countBy: the values there are, and the records without one',
  properties: {
    by: { type: 'string' },
    values: { type: 'array', items: { type: 'object', properties: { value: {}, total: { type: 'number' } } } },
    none: { type: 'number' },
  },
};

function searchRequest(filters: SearchFilter[], conditionsName: string, { searchLimit }: LibraryConfig): Json {
  return {
    type: 'object',
    additionalProperties: false,
    properties: {
      limit: { type: 'integer', minimum: 1, maximum: searchLimit.maximum, default: searchLimit.default },
      cursor: { type: 'string', description: 'From an earlier answer; goes on alone, without the filters' },
      countBy: {
        type: 'string',
        enum: filters.flatMap(({ key, counted }) => (counted ? key : [])),
        description: 'With the first page: `counts` tells how many records have each value, the 30 commonest',
      },
      ...Object.fromEntries(
        filters.map((filter) => [
          filter.key,
          filter.type === 'filters'
            ? { description: filter.description, ...ref(conditionsName) }
            : filterSchema(filter),
        ]),
      ),
    },
  };
}

/** What `not` takes. */
const conditions = (filters: SearchFilter[]): Json => ({
  type: 'object',
  additionalProperties: false,
  properties: Object.fromEntries(filters.filter(isCondition).map((filter) => [filter.key, filterSchema(filter)])),
});

function filterSchema(filter: SearchFilter): Json {
  const { type, description, values, open, minimum, maximum, maxLength, example } = filter;
  const about = {
    description,
    ...(filter.default !== undefined && { default: filter.default }),
    ...(example !== undefined && { examples: [example] }),
  };
  const text = { type: 'string', ...(values && (open ? { examples: values } : { enum: values })) };
  switch (type) {
    case 'query':
    case 'string':
      return { ...text, ...about, minLength: 1, ...(maxLength !== undefined && { maxLength }) };
    case 'strings':
      return {
        ...about,
        anyOf: [
          text,
          { type: 'array', items: text, minItems: 1, ...(maxLength !== undefined && { maxItems: maxLength }) },
        ],
      };
    case 'date':
      return { ...about, type: 'string' };
    default:
      return { ...about, type, ...(minimum !== undefined && { minimum }), ...(maximum !== undefined && { maximum }) };
  }
}
