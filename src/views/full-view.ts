import * as z from 'zod';
import type { DataOf } from './fields.ts';
import { disableMarkup, quote, sanitize, sanitizeLine } from './safe-text.ts';
import { estimateTokens, fitsWithin, truncate } from './tokens.ts';
import { type Fields, isNumber, isObject } from './view.ts';

/** Lists are brief and single objects standard by default; full shows every field. */
export type Detail = 'brief' | 'standard' | 'full';

/** A full view and its frame stay below the default result budget of 8,000. */
export const maxFullViewTokens = 7500;

/** Maximum tokens of data for each token of text: data repeats what a text states once. */
export const dataTokensPerTextToken = 2;

/**
 * Every field the service sent, with names and texts made safe, and without nulls and infinite numbers. An object
 * larger than `tokens` is cut where it is largest, between items and fields. The view says in place what is missing,
 * and once how to get it.
 */
export function buildFullView(raw: unknown, tokens: number, toGetAll?: string): Fields {
  const view = clean(raw, maxDepth);
  return isObject(view) ? fitView(view, tokens, toGetAll) : {};
}

export const buildFullItem = (raw: unknown, tokens: number): Fields =>
  buildFullView(raw, dataTokensPerTextToken * tokens, howToGetAll);

/** A client that checks the schema would reject a paid answer for one value of another type. */
export const otherTypesSchema = z.looseObject({}).optional();

export function separateMismatches<Schema extends z.ZodObject>(view: Fields, { shape }: Schema): DataOf<Schema> {
  const fits = ([name, value]: [string, unknown]) =>
    !Object.hasOwn(shape, name) || z.safeParse(shape[name] as z.ZodType, value).success;
  const entries = Object.entries(view);
  const others = entries.filter((entry) => !fits(entry));
  if (others.length === 0) return view as DataOf<Schema>;
  const { otherTypes: earlier, ...fitting } = Object.fromEntries(entries.filter(fits));
  return { ...fitting, otherTypes: { ...(earlier as object), ...Object.fromEntries(others) } } as DataOf<Schema>;
}

const howToGetAll = 'Cut to fit: raise AD_LIBRARY_RESULT_TOKENS for the rest';

function fitView(view: Fields, tokens: number, toGetAll: string | undefined): Fields {
  if (fitsWithin(JSON.stringify(view), tokens - 1)) return view;
  if (toGetAll === undefined) return shrink(view, tokens) as Fields;
  const { [missingName]: _, ...fields } = view;
  const { [missingName]: missing, ...kept } = shrink(fields, tokens - 2 * note) as Fields;
  return { ...kept, [missingName]: missing === undefined ? toGetAll : `${missing}. ${toGetAll}` };
}

/**
 * One field on each line, its value as JSON, in which a text can neither end its quotes nor start a line. A name stays
 * bare if it is written as the API writes names, because none of our lines starts this way.
 */
export const formatFullView = (view: object, tokens: number): string =>
  Object.entries(fitView(view as Fields, tokens, howToGetAll))
    .map(
      ([name, value]) =>
        `${fieldPattern.test(name) || name === missingName ? name : quote(name)}: ${disableMarkup(JSON.stringify(value) ?? 'null')}`,
    )
    .join('\n');

export const formatFullItems = (views: readonly object[], tokens: number, from = 1): string =>
  views.map((view, index) => `\n${index + from}.\n${formatFullView(view, tokens)}`).join('\n');

const fieldPattern = /^(?!credits?$|requests?$|demo|notice$|warning$)[a-z][A-Za-z\d]{0,39}$/;

const maxDepth = 8;

function clean(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return sanitize(value);
  if (typeof value === 'number') return isNumber(value) ? value : undefined;
  if (typeof value !== 'object' || value === null) return value ?? undefined;
  if (depth === 0) return '… (nested deeper)';
  if (Array.isArray(value)) return value.map((item) => clean(item, depth - 1)).filter((item) => item !== undefined);
  const kept: [string, unknown][] = [];
  for (const [name, item] of Object.entries(value)) {
    const [shown, safe] = [safeName(name), clean(item, depth - 1)];
    const isTaken = shown !== name && Object.hasOwn(value, shown);
    if (safe !== undefined && !isTaken) kept.push([shown, safe]);
  }
  return Object.fromEntries(kept);
}

/** A name that reads like the note of what is missing stands in quotes. */
function safeName(name: string): string {
  if (plainName.test(name)) return name;
  const safe = sanitizeLine(name);
  return safe === missingName ? quote(safe) : safe;
}

const plainName = /^[a-z][A-Za-z\d]*$/;

const missingName = '…';

const costOf = (value: unknown): number => estimateTokens(JSON.stringify(value)) + 1;

function shrink(value: unknown, tokens: number): unknown {
  if (costOf(value) <= tokens) return value;
  if (typeof value === 'string') return truncate(value, tokens - quoteTokens);
  if (Array.isArray(value)) return shrinkArray(value, tokens - note);
  if (isObject(value)) return shrinkObject(value, tokens - note);
  return value;
}

const quoteTokens = 4;
const note = 12;

function shrinkArray(items: unknown[], tokens: number): unknown[] {
  const kept: unknown[] = [];
  let remainingTokens = tokens;
  for (const item of items) {
    const cost = costOf(item);
    if (cost > remainingTokens) break;
    kept.push(item);
    remainingTokens -= cost;
  }
  if (kept.length === 0 && tokens > 2 * note) kept.push(shrink(items[0], tokens));
  return kept.length < items.length ? [...kept, `… (+${items.length - kept.length} more)`] : kept;
}

/** Each field gets an equal share. Small fields leave the rest of their share to larger ones. */
function shrinkObject(object: Fields, tokens: number): Fields {
  const entries = Object.entries(object);
  const costs = new Map(entries.map(([name, value]) => [name, costOf(value)]));
  const kept = new Map<string, unknown>();
  let remainingTokens = tokens;
  let waiting = entries.length;
  for (const [name, value] of entries.toSorted(([a], [b]) => (costs.get(a) ?? 0) - (costs.get(b) ?? 0))) {
    const share = remainingTokens / waiting-- - costOf(name);
    const cost = costs.get(name) ?? 0;
    if (cost > share && share < 2 * note) continue;
    const fitting = cost <= share ? value : shrink(value, share);
    kept.set(name, fitting);
    remainingTokens -= costOf(name) + costOf(fitting);
  }
  const missing = entries.length - kept.size;
  const inOrder = entries.flatMap(([name]) => (kept.has(name) ? [[name, kept.get(name)] as const] : []));
  return Object.fromEntries(missing > 0 ? [...inOrder, [missingName, `(+${missing} more fields)`] as const] : inOrder);
}

export const sanitizeValue = (value: unknown, tokens: number): unknown => buildFullView({ value }, tokens).value;
