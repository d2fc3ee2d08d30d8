import type { IncomingMessage } from 'node:http';
import type { Fetch } from '../api/http.ts';
import { parseJson } from '../api/json.ts';
import { readSearchFilters, type SearchFilter, type SearchFilters } from '../api/search-filters.ts';

interface ServedBy {
  baseUrl: string;
  userAgent: string;
  fetch: Fetch | undefined;
  ownFilters: SearchFilters;
}

/** How long the request may take, in milliseconds: a person waits for the list of tools. */
const maxMs = 1000;
/** Four times what a library of this version describes. */
const maxChars = 64 * 1024;

/** Undefined for what is no local library. No key is sent. @throws if it does not answer in time, or fails */
export async function askForFilters({
  baseUrl,
  userAgent,
  fetch,
  ownFilters,
}: ServedBy): Promise<SearchFilters | undefined> {
  const send: Fetch = fetch ?? fetchByNode;
  const response = await send(`${baseUrl}/filters.json`, {
    method: 'GET',
    headers: { accept: 'application/json', 'user-agent': userAgent },
    signal: AbortSignal.timeout(maxMs),
    onSent: () => {},
  });
  const text = await response.text();
  if (response.status >= 500) throw new Error(`It answered ${response.status}.`);
  if (response.status !== 200 || text.length > maxChars) return undefined;
  try {
    const { ads, pages, ...rest } = readSearchFilters(parseJson(text));
    if (ads.length === 0 || ![...ads, ...pages].every(hasOnlyWords)) return undefined;
    return { ...rest, ads: inOwnWords(ads, ownFilters.ads), pages: inOwnWords(pages, ownFilters.pages) };
  } catch {
    return undefined;
  }
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

/** A model reads these names and values, so none of them may be a sentence. */
const isName = (word: string): boolean => word.length <= 40 && /^[A-Za-z\d]+(?:[_.+-][A-Za-z\d]+){0,3}$/.test(word);

const hasOnlyWords = ({ key, values = [], fields = [], default: usual }: SearchFilter) =>
  [key, ...values, ...fields, ...(typeof usual === 'string' ? [usual] : [])].every(isName);

/** With the prose of this version in place of the other's, which a model never reads. */
const inOwnWords = (served: SearchFilter[], ownFilters: SearchFilter[]): SearchFilter[] =>
  served.map(({ description: _, note: __, example: ___, ...filter }) => {
    const { note, example } = ownFilters.find(({ key, type }) => key === filter.key && type === filter.type) ?? {};
    return { ...filter, ...(note !== undefined && { note }), ...(example !== undefined && { example }) };
  });
