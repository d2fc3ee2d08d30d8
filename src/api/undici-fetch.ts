import type { Dispatcher } from 'undici';
import { AdLibraryError } from './errors.ts';
import type { Fetch } from './send-http.ts';

/** A page of 100 full ads is about 1 MB, of very large ones 3; an answer past this is not one of the document's. */
const largestAnswer = 8 * 1024 * 1024;

/** Failures that happen before a byte of the request leaves: it is safe to send again, and was not charged. */
const unsentCodes = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/**
 * The network behind `Fetch`: undici's request, one agent for all callers, no redirects followed (a redirect could
 * carry the key elsewhere), the answer's size bounded. Whoever gets an answer reads its text, which frees the line.
 */
export function undiciFetch(): { fetch: Fetch; close(): Promise<void> } {
  let network: ReturnType<typeof loadUndici> | undefined;
  // One for all calls, as there is one service.
  let origin = '';
  const fetch: Fetch = async (url, init) => {
    network ??= loadUndici();
    const agent = await network;
    const { signal, method, ...rest } = init;
    try {
      if (!url.startsWith(`${origin}/`)) origin = new URL(url).origin;
      const path = url.slice(origin.length);
      const { statusCode, headers, body } = await agent.request({
        ...rest,
        origin,
        path,
        method: method as Dispatcher.HttpMethod,
        signal,
      });
      return {
        status: statusCode,
        headers: { get: (name) => first(headers[name]) },
        text: () => (isShort(headers) ? body.text() : body.bytes().then(textOf)).catch(failed),
      };
    } catch (error) {
      return failed(error);
    }

    function failed(error: unknown): never {
      throw signal.aborted ? signal.reason : networkError(error);
    }
  };
  return { fetch, close: async () => (await network)?.destroy() };
}

/** Takes longer than starting the rest of the server, so it waits for the first call. */
async function loadUndici() {
  // It is CommonJS: only its default export is there whether it was bundled or not.
  const { Agent } = (await import('undici')).default;
  // The call's signal carries the only deadline: undici's own timers are coarse and would cut long answers.
  return new Agent({ maxResponseSize: largestAnswer, headersTimeout: 0, bodyTimeout: 0, connections: 64 });
}

const isShort = (headers: { 'content-length'?: unknown }) => Number(headers['content-length']) < 16 * 1024;

const decoder = new TextDecoder();
/** As a part and its end: Node decodes that three times as fast as a whole, where it is long and not all Latin. */
const textOf = (bytes: Uint8Array) => decoder.decode(bytes, { stream: true }) + decoder.decode();

const first = (value: string | string[] | undefined): string | null =>
  (Array.isArray(value) ? value[0] : value) ?? null;

function networkError(error: unknown): AdLibraryError {
  const code = codeOf(error);
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') {
    const problem = `The answer is larger than ${largestAnswer / 1024 / 1024} MB.`;
    return new AdLibraryError({ kind: 'unexpected_response', problem, sent: true });
  }
  if (code === 'HTTPParserError' || code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new AdLibraryError({ kind: 'unexpected_response', problem: 'The answer is not HTTP.', sent: true });
  }
  const unsent =
    unsentCodes.has(code) || code.includes('CERT') || code.startsWith('ERR_TLS') || code.startsWith('ERR_SSL');
  return new AdLibraryError({ kind: 'network', problem: code, sent: unsent ? false : undefined }, { cause: error });
}

/** The system's or undici's code, or name. The message is left out: it may hold addresses and bytes of the answer. */
function codeOf(error: unknown): string {
  const { code, name, cause, errors } = (error ?? {}) as Record<'code' | 'name' | 'cause', unknown> & {
    errors?: unknown[];
  };
  if (typeof code === 'string') return code;
  if (name === 'HTTPParserError') return name;
  const inner = cause ?? errors?.[0];
  return inner === undefined ? 'unknown' : codeOf(inner);
}
