import * as z from 'zod';
import { ItemType } from '../api/item-type.ts';

/** Arguments that several tools take. Listed schemas stay flat: some hosts refuse a whole list for one union. */

export const noArguments = z.strictObject({});
export const detail = z.enum(['brief', 'full']).optional().describe('full: every field the service sent');
export const cursor = z.string().optional().describe('cursor of the previous result, unchanged');
export const filters = z
  .looseObject({})
  .optional()
  .describe('Filter keys of the service, sent as they are. If it refuses one, its error says what it takes.');
/** Bounds for searches are not shown in the document, so the service is the judge. */
export const searchLimit = z.int().min(1).optional().describe('Items per page');
export const itemsLimit = z.int().min(1).max(100).optional().describe('Items per page, default 50');
export const seen = z.boolean().optional().describe('true: accept the cached list copy, free; it may hold less');
export const fresh = z.boolean().optional().describe('true: pay again instead of using a kept answer');

const uuidForm = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
export const isUuid = (text: string): boolean => uuidForm.test(text);
const mustBeUuid = (source: string) => `must be a UUID (8-4-4-4-12 hexadecimal digits), as ${source} gave it`;
/**
 * In lower case, so that one id is one call. Not `z.uuid()`: that lists a long pattern, and refuses ids that are not of
 * RFC 9562.
 */
const uuidFrom = (source: string) => z.string().refine(isUuid, mustBeUuid(source)).toLowerCase();

/** As long as the ids that stand in a path may be. */
const maxIdLength = 300;
export const isShort = (id: string): boolean => id.length <= maxIdLength;
export const mustBeShort = `must be 1 to ${maxIdLength} characters, as an earlier result gave it`;

export const adId = uuidFrom('a search or a collection').describe('id of an ad from a search or a collection');
export const mustBeAdId = mustBeUuid('a search or a collection');
export const collectionId = uuidFrom('list_collections').describe('id from list_collections');
export const itemType = ItemType.describe('a collection holds both');
