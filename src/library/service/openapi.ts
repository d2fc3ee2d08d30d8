import * as z from 'zod';
import { type OperationName, operations } from '../../api/call.ts';
import * as schemas from '../../api/schemas.ts';
import { filtersExtension, type SearchFilter } from '../../api/search-filters.ts';
import { libraryFilters } from '../search/filter-keys.ts';
import { describeFilters, isCondition } from '../search/filters.ts';
import { type LibraryConfig, type Price, scopeNames } from './config.ts';
import { creditHeaders } from './meter.ts';

type Json = Record<string, unknown>;

/** What each operation takes in its body and gives, by the names of the document. */
const bodies: Record<OperationName, { takes?: string; gives: string }> = {
  whoami: { gives: 'Identity' },
  getAccount: { gives: 'Account' },
  getCredits: { gives: 'CreditStatus' },
  listCollections: { gives: 'CollectionListResult' },
  listCollectionItems: { gives: 'CollectionItemsResult' },
  addCollectionItem: { takes: 'AddCollectionItemRequest', gives: 'AddCollectionItemResult' },
  searchAds: { takes: 'AdSearchRequest', gives: 'AdListResult' },
  getAd: { gives: 'Ad' },
  searchPages: { takes: 'PageSearchRequest', gives: 'PageListResult' },
  getPage: { gives: 'Page' },
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
        ...searchSchemas('Ad', libraryFilters.ads, config),
        ...searchSchemas('Page', libraryFilters.pages, config),
      },
    },
  };
}

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const json = (name: string) => ({ content: { 'application/json': { schema: ref(name) } } });

function operation(name: OperationName, { scopes, prices }: LibraryConfig): Json {
  const { gated, path } = operations[name];
  const { takes, gives } = bodies[name];
  const finds = path.includes('{');
  const scope = scopes[name];
  const statuses = [
    401,
    ...(gated ? [402, 429] : []),
    ...(scope ? [403] : []),
    ...(finds ? [404] : []),
    ...(finds || takes ? [422] : []),
  ];
  const { charged, remaining } = creditHeaders[name];
  const headers = [
    'X-Service-Request-Id',
    ...(charged ? ['X-Service-Credits-Charged'] : []),
    ...(remaining ? ['X-Service-Credits-Remaining'] : []),
  ];
  return {
    operationId: name,
    description: [scope && `Scope: ${scope}.`, gated && priceText(prices[name])].filter(Boolean).join(' '),
    parameters: parameters(name),
    ...(takes && { requestBody: { required: true, ...json(takes) } }),
    responses: {
      200: {
        description: 'OK',
        headers: Object.fromEntries(headers.map((header) => [header, { schema: { type: 'string' } }])),
        ...json(gives),
      },
      ...Object.fromEntries(
        statuses.map((status) => [status, { description: statusTexts[status], ...json('ErrorBody') }]),
      ),
    },
  };
}

function priceText({ credits, perItems }: Price = { credits: 0 }): string {
  const unit = credits === 1 ? 'credit' : 'credits';
  return `Costs ${credits} ${unit}${perItems ? ` per started ${perItems} items in the answer` : ''}.`;
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
    { name: 'itemType', in: 'query', required: true, schema: { type: 'string', enum: schemas.ItemType.options } },
    { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 100, default: 50 } },
    { name: 'cursor', in: 'query', schema: { type: 'string' } },
  ];
}

/** What a search's first page may have besides the document's fields. */
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
function searchSchemas(item: string, filters: SearchFilter[], { searchLimit }: LibraryConfig): Json {
  const object = (properties: Json) => ({ type: 'object', additionalProperties: false, properties });
  const conditions = Object.fromEntries(
    filters.filter(isCondition).map((filter) => [filter.key, filterSchema(filter)]),
  );
  const others = filters.filter((filter) => !isCondition(filter));
  return {
    [`${item}Conditions`]: object(conditions),
    [`${item}SearchRequest`]: object({
      limit: { type: 'integer', minimum: 1, maximum: searchLimit.maximum, default: searchLimit.default },
      cursor: { type: 'string', description: 'From an earlier answer; goes on alone, without the filters' },
      countBy: {
        type: 'string',
        enum: filters.flatMap(({ key, counted }) => (counted ? key : [])),
        description: 'With the first page: `counts` tells how many records have each value, the 30 commonest',
      },
      ...conditions,
      ...Object.fromEntries(
        others.map((filter) => [
          filter.key,
          filter.type === 'filters'
            ? { description: filter.description, ...ref(`${item}Conditions`) }
            : filterSchema(filter),
        ]),
      ),
    }),
  };
}

function filterSchema({ type, description, values, open, example, maxLength, ...rest }: SearchFilter): Json {
  const about = {
    description,
    ...(rest.default !== undefined && { default: rest.default }),
    ...(example !== undefined && { examples: [example] }),
  };
  const text = { type: 'string', ...(values && (open ? { examples: values } : { enum: values })) };
  switch (type) {
    case 'query':
    case 'string':
      return { ...text, ...about, minLength: 1, ...(maxLength !== undefined && { maxLength }) };
    case 'strings':
      return { ...about, anyOf: [text, { type: 'array', items: text, minItems: 1, maxItems: maxLength }] };
    case 'date':
      return { ...about, type: 'string' };
    default:
      return { ...about, type, minimum: rest.minimum, maximum: rest.maximum };
  }
}
