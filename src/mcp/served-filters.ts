import type { IncomingMessage } from 'node:http';
import * as z from 'zod';
import type { Fetch } from '../api/http.ts';
import { parseJson } from '../api/json.ts';
import { filtersExtension, filterTypes, type SearchFilter, type SearchFilters } from '../api/search-filters.ts';
import { word } from '../present/safe-text.ts';

interface ServedBy {
  baseUrl: string;
  userAgent: string;
  /** A way to the service other than the network. */
  fetch: Fetch | undefined;
  /** The filters of a library of this version. */
  own: SearchFilters;
}

/** How long the request may take, in milliseconds: a person waits for the list of tools. */
const maxMs = 1000;
const maxChars = 1_000_000;

/**
 * The filters that a local library serves in its OpenAPI document, or undefined if it is no local library. Sent without
 * a key: the document needs none, and over HTTP there is none yet.
 * @throws if it does not answer in time, or fails
 */
export async function askForFilters({
  baseUrl,
  userAgent,
  fetch = fetchByNode,
  own,
}: ServedBy): Promise<SearchFilters | undefined> {
  const response = await fetch(`${baseUrl}/openapi.json`, {
    method: 'GET',
    headers: { accept: 'application/json', 'user-agent': userAgent },
    signal: AbortSignal.timeout(maxMs),
    onSent: () => {},
  });
  const text = await response.text();
  if (response.status >= 500) throw new Error(`It answered ${response.status}.`);
  const served = response.status === 200 && text.length <= maxChars ? readServedFilters(parseJson(text)) : undefined;
  return served && withNotes(served, own);
}

/** Node's own client takes a tenth of the time to load that the client of calls takes, and a session may make no call. */
const fetchByNode: Fetch = async (url, { headers, signal }) => {
  const { get } = url.startsWith('https:') ? await import('node:https') : await import('node:http');
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    // An idle connection would keep the process alive.
    get(url, { headers, signal, agent: false }, resolve).on('error', reject);
  });
  const text = async () => {
    let received = '';
    for await (const part of response.setEncoding('utf8')) {
      received += part;
      if (received.length > maxChars) break;
    }
    return received;
  };
  return { status: response.statusCode ?? 0, headers: { get: () => null }, text };
};

/**
 * Takes names, types, values and numbers from the document, and no prose, because a model reads the result. An entry of
 * any other form is left out.
 */
export function readServedFilters(document: unknown): SearchFilters | undefined {
  const served = ServedFilters.safeParse((document as Record<string, unknown> | null)?.[filtersExtension]);
  return served.success ? served.data : undefined;
}

/** Described in the words of this version, because the other's are never shown to a model. */
function withNotes(served: SearchFilters, own: SearchFilters): SearchFilters {
  const noted = (kind: 'ads' | 'pages') =>
    served[kind].map((filter) => {
      const known = own[kind].find(({ key, type }) => key === filter.key && type === filter.type);
      const { note, example } = known ?? {};
      return { ...filter, ...(note !== undefined && { note }), ...(example !== undefined && { example }) };
    });
  return { ...served, ads: noted('ads'), pages: noted('pages') };
}

const maxKeys = 100;
const maxLength = 10_000;

/** A name or a value that cannot be a sentence. */
const Word = z
  .string()
  .max(40)
  .refine((text) => /^[A-Za-z\d]+(?:[_.+-][A-Za-z\d]+){0,3}$/.test(text) && word(text) === text);
const Words = z.array(Word).min(1).max(60).optional();
const finite = z.number().optional();

const ServedFilter = z.object({
  key: Word.regex(/^[A-Za-z]/),
  type: z.enum(filterTypes),
  values: Words,
  open: z.boolean().optional(),
  single: z.boolean().optional(),
  counted: z.boolean().optional(),
  fields: Words,
  minimum: finite,
  maximum: finite,
  maxLength: finite,
  default: z.union([Word, z.number(), z.boolean()]).optional(),
});

const filterList = z.array(z.unknown()).transform((entries) => {
  const filters = new Map<string, SearchFilter>();
  let length = 0;
  for (const entry of entries.slice(0, maxKeys)) {
    const { data } = ServedFilter.safeParse(entry);
    if (data === undefined) continue;
    length += JSON.stringify(data).length;
    if (length > maxLength) break;
    filters.set(data.key, data);
  }
  return [...filters.values()];
});

const ServedFilters = z.object({
  ads: filterList,
  pages: filterList,
  inclusive: z.boolean().optional(),
  ignoresCase: z.boolean().optional(),
});
