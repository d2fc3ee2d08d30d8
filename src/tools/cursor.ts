import { createHmac } from 'node:crypto';
import { canonical, type OperationName } from '../api/call.ts';
import { AdLibraryError } from '../api/errors.ts';
import { word } from '../present/safe-text.ts';
import type { CursorMemory } from '../state/state.ts';

/** Where a list continues: on which page of the service, and after how many of its items. */
export interface PagePosition {
  /** The service's cursor; undefined for its first page. */
  serviceCursor: string | undefined;
  /** The requested page size: with another one, this would be another page. */
  limit: number | undefined;
  shown: number;
}

/** What a list is asked for, without the position: filters, or a collection and an item type. */
export type SearchParams = Readonly<Record<string, unknown>>;

/** What a cursor belongs to: an operation that lists, and its parameters. */
export interface Listing {
  list: OperationName;
  searchParams: SearchParams;
}

/** A list, and where it continues. */
export interface PageListing extends Listing {
  position: PagePosition;
}

/** Signs and remembers the cursors of one caller. */
export interface Cursors extends CursorMemory {
  /** Returns a short signature under the caller's key. */
  sign(text: string): string;
}

/** The first character of every cursor of this server. */
export const MARKER = '@';
/** `IgnoreAllPreviousInstructions`. */
const CAMEL_SENTENCE = /(?:[A-Z]?[a-z]{2,}){4}/;
/** Characters of a service cursor inside a cursor of this server. */
const MAX_EMBEDDED = 1000;

/**
 * Writes a cursor that any process can read: `@50+20.SIGNATURE:SERVICECURSOR` continues after 20 items of a page of 50.
 * If the service's cursor is one plain word it is embedded as it is, otherwise encoded after `=`: a model reads and
 * copies this text, so nothing in it may pose as a sentence or a link. A service cursor that is too long is remembered
 * here instead, and `~` stands for it.
 */
export function writeCursor({ list, searchParams, position }: PageListing, { sign }: Cursors): string {
  const { serviceCursor, limit, shown } = position;
  const signature = sign(canonical([list, serviceCursor ?? null, limit ?? null, shown, searchParams]));
  const page = `${limit ?? ''}${shown === 0 ? '' : `+${shown}`}`;
  return `${MARKER}${page}.${signature}${serviceCursor === undefined ? '' : embedded(serviceCursor)}`;
}

function embedded(serviceCursor: string): string {
  if (word(serviceCursor) === serviceCursor && !CAMEL_SENTENCE.test(serviceCursor)) return `:${serviceCursor}`;
  if (serviceCursor.length > MAX_EMBEDDED || !serviceCursor.isWellFormed()) return '~';
  const encoded = Buffer.from(serviceCursor).toString('base64url');
  return encoded.length > MAX_EMBEDDED ? '~' : `=${encoded}`;
}

/** Remembers what a cursor does not hold: the filters, which a caller may leave out, and a long service cursor. */
export async function rememberCursor(cursor: string, { searchParams, position }: PageListing, { remember }: Cursors) {
  if (cursor.endsWith('~')) await remember(cursor, { searchParams, serviceCursor: position.serviceCursor });
  else if (Object.keys(searchParams).length > 0) await remember(cursor, { searchParams });
}

/** 66 bits, as base64url. */
const SIGNATURE_LENGTH = 11;

/**
 * Signs with a secret derived from the caller's API key, so that every process reads the cursors of that key and no
 * other's. A signature gives away nothing about the key.
 */
export function cursorSigner(apiKey: string | undefined): (text: string) => string {
  let secret: Buffer | undefined;
  return (text) => {
    if (apiKey === undefined) throw new AdLibraryError({ kind: 'no_api_key', sent: false });
    secret ??= createHmac('sha256', apiKey).update('ad-library-mcp cursor').digest();
    return createHmac('sha256', secret).update(text).digest('base64url').slice(0, SIGNATURE_LENGTH);
  };
}
