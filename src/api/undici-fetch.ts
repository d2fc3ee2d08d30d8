import type { Agent, Dispatcher } from 'undici';
import { AdLibraryError } from './errors.ts';
import type { Fetch, HttpResponse } from './send-http.ts';

/** A page of 100 full ads is about 1 MB, of very large ones 3; an answer past this is not one of the document's. */
const maxAnswerBytes = 8 * 1024 * 1024;
/** Parts of an answer held as they came. A part may be one byte, and as an object of its own takes a hundred. */
const maxParts = 1024;

/**
 * The network behind `Fetch`: one undici agent for all callers, no redirects followed (a redirect could carry the key
 * elsewhere), the answer's size bounded. Dispatched by hand, because only so one learns when a request really leaves.
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

/** Takes longer than starting the rest of the server, so it waits for the first call. */
async function loadAgent(): Promise<Agent> {
  // It is CommonJS: only its default export is there whether it was bundled or not.
  const { Agent } = (await import('undici')).default;
  // The call's signal carries the only deadline: undici's own timers are coarse and would cut long answers. Connections
  // are as many as there are calls, which others bound: with fewer, one key's slow calls would hold up another's.
  return new Agent({ maxResponseSize: maxAnswerBytes, headersTimeout: 0, bodyTimeout: 0 });
}

interface Exchange {
  signal: AbortSignal;
  onSent(): void;
}

/**
 * One request and its answer: resolves with the head, whose `text` resolves with the whole body. Rejects at once where
 * the signal aborts, even while the request still waits for a connection.
 */
function dispatch(agent: Agent, options: Dispatcher.DispatchOptions, { signal, onSent }: Exchange) {
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
        // 1xx announces the answer and is none.
        if (status < 200) return;
        const body = new Promise<string>((resolveBody, rejectBody) => {
          finish = resolveBody;
          fail = rejectBody;
        });
        // Whoever reads the text learns of it; a head alone may be all that is looked at.
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
/** As a part and its end: Node decodes that three times as fast as a whole, where it is long and not all Latin. */
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
