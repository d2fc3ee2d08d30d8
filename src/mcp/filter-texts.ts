import { parseJson } from '../api/json.ts';
import type { SearchFilter, SearchFilters } from '../api/search-filters.ts';

import type { DescribedTool } from './described-tools.ts';
import { isPlainObject } from './protocol.ts';

/**
 * Converts strings in search filters to the type that the service specifies, e.g. `"true"` to `true`, because some
 * clients send every value as a string. Converts only booleans, numbers and lists, and only without loss. Other values
 * are sent unchanged, because the service decides what a filter means.
 */
export async function convertFilterTexts(
  tool: DescribedTool | undefined,
  toolArguments: unknown,
  getSearchFilters: (() => Promise<SearchFilters | undefined>) | undefined,
): Promise<unknown> {
  const properties = (tool?.inputSchema.properties ?? {}) as object;
  if (!isPlainObject(toolArguments) || !('filters' in properties)) return toolArguments;
  const [filters, split] = [parseJsonText(toolArguments.filters), parseJsonText(toolArguments.split)];
  const splitFilters = Array.isArray(split) ? split : [];
  if (![filters, ...splitFilters].some(hasTextValue)) return toolArguments;
  const { ads = [], pages = [] } = (await getSearchFilters?.()) ?? {};
  const describedFilters = tool?.operations.includes('searchPages') ? pages : ads;
  return {
    ...toolArguments,
    ...('filters' in toolArguments && { filters: convertFilters(filters, describedFilters) }),
    ...('split' in properties &&
      Array.isArray(split) && { split: splitFilters.map((part) => convertFilters(part, describedFilters)) }),
  };
}

/**
 * Parses filters that arrive as a JSON string. Returns any other string unchanged, so that the later validation rejects
 * it.
 */
function parseJsonText(filters: unknown): unknown {
  const parsedFilters = typeof filters === 'string' ? parseJson(filters) : undefined;
  return parsedFilters === undefined ? filters : parsedFilters;
}

const hasTextValue = (filters: unknown): boolean =>
  isPlainObject(filters) && Object.values(filters).some((value) => typeof value === 'string' || isPlainObject(value));

/**
 * The maximum nesting depth of filters, which can contain other filters. More deeply nested values are not converted.
 */
const maxFilterDepth = 4;

function convertFilters(filters: unknown, describedFilters: readonly SearchFilter[], depth = 0): unknown {
  if (!isPlainObject(filters) || depth > maxFilterDepth) return filters;
  const entries = Object.entries(filters).map(([key, value]) => {
    const type = describedFilters.find((filter) => filter.key === key)?.type;
    if (type === 'filters') return [key, convertFilters(value, describedFilters, depth + 1)];
    return [key, typeof value === 'string' ? convertFilterText(value, type) : value];
  });
  return Object.fromEntries(entries);
}

function convertFilterText(filterText: string, type: SearchFilter['type']): unknown {
  const parsedValue = parseJson(filterText);
  const isLossless = (
    {
      boolean: typeof parsedValue === 'boolean',
      // Convert a number only if no digit is lost. For example, `12345678901234567890` would lose digits.
      number: typeof parsedValue === 'number' && String(parsedValue) === filterText.trim(),
      integer: Number.isSafeInteger(parsedValue) && String(parsedValue) === filterText.trim(),
      strings: Array.isArray(parsedValue) && parsedValue.every((item) => typeof item === 'string'),
    } as Partial<Record<NonNullable<SearchFilter['type']>, boolean>>
  )[type ?? 'string'];
  return isLossless ? parsedValue : filterText;
}
