import * as z from 'zod';
import type { DataOf } from './fields.ts';
import { disableMarkup, quote, sanitize, sanitizeLine } from './safe-text.ts';
import { estimateTokens, fitsWithin, truncate } from './tokens.ts';
import { type Fields, isNumber, isObject } from './view.ts';

/**
 * How much of an ad or page a result shows. Lists are `brief` and single items are `standard` by default; `full` shows
 * every field.
 */
export type Detail = 'brief' | 'standard' | 'full';

/**
 * Maximum tokens of a full view. Together with the surrounding text, the view stays below the default result budget of
 * 8,000 tokens.
 */
export const maxFullViewTokens = 7500;

/**
 * Ratio of the token budget of data to that of text. Data repeats field names for every item, so the same content takes
 * more tokens.
 */
export const dataTokensPerTextToken = 2;

/**
 * Builds a view with every field that the service sent. Names and texts are sanitized. Null values and infinite numbers
 * are left out. If the object exceeds the token budget, its largest lists and fields are cut. The view then states what
 * is missing in each place, and once how to get the rest.
 * @param toGetAll sentence that says how to get the rest
 */
export function buildFullView(raw: unknown, tokens: number, toGetAll?: string): Fields {
  const view = cleanValue(raw, maxDepth);
  return isObject(view) ? cutView(view, tokens, toGetAll) : {};
}

/** Builds the full view of an item as data, whose token budget is larger than that of the text. */
export const buildFullItem = (raw: unknown, tokens: number): Fields =>
  buildFullView(raw, dataTokensPerTextToken * tokens, howToGetAllText);

/**
 * Schema of `otherTypes`, which holds fields whose type differs from the API document. Without this separation, a
 * client that validates results would reject a whole paid result because of one field.
 */
export const otherTypesSchema = z
  .looseObject({})
  .optional()
  .describe('Fields whose values have another type than this schema states.');

/** Moves the fields that do not match the schema to `otherTypes`. */
export function separateMismatches<Schema extends z.ZodObject>(view: Fields, { shape }: Schema): DataOf<Schema> {
  const matchesSchema = ([name, value]: [string, unknown]) =>
    !Object.hasOwn(shape, name) || z.safeParse(shape[name] as z.ZodType, value).success;
  const entries = Object.entries(view);
  const mismatches = entries.filter((entry) => !matchesSchema(entry));
  if (mismatches.length === 0) return view as DataOf<Schema>;
  const { otherTypes: earlier, ...fitting } = Object.fromEntries(entries.filter(matchesSchema));
  return { ...fitting, otherTypes: { ...(earlier as object), ...Object.fromEntries(mismatches) } } as DataOf<Schema>;
}

const howToGetAllText = 'Cut to fit: raise AD_LIBRARY_RESULT_TOKENS for the rest';

/** Cuts a view to a token budget. */
function cutView(view: Fields, tokens: number, toGetAll: string | undefined): Fields {
  if (fitsWithin(JSON.stringify(view), tokens - 1)) return view;
  if (toGetAll === undefined) return cutValue(view, tokens) as Fields;
  const { [missingName]: _, ...fields } = view;
  const { [missingName]: missing, ...kept } = cutValue(fields, tokens - 2 * noteTokens) as Fields;
  return { ...kept, [missingName]: missing === undefined ? toGetAll : `${missing}. ${toGetAll}` };
}

/**
 * Formats a full view with one field per line. Values are formatted as JSON, so a text cannot close its quotes or start
 * a line. A field name needs no quotes if it looks like a name of the API, because no other line of this server starts
 * with such a name.
 */
export const formatFullView = (view: object, tokens: number): string =>
  Object.entries(cutView(view as Fields, tokens, howToGetAllText))
    .map(
      ([name, value]) =>
        `${fieldPattern.test(name) || name === missingName ? name : quote(name)}: ${disableMarkup(JSON.stringify(value) ?? 'null')}`,
    )
    .join('\n');

/** Formats several full views, each with its number above it. */
export const formatFullItems = (views: readonly object[], tokens: number, from = 1): string =>
  views.map((view, index) => `\n${index + from}.\n${formatFullView(view, tokens)}`).join('\n');

const fieldPattern = /^(?!credits?$|requests?$|demo|notice$|warning$)[a-z][A-Za-z\d]{0,39}$/;

const maxDepth = 8;

function cleanValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return sanitize(value);
  if (typeof value === 'number') return isNumber(value) ? value : undefined;
  if (typeof value !== 'object' || value === null) return value ?? undefined;
  if (depth === 0) return '… (nested deeper)';
  if (Array.isArray(value))
    return value.map((item) => cleanValue(item, depth - 1)).filter((item) => item !== undefined);
  const cleanEntries: [string, unknown][] = [];
  for (const [name, item] of Object.entries(value)) {
    const [shown, safe] = [cleanName(name), cleanValue(item, depth - 1)];
    const isTaken = shown !== name && Object.hasOwn(value, shown);
    if (safe !== undefined && !isTaken) cleanEntries.push([shown, safe]);
  }
  return Object.fromEntries(cleanEntries);
}

/**
 * Sanitizes a field name. A name that equals `missingName` is quoted, so that it cannot be confused with the note about
 * missing fields.
 */
function cleanName(name: string): string {
  if (plainName.test(name)) return name;
  const safe = sanitizeLine(name);
  return safe === missingName ? quote(safe) : safe;
}

const plainName = /^[a-z][A-Za-z\d]*$/;

/** Name of the field that states what is missing. */
const missingName = '…';

const estimateCost = (value: unknown): number => estimateTokens(JSON.stringify(value)) + 1;

/** Cuts a text, list or object to a token budget. Other values are returned unchanged. */
function cutValue(value: unknown, tokens: number): unknown {
  if (estimateCost(value) <= tokens) return value;
  if (typeof value === 'string') return truncate(value, tokens - quoteTokens);
  if (Array.isArray(value)) return cutArray(value, tokens - noteTokens);
  if (isObject(value)) return cutObject(value, tokens - noteTokens);
  return value;
}

const quoteTokens = 4;
/** Tokens of a note that states how many items or fields are missing. */
const noteTokens = 12;

function cutArray(items: unknown[], tokens: number): unknown[] {
  const fittingItems: unknown[] = [];
  let remainingTokens = tokens;
  for (const item of items) {
    const cost = estimateCost(item);
    if (cost > remainingTokens) break;
    fittingItems.push(item);
    remainingTokens -= cost;
  }
  if (fittingItems.length === 0 && tokens > 2 * noteTokens) fittingItems.push(cutValue(items[0], tokens));
  return fittingItems.length < items.length
    ? [...fittingItems, `… (+${items.length - fittingItems.length} more)`]
    : fittingItems;
}

/**
 * Cuts an object to a token budget. The fields share the budget equally, and small fields pass unused tokens on to
 * larger fields.
 */
function cutObject(object: Fields, tokens: number): Fields {
  const entries = Object.entries(object);
  const costs = new Map(entries.map(([name, value]) => [name, estimateCost(value)]));
  const fittingFields = new Map<string, unknown>();
  let remainingTokens = tokens;
  let remainingFields = entries.length;
  for (const [name, value] of entries.toSorted(([a], [b]) => (costs.get(a) ?? 0) - (costs.get(b) ?? 0))) {
    const share = remainingTokens / remainingFields-- - estimateCost(name);
    const cost = costs.get(name) ?? 0;
    if (cost > share && share < 2 * noteTokens) continue;
    const fitting = cost <= share ? value : cutValue(value, share);
    fittingFields.set(name, fitting);
    remainingTokens -= estimateCost(name) + estimateCost(fitting);
  }
  const missing = entries.length - fittingFields.size;
  const originalOrder = entries.flatMap(([name]) =>
    fittingFields.has(name) ? [[name, fittingFields.get(name)] as const] : [],
  );
  return Object.fromEntries(
    missing > 0 ? [...originalOrder, [missingName, `(+${missing} more fields)`] as const] : originalOrder,
  );
}

/** Sanitizes any value of the service and cuts it to a token budget. */
export const sanitizeValue = (value: unknown, tokens: number): unknown => buildFullView({ value }, tokens).value;
