import * as z from 'zod';
import { createInvalidRequestError } from '../api/errors.ts';
import { toCanonicalJson } from '../api/json.ts';
import { ItemType } from '../api/schemas.ts';
import { maxIdLength } from '../api/url.ts';
import type { AdQuery } from '../dataset/gatherings.ts';
import { isUuid, quote } from '../views/safe-text.ts';
import { truncateLine } from '../views/tokens.ts';
import type { Filters } from './filter-values.ts';

/*
 * The argument schemas that several tools share. They contain no unions (`anyOf` in JSON Schema), because some hosts
 * reject the whole tool list if one schema contains a union.
 */

export const noArgumentsSchema = z.strictObject({});
export const detailSchema = z
  .enum(['brief', 'full'])
  .optional()
  .describe('full returns every field that the service sent.');
export const cursorSchema = z.string().optional().describe('The cursor of the previous result, unchanged.');
export const adFiltersSchema = z.looseObject({}).optional().describe('The same keys as in search_ads.');
export const splitSchema = z
  .array(z.looseObject({}))
  .min(1)
  .max(30)
  .optional()
  .describe('Filter objects. Each one is combined with filters.');
export const fileNameSchema = z
  .string()
  .refine(
    (name) => /^[A-Za-z0-9][\w -]{0,79}$/.test(name),
    'must be 1 to 80 letters, digits, spaces, - or _, without an ending',
  )
  .optional()
  .describe('Name of the file, without its ending.');
export const itemsLimitSchema = z.int().min(1).max(100).optional().describe('Items per page. Default 50.');
export const seenSchema = z
  .boolean()
  .optional()
  .describe('true returns the version that a list showed. It is free and may be incomplete.');
export const freshSchema = z.boolean().optional().describe('true ignores the cached answer and pays again.');

/** The arguments of the tools that search for ads or advertiser pages. */
export const searchInputSchema = z.strictObject({
  filters: z.looseObject({}).optional().describe('Filter keys, sent to the service unchanged.'),
  // The API document defines no upper bound for the page size of a search. `readFittingPage` refuses pages that this
  // server cannot read, also if `filters` contain the page size.
  limit: z.int().min(1).optional().describe('Items per page.'),
  cursor: cursorSchema,
  detail: detailSchema,
  fresh: freshSchema,
});

const formatUuidRule = (source: string) => `must be a UUID (8-4-4-4-12 hexadecimal digits) from ${source}`;
/**
 * Creates the schema of a UUID. Converts the UUID to lower case, so that an id in upper case finds the same cached
 * response. `z.uuid()` is not used, because it would add a long pattern to the tool list and reject ids that do not
 * follow RFC 9562.
 */
const createUuidSchema = (idSource: string) => z.string().refine(isUuid, formatUuidRule(idSource)).toLowerCase();

/** Returns true if an id has at most `maxIdLength` characters. */
export const isShortId = (id: string): boolean => id.length <= maxIdLength;
export const shortIdRule = `must be 1 to ${maxIdLength} characters, copied from an earlier result`;

export const adIdSchema = createUuidSchema('a search or a collection').describe('Ad id from a search or a collection.');
export const adIdRule = formatUuidRule('a search or a collection');
export const collectionIdSchema = createUuidSchema('list_collections').describe('Id from list_collections.');
export const itemTypeSchema = ItemType.describe('A collection may contain both.');

/**
 * Checks the arguments of a tool that reads a search or a collection.
 * @throws AdLibraryError `invalid_request` if the filters are invalid, or if `collectionId` is combined with them
 */
export function checkAdQueryArguments({ filters, split, collectionId }: AdQuery): void {
  checkFilterArguments(filters, split);
  checkExclusiveArguments({ collectionId, split });
  checkExclusiveArguments({ collectionId, filters });
}

/**
 * Checks the filters of a search.
 * @throws AdLibraryError `invalid_request` if filters contain `limit` or `cursor`, or if a part of `split` contradicts
 * `filters`
 */
export function checkFilterArguments(filters: Filters = {}, split: readonly Filters[] = []): void {
  for (const key of ['limit', 'cursor'])
    if ([filters, ...split].some((filterSet) => Object.hasOwn(filterSet, key)))
      throw createInvalidRequestError(`filters must not hold "${key}": this tool turns the pages itself.`);
  checkSplitParts(filters, split);
}

/**
 * Checks that a call passes at most one of some arguments.
 * @param exclusiveArguments the arguments by name, e.g. `sql` and `sheets`
 * @throws AdLibraryError `invalid_request` if several arguments are set
 */
export function checkExclusiveArguments(exclusiveArguments: Record<string, unknown>): void {
  const passedNames = Object.keys(exclusiveArguments).filter((name) => exclusiveArguments[name] !== undefined);
  if (passedNames.length > 1)
    throw createInvalidRequestError(`${passedNames.join(' and ')} cannot be combined: pass one.`);
}

/**
 * Checks that no part of `split` changes a value of `filters`. Such a part would select ads that do not match `filters`,
 * so the parts would not divide the search.
 */
function checkSplitParts(filters: Filters, split: readonly Filters[]): void {
  for (const [index, partFilters] of split.entries()) {
    const changedKey = Object.keys(partFilters).find(
      (key) => Object.hasOwn(filters, key) && toCanonicalJson(filters[key]) !== toCanonicalJson(partFilters[key]),
    );
    if (changedKey === undefined) continue;
    const key = quote(truncateLine(changedKey, maxKeyTokens));
    throw createInvalidRequestError(
      `Part ${index + 1} of split sets ${key}, and filters sets ${key} to another value. Set ${key} either in filters or in split.`,
    );
  }
}

const maxKeyTokens = 24;
