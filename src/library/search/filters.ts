import { isNear, nearestFirst } from '../../api/nearest.ts';
import type { SearchFilter, SearchFilters } from '../../api/search-filters.ts';
import { isJsonObject } from '../import/public-archive.ts';
import type { LibraryConfig } from '../service/config.ts';
import { invalid, quoted } from '../service/request.ts';
import { type Measure, type RecordType, recordTypes, type Tag, type TextFilter } from './ads-and-pages.ts';

/**
 * The filter keys of this library, derived from the record types. Validation, the text of a 422, the OpenAPI document,
 * `library filters` and what a model reads all come from these two lists.
 */

const maxLength = { text: 300, list: 50 };

function bounds({ key, about, date }: Measure): SearchFilter[] {
  const type = date ? 'date' : 'number';
  return [
    { key: `${key}From`, type, description: `At or above: ${about}` },
    { key: `${key}To`, type, description: `At or below: ${about}${date ? '; a date alone means its whole day' : ''}` },
  ];
}

function words({ key, about, columns: _, ...rest }: TextFilter): SearchFilter {
  const description = `Words that must all occur in ${about}; "…" for an exact phrase, -word for what must not occur, alone too`;
  return { key, type: 'query', description, maxLength: maxLength.text, ...rest };
}

function anyOf({ key, about, boolean, all, opaque, of: _, timed: __, countable: ___, ...rest }: Tag): SearchFilter {
  const counted = !opaque && !all && { counted: true };
  if (boolean) return { key, type: 'boolean', description: `Only records that say ${about}`, ...rest, ...counted };
  const description = all ? about : `Any of: ${about}`;
  return { key, type: 'strings', description, maxLength: maxLength.list, ...rest, ...counted };
}

const inverted = (keys: SearchFilter[]): SearchFilter => ({
  key: 'not',
  type: 'filters',
  description: `None of these filters may match; each key of missing counts by itself. Records without a value are found, too. Takes all other keys but sort and order: ${keys[0]?.key} …`,
  note: 'without sort and order; leaves out what any of them finds',
});

function filtersOf({ textFilters, tags, measures }: RecordType, others: SearchFilter[] = []): SearchFilter[] {
  const conditions = [...textFilters.map(words), ...others, ...tags.map(anyOf), ...measures.flatMap(bounds)];
  const sortable = measures.map(({ key }) => key);
  const [first] = sortable;
  return [
    ...conditions,
    inverted(conditions),
    {
      key: 'sort',
      type: 'string',
      description: 'What to sort by, records without it last',
      values: sortable,
      ...(first && { default: first }),
    },
    { key: 'order', type: 'string', description: 'Direction of the sort', values: ['desc', 'asc'], default: 'desc' },
  ];
}

export const libraryFilters = {
  ads: filtersOf(recordTypes.ads, [
    {
      key: 'active',
      type: 'boolean',
      description:
        'true: endDate lies ahead, or there is none and the ad was seen at most two days ago; false: endDate is past. Whether any other ad runs is unknown: only missing active finds it',
      note: 'true: seen in the last 2 days or endDate ahead; false: endDate past; unknown: missing active',
      single: true,
      counted: true,
    },
  ]),
  pages: filtersOf(recordTypes.pages),
} satisfies SearchFilters;

/** Whether `not` takes it. */
export const isCondition = ({ key, type }: SearchFilter): boolean =>
  type !== 'filters' && key !== 'sort' && key !== 'order';

/** The same with the page size, as `library filters` and the OpenAPI document show them. */
export function describeFilters({ searchLimit }: Pick<LibraryConfig, 'searchLimit'>): SearchFilters {
  const { maximum, default: usual } = searchLimit;
  const limit: SearchFilter = { key: 'limit', type: 'integer', minimum: 1, maximum, default: usual };
  const { ads, pages } = libraryFilters;
  return { inclusive: true, ignoresCase: true, ads: [limit, ...ads], pages: [limit, ...pages] };
}

/** What another version of this library serves, in words of this one: its own are never shown to a model. */
export function withNotes(served: SearchFilters): SearchFilters {
  const noted = (kind: 'ads' | 'pages') =>
    served[kind].map((filter) => {
      const own = libraryFilters[kind].find(({ key, type }) => key === filter.key && type === filter.type);
      const { note, example } = own ?? {};
      return { ...filter, ...(note !== undefined && { note }), ...(example !== undefined && { example }) };
    });
  return { ...served, ads: noted('ads'), pages: noted('pages') };
}

export type FilterValue = string | number | boolean | string[] | FilterValues;
export type FilterValues = { [key: string]: FilterValue };

/**
 * Checks the filter keys of a SearchRequest against their description.
 * @throws ApiError 422 that names the key, what it takes and what it got, or lists the known keys
 */
export function readFilters(
  filters: SearchFilter[],
  given: Record<string, unknown>,
  others = ['limit', 'cursor'],
): FilterValues {
  const known = new Map(filters.map((filter) => [filter.key, filter]));
  const values: FilterValues = {};
  for (const [key, value] of Object.entries(given)) {
    const filter = known.get(key);
    if (!filter) throw unknownKey(key, [...others, ...known.keys()]);
    values[key] = filter.type === 'filters' ? readInverted(filter, filters, value) : readValue(filter, value);
  }
  return values;
}

function unknownKey(key: string, known: string[]) {
  const [nearest = ''] = nearestFirst(key, known);
  const hint = isNear(key, nearest) ? ` Did you mean "${nearest}"?` : '';
  return invalid(`Unknown filter key "${key.slice(0, 100)}".${hint} Known keys: ${known.join(', ')}.`, {
    knownKeys: known,
  });
}

/** The filters of `not`, which takes no second `not`. */
function readInverted(filter: SearchFilter, filters: SearchFilter[], value: unknown): FilterValues {
  const allowed = filters.filter(isCondition);
  if (!isJsonObject(value)) throw wrong(filter, 'an object of filters', quoted(value));
  const other = Object.keys(value).find((key) => !allowed.some((one) => one.key === key));
  if (other !== undefined && filters.some(({ key }) => key === other)) {
    throw wrong(filter, 'an object of filters other than not, sort and order', `"${other}"`);
  }
  return readFilters(allowed, value, []);
}

function readValue(filter: SearchFilter, value: unknown): FilterValue {
  switch (filter.type) {
    case 'strings':
      return readList(filter, value);
    case 'boolean':
      if (typeof value === 'boolean') return value;
      throw wrong(filter, 'true or false', quoted(value));
    case 'integer':
    case 'number':
      return readNumber(filter, value);
    case 'date':
      return readDate(filter, value);
    default:
      return readText(filter, value);
  }
}

function readText(filter: SearchFilter, value: unknown): string {
  if (typeof value !== 'string' || value.trim() === '') throw wrong(filter, 'a text that is not empty', quoted(value));
  if (filter.maxLength !== undefined && value.length > filter.maxLength) {
    throw wrong(filter, `a text of at most ${filter.maxLength} characters`, `${value.length}`);
  }
  return allowed(filter, value);
}

/** A single text counts as a list of one. */
function readList(filter: SearchFilter, value: unknown): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.length === 0 || !list.every((entry) => typeof entry === 'string' && entry.trim() !== '')) {
    throw wrong(filter, 'a list of texts', quoted(value));
  }
  if (filter.maxLength !== undefined && list.length > filter.maxLength) {
    throw wrong(filter, `a list of at most ${filter.maxLength} texts`, `${list.length}`);
  }
  return (list as string[]).map((entry) => allowed(filter, entry));
}

function allowed(filter: SearchFilter, value: string): string {
  if (!filter.values || filter.open) return value;
  const match = filter.values.find((candidate) => candidate.toLowerCase() === value.toLowerCase());
  if (match === undefined) throw wrong(filter, `one of ${filter.values.join(', ')}`, quoted(value));
  return match;
}

function readNumber(filter: SearchFilter, value: unknown): number {
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = filter;
  const kind = filter.type === 'integer' ? 'a whole number' : 'a number';
  if (typeof value !== 'number' || (filter.type === 'integer' && !Number.isInteger(value)))
    throw wrong(filter, kind, quoted(value));
  if (value < minimum) throw wrong(filter, `${kind} of at least ${minimum}`, quoted(value));
  if (value > maximum) throw wrong(filter, `${kind} of at most ${maximum}`, quoted(value));
  return value;
}

const isoDate = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2}))?$/i;

function readDate(filter: SearchFilter, value: unknown): string {
  if (typeof value === 'string' && isoDate.test(value) && !Number.isNaN(Date.parse(value))) return value;
  throw wrong(filter, 'an ISO 8601 date (2026-01-31) or date-time with its zone (2026-01-31T12:00:00Z)', quoted(value));
}

function wrong(filter: SearchFilter, expected: string, got: string) {
  return invalid(`"${filter.key}" takes ${expected}; got ${got}.`, { key: filter.key, expected });
}
