import * as z from 'zod';
import type { DataOf } from './fields.ts';
import { disableMarkup, quote, sanitize, sanitizeLine } from './safe-text.ts';
import { estimateTokens, fitsWithin, truncate } from './tokens.ts';
import { type Fields, isNumber, isObject } from './view.ts';

/**
 * How much of an object a result shows. The default is brief for lists and standard for single objects; full shows
 * every field.
 */
export type Detail = 'brief' | 'standard' | 'full';

/** The most tokens of a full view. With its frame, the view stays below the default result budget of 8,000 tokens. */
export const maxFullViewTokens = 7500;

/** The most tokens of data for each token of text. Data repeats what a text states only once. */
export const dataTokensPerTextToken = 2;

/**
 * Builds a view with every field that the service sent. Names and texts are made safe; nulls and infinite numbers are
 * left out. An object larger than `tokens` is cut where it is largest, between items and fields. The view says at each
 * place what is missing, and once how to get the rest.
 * @param toGetAll how to get the rest, in words
 */
export function buildFullView(raw: unknown, tokens: number, toGetAll?: string): Fields {
  const view = cleanValue(raw, maxDepth);
  return isObject(view) ? cutView(view, tokens, toGetAll) : {};
}

/** Builds the full view of an item. Its data may have more tokens than its text. */
export const buildFullItem = (raw: unknown, tokens: number): Fields =>
  buildFullView(raw, dataTokensPerTextToken * tokens, howToGetAllText);

/**
 * The schema of values that have another type than documented. They are separated, because a client that validates
 * results would reject a whole paid answer for one such value.
 */
export const otherTypesSchema = z
  .looseObject({})
  .optional()
  .describe('Fields whose values have another type than this schema states.');

/** Moves the fields of a view that do not match a schema to `otherTypes`. */
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

/** Cuts a view to a number of tokens. */
function cutView(view: Fields, tokens: number, toGetAll: string | undefined): Fields {
  if (fitsWithin(JSON.stringify(view), tokens - 1)) return view;
  if (toGetAll === undefined) return cutValue(view, tokens) as Fields;
  const { [missingName]: _, ...fields } = view;
  const { [missingName]: missing, ...kept } = cutValue(fields, tokens - 2 * noteTokens) as Fields;
  return { ...kept, [missingName]: missing === undefined ? toGetAll : `${missing}. ${toGetAll}` };
}

/**
 * Formats a full view with one field on each line. Values are JSON, in which a text can neither end its quotes nor
 * start a line. A name stays without quotes if it is written like a name of the API, because no line of this server
 * starts so.
 */
export const formatFullView = (view: object, tokens: number): string =>
  Object.entries(cutView(view as Fields, tokens, howToGetAllText))
    .map(
      ([name, value]) =>
        `${fieldPattern.test(name) || name === missingName ? name : quote(name)}: ${disableMarkup(JSON.stringify(value) ?? 'null')}`,
    )
    .join('\n');

/** Formats several full views, each below its number. */
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

/** Returns a name without invisible characters. A name that looks like the note about missing fields is quoted. */
function cleanName(name: string): string {
  if (plainName.test(name)) return name;
  const safe = sanitizeLine(name);
  return safe === missingName ? quote(safe) : safe;
}

const plainName = /^[a-z][A-Za-z\d]*$/;

/** The name of the field that says what is missing. */
const missingName = '…';

const estimateCost = (value: unknown): number => estimateTokens(JSON.stringify(value)) + 1;

/** Cuts a value to a number of tokens. */
function cutValue(value: unknown, tokens: number): unknown {
  if (estimateCost(value) <= tokens) return value;
  if (typeof value === 'string') return truncate(value, tokens - quoteTokens);
  if (Array.isArray(value)) return cutArray(value, tokens - noteTokens);
  if (isObject(value)) return cutObject(value, tokens - noteTokens);
  return value;
}

const quoteTokens = 4;
/** The tokens of a note about missing items. */
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
 * Cuts an object. Each field gets an equal share of the tokens, and small fields leave what they do not need to larger
 * fields.
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

/** Makes any value of the service safe to show, within a number of tokens. */
export const sanitizeValue = (value: unknown, tokens: number): unknown => buildFullView({ value }, tokens).value;
