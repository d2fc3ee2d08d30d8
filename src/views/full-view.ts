import * as z from 'zod';
import { createLazyGetter } from '../lazy-getter.ts';
import type { DataOf } from './fields.ts';
import { disableMarkup, quote, sanitize, sanitizeLine } from './safe-text.ts';
import { estimateTokens, fitsWithin, truncate } from './tokens.ts';
import { isFiniteNumber, isObject, type UntypedFields } from './view.ts';

/**
 * How much of an ad or page a result shows. By default, lists have the detail `brief` and single items have the detail
 * `standard`. Results with the detail `full` show every field.
 */
export type DetailLevel = 'brief' | 'standard' | 'full';

/**
 * The maximum size of an item with full detail, in tokens. This limit leaves space for the text around the item within
 * the default limit of 8,000 tokens per result.
 */
export const maxFullViewTokens = 7500;

/**
 * The maximum size of the structured data of a result, as a multiple of the maximum size of its text in tokens. The
 * data need more tokens than the text, because they repeat the field names for every item.
 */
export const dataTokensPerTextToken = 2;

/**
 * Returns a copy of an object from the service that contains all of its fields and is safe to show. Sanitizes names and
 * texts, and omits null values and infinite numbers. If the object exceeds `maxTokens`, shortens its largest lists and
 * fields, and adds a note wherever something is missing.
 * @param fullDataHint a sentence that tells the reader how to get the missing data; the result contains this sentence
 * once
 */
export function buildFullView(apiObject: unknown, maxTokens: number, fullDataHint?: string): UntypedFields {
  const view = cleanValue(apiObject, maxDepth);
  return isObject(view) ? shortenView(view, maxTokens, fullDataHint) : {};
}

/**
 * Converts an item with full detail to the form in which the structured data of a result contain it. The data may have
 * more tokens than the text of the result.
 */
export const buildFullItem = (apiObject: unknown, maxTokens: number): UntypedFields =>
  buildFullView(apiObject, dataTokensPerTextToken * maxTokens, raiseLimitHint);

/**
 * Schema of `otherTypes`, an object with the fields whose type differs from the API document. If such a field
 * kept its place in the result, a client that validates results would reject the whole paid result.
 */
export const getOtherTypesSchema = createLazyGetter(() =>
  z.looseObject({}).optional().describe('Fields whose values have another type than this schema states.'),
);

/** Moves all fields that do not match the schema to the `otherTypes` object, so that the result remains valid. */
export function moveMismatchesToOtherTypes<Schema extends z.ZodObject>(
  view: UntypedFields,
  { shape }: Schema,
): DataOf<Schema> {
  const matchesSchema = ([name, value]: [string, unknown]) =>
    !Object.hasOwn(shape, name) || z.safeParse(shape[name] as z.ZodType, value).success;
  const entries = Object.entries(view);
  const mismatches = entries.filter((entry) => !matchesSchema(entry));
  if (mismatches.length === 0) return view as DataOf<Schema>;
  const { otherTypes: earlierOtherTypes, ...matchingFields } = Object.fromEntries(entries.filter(matchesSchema));
  return {
    ...matchingFields,
    otherTypes: { ...(earlierOtherTypes as object), ...Object.fromEntries(mismatches) },
  } as DataOf<Schema>;
}

const raiseLimitHint = 'Cut to fit: raise AD_LIBRARY_RESULT_TOKENS for the rest';

/**
 * Shortens an object to at most `maxTokens` tokens. If something is missing afterwards, adds `fullDataHint`, which
 * tells the reader how to get the missing data.
 */
function shortenView(view: UntypedFields, maxTokens: number, fullDataHint: string | undefined): UntypedFields {
  if (fitsWithin(JSON.stringify(view), maxTokens - 1)) return view;
  if (fullDataHint === undefined) return shortenValue(view, maxTokens) as UntypedFields;
  const { [omissionFieldName]: _, ...fields } = view;
  const { [omissionFieldName]: omissionNote, ...cutFields } = shortenValue(
    fields,
    maxTokens - 2 * omissionNoteTokens,
  ) as UntypedFields;
  return {
    ...cutFields,
    [omissionFieldName]: omissionNote === undefined ? fullDataHint : `${omissionNote}. ${fullDataHint}`,
  };
}

/**
 * Formats an item with full detail as text, with one field on each line. Values are JSON, so that a text can neither
 * close its quotation marks nor start a new line. Field names that look like names in the API need no quotation marks,
 * because no other line of the server starts with such a name.
 */
export const formatFullView = (view: object, maxTokens: number): string =>
  Object.entries(shortenView(view as UntypedFields, maxTokens, raiseLimitHint))
    .map(
      ([name, value]) =>
        `${fieldPattern.test(name) || name === omissionFieldName ? name : quote(name)}: ${disableMarkup(JSON.stringify(value) ?? 'null')}`,
    )
    .join('\n');

/** Formats several items with full detail as text. The number of each item precedes its fields. */
export const formatFullItems = (views: readonly object[], maxTokens: number, firstNumber = 1): string =>
  views.map((view, index) => `\n${index + firstNumber}.\n${formatFullView(view, maxTokens)}`).join('\n');

const fieldPattern = /^(?!credits?$|requests?$|demo|notice$|warning$)[a-z][A-Za-z\d]{0,39}$/;

const maxDepth = 8;

function cleanValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return sanitize(value);
  if (typeof value === 'number') return isFiniteNumber(value) ? value : undefined;
  if (typeof value !== 'object' || value === null) return value ?? undefined;
  if (depth === 0) return '… (nested deeper)';
  if (Array.isArray(value))
    return value.map((item) => cleanValue(item, depth - 1)).filter((item) => item !== undefined);
  const cleanEntries: [string, unknown][] = [];
  for (const [name, item] of Object.entries(value)) {
    const [shownName, shownValue] = [cleanName(name), cleanValue(item, depth - 1)];
    const isNameTaken = shownName !== name && Object.hasOwn(value, shownName);
    if (shownValue !== undefined && !isNameTaken) cleanEntries.push([shownName, shownValue]);
  }
  return Object.fromEntries(cleanEntries);
}

/**
 * Sanitizes a field name. Quotes a name that equals `omissionFieldName`, because readers could otherwise mistake the
 * field for the note about missing fields.
 */
function cleanName(name: string): string {
  if (plainNamePattern.test(name)) return name;
  const cleanText = sanitizeLine(name);
  return cleanText === omissionFieldName ? quote(cleanText) : cleanText;
}

const plainNamePattern = /^[a-z][A-Za-z\d]*$/;

/** The name of the field that states the number of missing fields, e.g. `…: (+3 more fields)`. */
const omissionFieldName = '…';

const estimateJsonTokens = (value: unknown): number => estimateTokens(JSON.stringify(value)) + 1;

/** Shortens a text, list or object to a number of tokens. Returns other values unchanged. */
function shortenValue(value: unknown, maxTokens: number): unknown {
  if (estimateJsonTokens(value) <= maxTokens) return value;
  if (typeof value === 'string') return truncate(value, maxTokens - quoteTokens);
  if (Array.isArray(value)) return shortenArray(value, maxTokens - omissionNoteTokens);
  if (isObject(value)) return shortenObject(value, maxTokens - omissionNoteTokens);
  return value;
}

const quoteTokens = 4;
/** The number of tokens of a note such as `… (+12 more)`, which states the number of missing items or fields. */
const omissionNoteTokens = 12;

function shortenArray(items: unknown[], maxTokens: number): unknown[] {
  const fittingItems: unknown[] = [];
  let remainingTokens = maxTokens;
  for (const item of items) {
    const cost = estimateJsonTokens(item);
    if (cost > remainingTokens) break;
    fittingItems.push(item);
    remainingTokens -= cost;
  }
  if (fittingItems.length === 0 && maxTokens > 2 * omissionNoteTokens)
    fittingItems.push(shortenValue(items[0], maxTokens));
  return fittingItems.length < items.length
    ? [...fittingItems, `… (+${items.length - fittingItems.length} more)`]
    : fittingItems;
}

/**
 * Shortens an object to a number of tokens. Every field may use an equal share of the tokens. If a field does not need
 * its whole share, larger fields may use the remaining tokens.
 */
function shortenObject(object: UntypedFields, maxTokens: number): UntypedFields {
  const entries = Object.entries(object);
  const tokensByField = new Map(entries.map(([name, value]) => [name, estimateJsonTokens(value)]));
  const fittingFields = new Map<string, unknown>();
  let remainingTokens = maxTokens;
  let remainingFields = entries.length;
  for (const [name, value] of entries.toSorted(
    ([a], [b]) => (tokensByField.get(a) ?? 0) - (tokensByField.get(b) ?? 0),
  )) {
    const share = remainingTokens / remainingFields-- - estimateJsonTokens(name);
    const cost = tokensByField.get(name) ?? 0;
    if (cost > share && share < 2 * omissionNoteTokens) continue;
    const fittingValue = cost <= share ? value : shortenValue(value, share);
    fittingFields.set(name, fittingValue);
    remainingTokens -= estimateJsonTokens(name) + estimateJsonTokens(fittingValue);
  }
  const missingCount = entries.length - fittingFields.size;
  const originalOrder = entries.flatMap(([name]) =>
    fittingFields.has(name) ? [[name, fittingFields.get(name)] as const] : [],
  );
  return Object.fromEntries(
    missingCount > 0
      ? [...originalOrder, [omissionFieldName, `(+${missingCount} more fields)`] as const]
      : originalOrder,
  );
}

/** Sanitizes any value from the service and shortens it to a number of tokens. */
export const sanitizeValue = (value: unknown, maxTokens: number): unknown => buildFullView({ value }, maxTokens).value;
