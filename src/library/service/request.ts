import { isUtf8 } from 'node:buffer';
import { createHmac, hash, timingSafeEqual } from 'node:crypto';
import * as z from 'zod';
import { isDeeperThan } from '../../api/json.ts';
import { AddCollectionItemRequest, ItemType } from '../../api/schemas.ts';
import { maxIdLength } from '../../api/url.ts';
import { isUuid } from '../../views/safe-text.ts';
import { isObject } from '../../views/view.ts';

/** An error answer of the API. All fields but `status` become the documented error body. */
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

/** 422. The message says what was wrong and what is allowed. */
export const invalidRequest = (message: string, details?: unknown) =>
  new ApiError(422, 'invalid_request', message, details);

export const quoteValue = (value: unknown): string => String(JSON.stringify(value)).slice(0, 100);

export const notFoundError = (what: string, id: string) =>
  new ApiError(404, 'not_found', `No ${what} with the id ${id}.`);

/** The namespace of made ids: any UUID, always the same. */
const namespace = Buffer.from('9f0c8a51c1f24a6db6f25d6b1f6f1a77', 'hex');

/** The id of a name, the same every time: a UUID of version 5 (RFC 9562). */
export function uuidFromName(name: string): string {
  const bytes = hash('sha1', Buffer.concat([namespace, Buffer.from(name)]), 'buffer');
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

export function parseUuid(name: string, text: string): string {
  if (isUuid(text)) return text;
  throw invalidRequest(
    `${name} takes a UUID such as 123e4567-e89b-12d3-a456-426614174000; got "${text.slice(0, 100)}".`,
  );
}

export function parsePageId(text: string): string {
  if (text.length <= maxIdLength) return text;
  throw invalidRequest(`A page id has at most ${maxIdLength} characters; this one has ${text.length}.`);
}

const maxBodyBytes = 64 * 1024;

/** The JSON object in the body: UTF-8, `Content-Type: application/json`. */
export async function readJsonBody(request: Request): Promise<Record<string, unknown>> {
  const type = request.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? '';
  if (!/^application\/([\w.-]+\+)?json$/.test(type)) {
    throw invalidRequest(`The body takes the header "Content-Type: application/json"; got "${type.slice(0, 100)}".`);
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    if (size > maxBodyBytes) throw invalidRequest(`The body takes at most ${maxBodyBytes} bytes.`);
    chunks.push(chunk);
  }
  const bytes = Buffer.concat(chunks);
  if (!isUtf8(bytes)) throw invalidRequest('The body is not UTF-8.');
  const text = new TextDecoder().decode(bytes);
  if (text.trim() === '') throw invalidRequest('The body is empty; it takes a JSON object.');
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw invalidRequest(`The body is not JSON: ${(error as Error).message.slice(0, 200)}.`);
  }
  if (isNestedTooDeep(body)) throw invalidRequest(`The body is nested deeper than ${maxNestingDepth} levels.`);
  if (isObject(body)) return body;
  throw invalidRequest('The body takes a JSON object.');
}

/** The most levels of objects and lists. `JSON.stringify` may be recursive and fail on values that `JSON.parse` reads. */
export const maxNestingDepth = 64;

export const isNestedTooDeep = (value: unknown): boolean => isDeeperThan(maxNestingDepth, value);

/** `limit` as a number within bounds; `from` says where it was, for the error message. */
export function parseLimit(limit: unknown, from: string, bounds: { default: number; maximum: number }): number {
  if (limit === undefined) return bounds.default;
  if (typeof limit === 'number' && Number.isInteger(limit) && limit >= 1 && limit <= bounds.maximum) return limit;
  throw invalidRequest(
    `"limit" in the ${from} takes a whole number from 1 to ${bounds.maximum}; got ${quoteValue(limit)}.`,
  );
}

export function parseListQuery(query: URLSearchParams) {
  const given = query.get('itemType');
  const itemType = ItemType.safeParse(given);
  if (!itemType.success)
    throw invalidRequest(
      `"itemType" in the query takes ads or pages; got ${given === null ? 'nothing' : quoteValue(given)}.`,
    );
  const limit = query.get('limit') ?? undefined;
  return {
    itemType: itemType.data,
    limit: parseLimit(limit && /^\d+$/.test(limit) ? Number(limit) : limit, 'query', { default: 50, maximum: 100 }),
    cursor: query.get('cursor') ?? undefined,
  };
}

export function parseCollectionItem(body: Record<string, unknown>) {
  const item = AddCollectionItemRequest.safeParse(body);
  if (!item.success)
    throw invalidRequest(`The body takes itemType (ads or pages) and itemId (text). ${z.prettifyError(item.error)}`);
  const { itemType, itemId } = item.data;
  return { itemType, itemId: itemType === 'ads' ? parseUuid('"itemId" of an ad', itemId) : parsePageId(itemId) };
}

/**
 * Writes and reads cursors: JSON, signed for one list, so that an altered cursor, or one of another list, is refused. A
 * model reads cursors too, so a cursor is short: the list is part of the signature, and not of the text.
 */
export function createCursorCodec(secret: string) {
  const signatureOf = (list: string, content: string) =>
    createHmac('sha256', secret).update(`${list}\n${content}`).digest('base64url').slice(0, signatureLength);
  return {
    encode(list: string, content: unknown[]): string {
      const text = Buffer.from(JSON.stringify(content)).toString('base64url');
      return signatureOf(list, text) + text;
    },
    /** @throws ApiError 422 */
    decode(list: string, cursor: string): unknown[] {
      const content = cursor.slice(signatureLength);
      if (!isSameSecret(cursor.slice(0, signatureLength), signatureOf(list, content))) {
        throw invalidRequest(
          'This cursor is not one that this service gave for this list. Pass a returned cursor unchanged, and to the list it came from, or leave it out to start anew.',
        );
      }
      return JSON.parse(Buffer.from(content, 'base64url').toString());
    },
  };
}

export type CursorCodec = ReturnType<typeof createCursorCodec>;

const signatureLength = 11;

/** Compares secrets in a time that does not reveal how similar they are. */
export function isSameSecret(given: string, expected: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}
