import type { Agent, Dispatcher } from 'undici';
import { AdLibraryError } from './errors.ts';
import type { Fetch, HttpRequest, HttpResponse } from './send-http.ts';

/** A page of 100 full ads has about 1 MB, and 3 MB if they are very large. */
const maxAnswerBytes = 8 * 1024 * 1024;
/** Parts of an answer before they are joined: a part of one byte takes a hundred as an object. */
const maxParts = 1024;

/**
 * `Fetch` over the network: one undici agent for all callers, no redirects (they could carry the key elsewhere),
 * bounded answers. Uses `dispatch`, because only that tells when a request really leaves.
 */
export function undiciFetch(): { fetch: Fetch; close(): Promise<void> } {
  let loading: Promise<Agent> | undefined;
  const fetch: Fetch = async (url, { signal, method, headers, body, onSent }) => {
    loading ??= loadAgent();
    const agent = await loading;
    signal.throwIfAborted();
    const { origin, pathname, search } = new URL(url);
    const options = { origin, path: `${pathname}${search}`, method: method as Dispatcher.HttpMethod, headers };
    const explain = (error: unknown): never => {
      throw signal.aborted ? signal.reason : networkError(error, origin);
    };
    const response = await dispatch(agent, body === undefined ? options : { ...options, body }, {
      signal,
      onSent,
    }).catch(explain);
    return { ...response, text: () => response.text().catch(explain) };
  };
  return { fetch, close: async () => (await loading)?.destroy() };
}

/** Loaded with the first call, because it takes longer than starting the rest of the server. */
async function loadAgent(): Promise<Agent> {
  // It is CommonJS: only the default export exists both bundled and unbundled.
  const { Agent } = (await import('undici')).default;
  // The call's signal is the only deadline: undici's timers are coarse and would cut off long answers. Connections are
  // not limited, because calls are: with fewer connections, slow calls of one key would delay those of another.
  return new Agent({ maxResponseSize: maxAnswerBytes, headersTimeout: 0, bodyTimeout: 0 });
}

/**
 * Sends one request. Resolves with the head of the answer, whose `text` resolves with the whole body. Rejects at once
 * if the signal aborts, even while the request still waits for a connection.
 */
function dispatch(
  agent: Agent,
  options: Dispatcher.DispatchOptions,
  { signal, onSent }: Pick<HttpRequest, 'signal' | 'onSent'>,
) {
  return new Promise<HttpResponse>((resolve, reject) => {
    let parts: Buffer[] = [];
    const joined: Buffer[] = [];
    let controller: Dispatcher.DispatchController | undefined;
    let finish: (text: string) => void = () => {};
    let fail: (error: unknown) => void = reject;
    const abort = () => {
      controller?.abort(signal.reason);
      fail(signal.reason);
    };
    const release = () => signal.removeEventListener('abort', abort);
    signal.addEventListener('abort', abort);
    agent.dispatch(options, {
      onRequestStart(started) {
        controller = started;
        if (signal.aborted) started.abort(signal.reason);
        else onSent();
      },
      onResponseStart(_, status, headers) {
        // A 1xx only announces the answer.
        if (status < 200) return;
        const body = new Promise<string>((resolveBody, rejectBody) => {
          finish = resolveBody;
          fail = rejectBody;
        });
        // Readers of the text get the error; if nobody reads it, it must not count as unhandled.
        body.catch(() => {});
        resolve({ status, headers: { get: (name) => first(headers[name]) }, text: () => body });
      },
      onResponseData(_, chunk) {
        parts.push(chunk);
        if (parts.length < maxParts) return;
        joined.push(Buffer.concat(parts));
        parts = [];
      },
      onResponseEnd() {
        release();
        finish(textOf(Buffer.concat([...joined, ...parts])));
      },
      onResponseError(_, error) {
        release();
        fail(error);
      },
    });
  });
}

const decoder = new TextDecoder();
/** Decodes in two steps, which in Node is three times as fast for long text that is not all Latin. */
const textOf = (bytes: Uint8Array) => decoder.decode(bytes, { stream: true }) + decoder.decode();

const first = (value: string | string[] | undefined): string | null =>
  (Array.isArray(value) ? value[0] : value) ?? null;

function networkError(error: unknown, origin: string): AdLibraryError {
  const code = codeOf(error);
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') {
    const problem = `The answer is larger than ${maxAnswerBytes / 1024 / 1024} MB.`;
    return new AdLibraryError({ kind: 'unexpected_response', problem, sent: true });
  }
  if (code === 'HTTPParserError' || code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new AdLibraryError({ kind: 'unexpected_response', problem: 'The answer is not HTTP.', sent: true });
  }
  return new AdLibraryError({ kind: 'network', problem: `${origin}: ${code}.` }, { cause: error });
}

/** The code or name of an error. Not the message, which may contain addresses and bytes of the answer. */
function codeOf(error: unknown): string {
  const { code, name, cause, errors } = (error ?? {}) as Record<'code' | 'name' | 'cause', unknown> & {
    errors?: unknown[];
  };
  if (typeof code === 'string') return code;
  if (name === 'HTTPParserError') return name;
  const inner = cause ?? errors?.[0];
  return inner === undefined ? 'unknown' : codeOf(inner);
}
