import type { IncomingMessage } from 'node:http';
import type { Fetch } from '../api/http.ts';
import { parseJson } from '../api/json.ts';
import { parseSearchFilters, type SearchFilter, type SearchFilters } from '../api/search-filters.ts';

interface FilterSource {
  baseUrl: string;
  userAgent: string;
  fetch: Fetch | undefined;
  builtInFilters: SearchFilters;
}

/**
 * The time limit for fetching the filter descriptions, in milliseconds. The limit is short, because the user waits for
 * the tool list.
 */
const requestTimeoutMs = 1000;
/**
 * The maximum size, in characters, of the filter descriptions that a local library may send. The descriptions that this
 * version of the server contains have a quarter of this size.
 */
const maxDescriptionChars = 64 * 1024;

/**
 * Fetches the descriptions of search filters from a local library (an API server on the user's machine). The request
 * does not contain the API key.
 * @returns undefined if the service is not a local library
 * @throws if the service fails or does not respond in time
 */
export async function fetchServedFilters({
  baseUrl,
  userAgent,
  fetch,
  builtInFilters,
}: FilterSource): Promise<SearchFilters | undefined> {
  const sendRequest: Fetch = fetch ?? fetchWithNodeHttp;
  const response = await sendRequest(`${baseUrl}/filters.json`, {
    method: 'GET',
    headers: { accept: 'application/json', 'user-agent': userAgent },
    signal: AbortSignal.timeout(requestTimeoutMs),
    onSent: () => {},
  });
  const responseText = await response.text();
  if (response.status >= 500) throw new Error(`It answered ${response.status}.`);
  if (response.status !== 200 || responseText.length > maxDescriptionChars) return undefined;
  try {
    const { ads, pages, ...otherFields } = parseSearchFilters(parseJson(responseText));
    if (ads.length === 0 || ![...ads, ...pages].every(hasOnlySingleWords)) return undefined;
    return {
      ...otherFields,
      ads: replaceNotes(ads, builtInFilters.ads),
      pages: replaceNotes(pages, builtInFilters.pages),
    };
  } catch {
    return undefined;
  }
}

/**
 * Sends a request with Node's own HTTP client, which loads ten times as fast as the client for API calls. Sessions
 * without API calls therefore start faster.
 */
const fetchWithNodeHttp: Fetch = async (url, { headers, signal }) => {
  const { get } = url.startsWith('https:') ? await import('node:https') : await import('node:http');
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    // Do not reuse connections, because an idle connection would keep the process alive.
    get(url, { headers, signal, agent: false }, resolve).on('error', reject);
  });
  const readText = async () => {
    let receivedText = '';
    for await (const chunk of response.setEncoding('utf8')) {
      receivedText += chunk;
      if (receivedText.length > maxDescriptionChars) break;
    }
    return receivedText;
  };
  return { status: response.statusCode ?? 0, headers: { get: () => null }, text: readText };
};

/**
 * Returns true for a single word of at most 40 characters, e.g. `startedAtFrom`. The model may read single words from
 * another server, but no sentences, because a sentence could be an instruction to the model.
 */
const isSingleWord = (text: string): boolean =>
  text.length <= 40 && /^[A-Za-z\d]+(?:[_.+-][A-Za-z\d]+){0,3}$/.test(text);

const hasOnlySingleWords = ({ key, values = [], fields = [], default: defaultValue }: SearchFilter) =>
  [key, ...values, ...fields, ...(typeof defaultValue === 'string' ? [defaultValue] : [])].every(isSingleWord);

/**
 * Replaces the notes and examples in the filters of another server with those of the built-in filters, because
 * sentences from another server must not reach the model.
 */
const replaceNotes = (servedFilters: SearchFilter[], builtInFilters: SearchFilter[]): SearchFilter[] =>
  servedFilters.map(({ description: _, note: __, example: ___, ...filter }) => {
    const { note, example } = builtInFilters.find(({ key, type }) => key === filter.key && type === filter.type) ?? {};
    return { ...filter, ...(note !== undefined && { note }), ...(example !== undefined && { example }) };
  });
