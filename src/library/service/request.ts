import { isUtf8 } from 'node:buffer';
import { createHmac, hash, timingSafeEqual } from 'node:crypto';
import * as z from 'zod';
import { isDeeperThan } from '../../api/json.ts';
import { AddCollectionItemRequest, ItemType } from '../../api/schemas.ts';
import { maxIdLength } from '../../api/url.ts';
import { isUuid } from '../../views/safe-text.ts';
import { isObject } from '../../views/view.ts';

/**
 * An error response of the API. The response body contains all fields except `status`, as the API document specifies.
 */
export class ApiError extends Error {
  readonly status: 401 | 402 | 403 | 404 | 405 | 422 | 429 | 503;
  readonly code: string;
  readonly details: unknown;

  constructor(status: ApiError['status'], code: string, message: string, details?: unknown) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** Creates an error with status 422. The message must state the problem and the allowed values. */
export const createInvalidRequestError = (message: string, details?: unknown) =>
  new ApiError(422, 'invalid_request', message, details);

/** Formats a value as JSON for an error message, and truncates it to 100 characters. */
export const quoteValue = (value: unknown): string => String(JSON.stringify(value)).slice(0, 100);

/** Creates an error with status 404 for a missing ad, advertiser page or collection. */
export const createNotFoundError = (resourceName: string, id: string) =>
  new ApiError(404, 'not_found', `No ${resourceName} with the id ${id}.`);

/**
 * The namespace for UUIDs that are computed from names. It must never change, because all these UUIDs would also
 * change.
 */
const uuidNamespace = Buffer.from('9f0c8a51c1f24a6db6f25d6b1f6f1a77', 'hex');

/** Computes a UUID from a name (version 5 of RFC 9562). The same name always results in the same UUID. */
export function computeUuidFromName(sourceName: string): string {
  const uuidBytes = hash('sha1', Buffer.concat([uuidNamespace, Buffer.from(sourceName)]), 'buffer');
  uuidBytes[6] = ((uuidBytes[6] ?? 0) & 0x0f) | 0x50;
  uuidBytes[8] = ((uuidBytes[8] ?? 0) & 0x3f) | 0x80;
  return uuidBytes.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/**
 * Checks that a request parameter is a UUID, and returns it unchanged.
 *
 * @param parameterName the name of the parameter in the error message
 * @throws ApiError 422 for any other text
 */
export function parseUuid(parameterName: string, parameterValue: string): string {
  if (isUuid(parameterValue)) return parameterValue;
  throw createInvalidRequestError(
    `${parameterName} takes a UUID such as 123e4567-e89b-12d3-a456-426614174000; got "${parameterValue.slice(0, 100)}".`,
  );
}

/**
 * Checks that the id of an advertiser page is not too long, and returns it unchanged.
 *
 * @throws ApiError 422 if the id is too long
 */
export function parsePageId(pageId: string): string {
  if (pageId.length <= maxIdLength) return pageId;
  throw createInvalidRequestError(`A page id has at most ${maxIdLength} characters; this one has ${pageId.length}.`);
}

/** The properties of an HTTP request that the library reads. They are a subset of the web standard `Request`. */
export interface ApiRequest {
  method: string;
  url: string;
  headers: { get(name: string): string | null };
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array> | null;
}

const maxBodyBytes = 64 * 1024;

/**
 * Reads the body of a request, which must be a JSON object in UTF-8 with the `Content-Type: application/json` header.
 *
 * @throws ApiError 422 for any other body, and for a body that is too large or nested too deeply
 */
export async function readJsonBody(request: ApiRequest): Promise<Record<string, unknown>> {
  const contentType = request.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? '';
  if (!/^application\/([\w.-]+\+)?json$/.test(contentType)) {
    throw createInvalidRequestError(
      `The body takes the header "Content-Type: application/json"; got "${contentType.slice(0, 100)}".`,
    );
  }
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  for await (const chunk of request.body ?? []) {
    byteCount += chunk.byteLength;
    if (byteCount > maxBodyBytes) throw createInvalidRequestError(`The body takes at most ${maxBodyBytes} bytes.`);
    chunks.push(chunk);
  }
  const bytes = Buffer.concat(chunks);
  if (!isUtf8(bytes)) throw createInvalidRequestError('The body is not UTF-8.');
  const text = new TextDecoder().decode(bytes);
  if (text.trim() === '') throw createInvalidRequestError('The body is empty; it takes a JSON object.');
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw createInvalidRequestError(`The body is not JSON: ${(error as Error).message.slice(0, 200)}.`);
  }
  if (isNestedTooDeep(body))
    throw createInvalidRequestError(`The body is nested deeper than ${maxNestingDepth} levels.`);
  if (isObject(body)) return body;
  throw createInvalidRequestError('The body takes a JSON object.');
}

/**
 * The maximum nesting depth of objects and lists in a request. `JSON.parse` accepts any depth, but the recursive
 * `JSON.stringify` could later exceed the size of the call stack.
 */
export const maxNestingDepth = 64;

/** Returns true if a value has more than `maxNestingDepth` nested levels. */
export const isNestedTooDeep = (value: unknown): boolean => isDeeperThan(maxNestingDepth, value);

/**
 * Validates the page size (`limit`) of a request. Returns the default if the request states no page size.
 *
 * @param location the part of the request that contains the limit (`body` or `query`), for the error message
 * @throws ApiError 422 if the value is not a whole number from 1 to the maximum
 */
export function parseLimit(limit: unknown, location: string, bounds: { default: number; maximum: number }): number {
  if (limit === undefined) return bounds.default;
  if (typeof limit === 'number' && Number.isInteger(limit) && limit >= 1 && limit <= bounds.maximum) return limit;
  throw createInvalidRequestError(
    `"limit" in the ${location} takes a whole number from 1 to ${bounds.maximum}; got ${quoteValue(limit)}.`,
  );
}

/**
 * Parses the query parameters of a request that lists the items of a collection.
 *
 * @throws ApiError 422 if the item type or limit is invalid
 */
export function parseCollectionItemsQuery(query: URLSearchParams) {
  const itemTypeText = query.get('itemType');
  const itemType = ItemType.safeParse(itemTypeText);
  if (!itemType.success)
    throw createInvalidRequestError(
      `"itemType" in the query takes ads or pages; got ${itemTypeText === null ? 'nothing' : quoteValue(itemTypeText)}.`,
    );
  const limit = query.get('limit') ?? undefined;
  return {
    itemType: itemType.data,
    limit: parseLimit(limit && /^\d+$/.test(limit) ? Number(limit) : limit, 'query', { default: 50, maximum: 100 }),
    cursor: query.get('cursor') ?? undefined,
  };
}

/**
 * Parses the body of a request that adds an item to a collection.
 *
 * @throws ApiError 422 if the item type or id is invalid
 */
export function parseCollectionItem(body: Record<string, unknown>) {
  const parsedItem = AddCollectionItemRequest.safeParse(body);
  if (!parsedItem.success)
    throw createInvalidRequestError(
      `The body takes itemType (ads or pages) and itemId (text). ${z.prettifyError(parsedItem.error)}`,
    );
  const { itemType, itemId } = parsedItem.data;
  return { itemType, itemId: itemType === 'ads' ? parseUuid('"itemId" of an ad', itemId) : parsePageId(itemId) };
}

/**
 * Creates functions that encode and decode cursors. A cursor is JSON with a signature, so that the library rejects
 * cursors that were changed or that belong to another list. The JSON does not include the name of the list; only the
 * signature covers it. This keeps cursors short, because models read them.
 */
export function createCursorCodec(secret: string) {
  const signContent = (listName: string, content: string) =>
    createHmac('sha256', secret).update(`${listName}\n${content}`).digest('base64url').slice(0, signatureLength);
  return {
    /** Creates a signed cursor, which is valid only for the list with this name. */
    encode(listName: string, content: unknown[]): string {
      const encodedContent = Buffer.from(JSON.stringify(content)).toString('base64url');
      return signContent(listName, encodedContent) + encodedContent;
    },
    /**
     * Verifies a cursor and returns its content.
     *
     * @throws ApiError 422 if the cursor was changed or belongs to another list
     */
    decode(listName: string, cursor: string): unknown[] {
      const encodedContent = cursor.slice(signatureLength);
      if (!isSameSecret(cursor.slice(0, signatureLength), signContent(listName, encodedContent))) {
        throw createInvalidRequestError(
          'This cursor does not belong to this list, or it was altered. Pass a returned cursor unchanged and to the list it came from, or leave it out to start from the beginning.',
        );
      }
      return JSON.parse(Buffer.from(encodedContent, 'base64url').toString());
    },
  };
}

/** Encodes and decodes the signed cursors of a library. */
export type CursorCodec = ReturnType<typeof createCursorCodec>;

/** The length of a cursor's signature in base64 characters. Its 66 bits are short, but too many to guess. */
const signatureLength = 11;

/**
 * Compares two secrets in constant time, so that the duration does not reveal how many of their characters are equal.
 */
export function isSameSecret(actualSecret: string, expectedSecret: string): boolean {
  const [actualBytes, expectedBytes] = [Buffer.from(actualSecret), Buffer.from(expectedSecret)];
  return actualBytes.length === expectedBytes.length && timingSafeEqual(actualBytes, expectedBytes);
}
