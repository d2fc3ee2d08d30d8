import type { OperationName } from '../api/operations.ts';
import type { SearchFilter, SearchFilters } from '../api/search-filters.ts';
import { boardUri } from '../board/board-resource.ts';
import { listCountableFilters } from '../tools/filter-values.ts';
import type { ToolDescription } from '../tools/tool.ts';
import type { DescribedTool, ObjectSchema } from './described-tools.ts';

/** A tool in the response to `tools/list`. */
export interface ListedTool {
  name: string;
  title: string;
  description: string;
  inputSchema: ObjectSchema;
  outputSchema?: ObjectSchema;
  annotations: ToolDescription['annotations'] & { title: string };
  _meta?: Record<string, unknown>;
}

/** Options that determine what the list of tools contains for a client. */
export interface ListOptions {
  /** False if results contain no structured data. The tool list then needs no output schemas. */
  includesOutputSchemas: boolean;
  /**
   * False if the client cannot show the board (the interactive view of ads). The list then omits the board's tools and
   * metadata. Defaults to true.
   */
  includesBoard?: boolean;
  filters?: SearchFilters | undefined;
}

/** Returns the list of tools for a client. */
export function listTools(
  tools: Iterable<DescribedTool>,
  { includesOutputSchemas, includesBoard = true, filters }: ListOptions,
): ListedTool[] {
  const listedTools = [...tools].filter((tool) => includesBoard || !tool.isOnlyForBoard);
  const { ads = [], pages = [], ...rules } = filters ?? {};
  const countableKeys = listCountableFilters(ads).map(({ key }) => key);
  const hasFiltersOf = (tool: DescribedTool, operation: OperationName) =>
    'filters' in (tool.inputSchema.properties as object) && tool.operations.includes(operation);
  const firstAdTool = listedTools.find((tool) => hasFiltersOf(tool, 'searchAds'))?.name;
  const pageHints = buildArgumentHints(
    pages,
    ads.length > 0 && firstAdTool ? `The other rules are as in ${firstAdTool}.` : formatRules(pages, rules),
  );
  /**
   * Returns the hints on the arguments of a tool. To save tokens, only the first tool that filters ads lists the filter
   * keys, and the other tools refer to that tool.
   */
  const getArgumentHints = (tool: DescribedTool) => {
    if (hasFiltersOf(tool, 'searchPages')) return pageHints;
    if (tool.name === firstAdTool) return buildArgumentHints(ads, formatRules(ads, rules));
    return hasFiltersOf(tool, 'searchAds') ? { filters: `The same keys as in ${firstAdTool}.` } : undefined;
  };
  return listedTools.map((tool) => ({
    name: tool.name,
    title: tool.title,
    description: tool.description,
    inputSchema: addHints(tool.inputSchema, getArgumentHints(tool), countableKeys),
    // Omit the output schema of tools that only the board (the interactive view of ads) calls, because these tools
    // return their data in `_meta`.
    ...(includesOutputSchemas && !tool.isOnlyForBoard && { outputSchema: tool.outputSchema }),
    annotations: { title: tool.title, ...tool.annotations },
    ...(includesBoard && buildBoardMeta(tool)),
  }));
}

/**
 * Returns the metadata that tells a host to show a tool's results on the board (the interactive view of ads). The
 * metadata has the format of MCP Apps and also an older format.
 */
function buildBoardMeta({ showsBoard, isOnlyForBoard }: ToolDescription): { _meta?: Record<string, unknown> } {
  if (isOnlyForBoard) return { _meta: { ui: { visibility: ['app'] } } };
  return showsBoard ? { _meta: { ui: { resourceUri: boardUri }, 'ui/resourceUri': boardUri } } : {};
}

function addHints(schema: ObjectSchema, hints: ArgumentHints | undefined, countableKeys: string[]): ObjectSchema {
  if (hints === undefined) return schema;
  const { filters, limit, by, ...otherProperties } = schema.properties as Record<string, object>;
  const describedFilters = { filters: { ...filters, description: hints.filters } };
  const describedLimit = limit && { limit: { ...limit, ...buildLimitHints(hints.limit) } };
  const describedBy = by && { by: { ...by, ...(countableKeys.length > 0 && { enum: countableKeys }) } };
  return { ...schema, properties: { ...describedFilters, ...describedLimit, ...describedBy, ...otherProperties } };
}

const buildLimitHints = (limit: ArgumentHints['limit']) => ({
  ...(limit?.default !== undefined && { description: `Items per page. Default ${limit.default}.` }),
  ...(limit?.maximum !== undefined && { maximum: limit.maximum }),
});

interface ArgumentHints {
  filters: string;
  limit?: SearchFilter | undefined;
}

const unknownFiltersText =
  "Filter keys as in the service's documentation. They are sent unchanged. The service may refuse an unknown key, or ignore it and charge for the search.";

function buildArgumentHints(describedFilters: readonly SearchFilter[], rules: string): ArgumentHints {
  if (describedFilters.length === 0) return { filters: unknownFiltersText };
  const filters = describedFilters.filter(({ key }) => key !== 'limit');
  return {
    filters: `Keys: ${formatFilterKeys(filters)}. ${rules}`.trimEnd(),
    limit: describedFilters.find(({ key }) => key === 'limit'),
  };
}

function formatRules(
  filters: readonly SearchFilter[],
  { inclusive, ignoresCase }: Omit<SearchFilters, 'ads' | 'pages'>,
) {
  const hasType = (type: SearchFilter['type']) => filters.some((filter) => filter.type === type);
  const rules = [
    hasType('strings') && 'lists match any of their values',
    inclusive && 'From and To include the bound',
    ignoresCase && 'case is ignored',
    hasType('query') && 'of words all must occur, "phrase" is exact, -word excludes, even alone',
  ].filter((rule) => rule !== false && rule !== undefined);
  const [first = '', ...otherRules] = rules;
  return first === '' ? '' : `${[first.charAt(0).toUpperCase() + first.slice(1), ...otherRules].join('; ')}.`;
}

/** Lists the filter keys and their types. Keys of the same type form a group, e.g. `advertiser, bylines (words)`. */
function formatFilterKeys(filters: readonly SearchFilter[]): string {
  const rangeNamesByKey = findRangeNames(filters);
  const namesByValueDescription = new Map<string, string[]>();
  for (const filter of filters) {
    const rangeName = rangeNamesByKey.get(filter.key);
    const valueDescription =
      rangeName === undefined
        ? describeValues(filter, filters, rangeNamesByKey)
        : `From/To ${describeValues(filter, filters, rangeNamesByKey)}`;
    const names = namesByValueDescription.get(valueDescription) ?? [];
    const name = rangeName ?? filter.key;
    if (!names.includes(name)) namesByValueDescription.set(valueDescription, [...names, name]);
  }
  return [...namesByValueDescription]
    .map(([valueDescription, names]) => formatKeyGroup(valueDescription, names))
    .join('; ');
}

function formatKeyGroup(valueDescription: string, [firstName = '', ...otherNames]: string[]): string {
  const [, rangePrefix = '', type = ''] = /^(From\/To )?(.*)$/s.exec(valueDescription) ?? [];
  const typeText = type === '' ? '' : ` (${type})`;
  if (rangePrefix === '') return `${[firstName, ...otherNames].join(', ')}${typeText}`;
  return `${firstName}From/To${otherNames.length > 0 ? `, likewise ${otherNames.join(', ')}` : ''}${typeText}`;
}

/**
 * Maps each filter key that belongs to a range to the name of the range. For example, `startedAtFrom` and `startedAtTo`
 * both map to `startedAt`.
 */
function findRangeNames(filters: readonly SearchFilter[]): Map<string, string> {
  const keys = new Set(filters.map(({ key }) => key));
  const rangeNames = filters.flatMap(({ key }) => {
    const [, rangeName] = /^(.+)(?:From|To)$/.exec(key) ?? [];
    return rangeName !== undefined && keys.has(`${rangeName}From`) && keys.has(`${rangeName}To`)
      ? [[key, rangeName] as const]
      : [];
  });
  return new Map(rangeNames);
}

const typeNames: Record<NonNullable<SearchFilter['type']>, string> = {
  query: 'words',
  string: '',
  strings: 'list',
  integer: 'number',
  number: 'number',
  boolean: 'true/false',
  date: 'date',
  filters: 'object of these keys',
};

function describeValues(
  filter: SearchFilter,
  filters: readonly SearchFilter[],
  rangeNamesByKey: Map<string, string>,
): string {
  const { type, note, fields, example, default: defaultValue } = filter;
  const values = formatAllowedValues(filter, filters, rangeNamesByKey);
  const valueText = values ?? (example === undefined || fields ? undefined : `e.g. ${JSON.stringify(example)}`);
  const typeText = [type && typeNames[type], fields && `in ${fields.join(', ')}`].filter(Boolean).join(' ');
  const valueDescription = [typeText, valueText, formatRange(filter)].filter(Boolean).join(': ');
  return [valueDescription, defaultValue !== undefined && `default ${defaultValue}`, note].filter(Boolean).join('; ');
}

function formatRange({ minimum, maximum }: SearchFilter): string | undefined {
  if (minimum === undefined) return maximum === undefined ? undefined : `at most ${maximum}`;
  return maximum === undefined ? `at least ${minimum}` : `${minimum} to ${maximum}`;
}

/**
 * Formats the allowed values of a filter key. If these values include all other filter keys that take a list, the
 * phrase `any list key` replaces these keys. Likewise, `any name before From/To` replaces the names of all ranges.
 */
function formatAllowedValues(
  { key, values, open }: SearchFilter,
  filters: readonly SearchFilter[],
  rangeNamesByKey: Map<string, string>,
) {
  if (values === undefined) return undefined;
  const remainingValues = new Set(values);
  const listKeys = filters
    .filter((filter) => filter.type === 'strings' && filter.key !== key)
    .map((filter) => filter.key);
  const phrases: string[] = [];
  for (const [names, phrase] of [
    [listKeys, 'any list key'],
    [[...new Set(rangeNamesByKey.values())], 'any name before From/To'],
  ] as const) {
    if (names.length < minNamesForPhrase || !names.every((name) => remainingValues.has(name))) continue;
    phrases.push(phrase);
    for (const name of names) remainingValues.delete(name);
  }
  return [...phrases, ...remainingValues, ...(open ? ['or others'] : [])].join(', ');
}

/**
 * The minimum number of names that a phrase such as `any list key` replaces. Fewer names are shorter than the phrase.
 */
const minNamesForPhrase = 4;
