import { setTimeout as wait } from 'node:timers/promises';
import type { Agent, Dispatcher } from 'undici';
import * as z from 'zod';
import { abortedError, knownError } from './abort.ts';
import type { Answer, Call, Receipt, Send } from './call.ts';
import { responseSchemas, withoutUnusableItems } from './client.ts';
import { AdLibraryError, type FailureFacts, kindOfStatus, type WrongAddress } from './errors.ts';
import { parseJson } from './json.ts';
import { ErrorBody, lenient } from './schemas.ts';
import { urlOf } from './url.ts';

/** Sends a request to the service: over the network with undici, or to the handler of the local library. */
export type Fetch = (url: string, init: HttpRequest) => Promise<HttpResponse>;

/** A request to the service. */
export interface HttpRequest {
  method: string;
  headers: Record<string, string>;
  body?: string;
  signal: AbortSignal;
  /** Must be called when the first byte leaves the process. From then on, the service may carry out the call. */
  onSent(): void;
}

/** The members of a web-standard `Response` that are used. */
export interface HttpResponse {
  status: number;
  headers: { get(name: string): string | null };
  text(): Promise<string>;
}

interface ServiceOptions {
  fetch: Fetch;
  baseUrl: string;
  userAgent: string;
  random: () => number;
  /** Creates a function that masks the key in a body, so that the key is never stored with an answer. */
  keyMasker(key: string): <Value>(value: Value, text?: string) => Value;
}

const maxAttempts = 3;
/** The longest wait before the second attempt, in milliseconds. It doubles for each further attempt. */
const maxFirstWaitMs = 300;

/**
 * Creates a function that sends a call to the service and reads its answer. It throws an `AdLibraryError` for every answer
 * except a documented 200.
 *
 * Failed calls are repeated within their deadline if this is safe: calls that were never sent, calls that a gateway
 * rejected (502, 503, 504), and calls that cost nothing to repeat. A paid call is repeated only if nothing was sent, or
 * after a 503 that states no charge or a charge of 0. The service may have charged for any other failed paid call. Calls
 * are not repeated after 402 and 429, because these states last longer than a call: the window of a 429 is an hour or a
 * day.
 */
export function httpService(options: ServiceOptions): Send {
  return async (call) => {
    let unsafeRetries = 0;
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await request(call, options);
        return unsafeRetries > 0 ? { ...answer, repeated: true } : answer;
      } catch (attemptError) {
        const error = unsafeRetries > 0 ? markAsRepeated(attemptError) : attemptError;
        const retry = attempt < maxAttempts ? decideRetry(attemptError, call, unsafeRetries) : 'no';
        if (retry === 'no' || call.progress.isWanted?.() === false) throw error;
        if (retry === 'unsafe') {
          unsafeRetries++;
          call.progress.mayBeDone = true;
        }
        // Exponential backoff with full jitter, so that calls that failed at the same time are repeated at different times.
        const waitMs = options.random() * maxFirstWaitMs * 2 ** (attempt - 1);
        await wait(waitMs, undefined, { signal: call.signal }).catch(() => {
          throw error;
        });
      }
    }
  };
}

/** Adds to an error that the service may have carried out an earlier attempt. */
const markAsRepeated = (error: unknown): unknown =>
  error instanceof AdLibraryError
    ? new AdLibraryError({ ...error.failure, sent: true, repeated: true }, { cause: error })
    : error;

/** Decides whether to repeat a call. The retry is `unsafe` if the service may have carried out the failed attempt. */
function decideRetry(
  error: unknown,
  { request, signal, progress }: Call,
  unsafeRetries: number,
): 'no' | 'safe' | 'unsafe' {
  const { operation } = request;
  const { isPaid = operation.gated } = progress;
  if (signal.aborted || !(error instanceof AdLibraryError)) return 'no';
  const { kind, status, sent, charged, chargeUnreadable } = error.failure;
  if (kind === 'network' && sent === false) return 'safe';
  if (charged || chargeUnreadable) return 'no';
  if (isPaid) return status === 503 ? 'safe' : 'no';
  const isRejected = status === 502 || status === 503 || status === 504;
  if (isRejected && !operation.writes) return 'safe';
  return (isRejected || kind === 'network') && unsafeRetries < operation.maxUnsafeRetries ? 'unsafe' : 'no';
}

async function request(call: Call, { fetch, baseUrl, userAgent, keyMasker }: ServiceOptions): Promise<Answer> {
  const { signal, progress, owner } = call;
  const url = urlOf(call.request, baseUrl);
  const headers: Record<string, string> = {
    authorization: `Bearer ${owner.apiKey}`,
    accept: 'application/json',
    'user-agent': userAgent,
  };
  const body = call.request.body && JSON.stringify(call.request.body);
  if (body !== undefined) headers['content-type'] = 'application/json';
  const onSent = () => {
    progress.sent = true;
  };
  const init = { method: call.request.operation.method, headers, signal, onSent, ...(body !== undefined && { body }) };
  try {
    const response = await fetch(url, init);
    return await readAnswer(call, url, response, keyMasker(owner.apiKey));
  } catch (error) {
    const { sent } = progress;
    progress.sent = false;
    throw describeError(error, { signal, sent });
  }
}

/** Adds to an error whether the request was sent. Replaces other errors by the error of the abort, if the signal aborted. */
function describeError(error: unknown, { signal, sent }: { signal: AbortSignal; sent: boolean }): unknown {
  if (error instanceof AdLibraryError) {
    const { failure } = error;
    if (sent || failure.kind !== 'network') return error;
    return new AdLibraryError({ ...failure, sent: false }, { cause: error });
  }
  return signal.aborted ? abortedError(signal, sent) : error;
}

/** Reads an answer and masks the key in it. @throws AdLibraryError for every answer except a documented 200 */
async function readAnswer(
  call: Call,
  url: string,
  response: HttpResponse,
  maskKey: ReturnType<ServiceOptions['keyMasker']>,
): Promise<Answer> {
  const { status, headers } = response;
  const statedReceipt = readReceipt(headers);
  const receipt = { ...statedReceipt, requestId: statedReceipt.requestId && maskKey(statedReceipt.requestId) };
  const { charged, requestId, chargeUnreadable = false } = receipt;
  const facts = { status, requestId: requestId ?? undefined, charged: charged ?? undefined, chargeUnreadable };
  const body = await response.text().catch((error) => throwBodyError(error, call, facts));
  const parsed = parseJson(body);
  const plain = maskKey(parsed, body);
  const mayLoseDigits = plain !== undefined && longNumber.test(body);
  const exact = mayLoseDigits ? maskKey(JSON.parse(quoteLongNumbers(body)), body) : plain;
  if (status !== 200) {
    const failure = { ...facts, ...(readServiceError(exact) ?? noErrorBody), sent: true };
    const wrongAddress = detectWrongAddress(status, headers, url);
    throw new AdLibraryError(
      wrongAddress
        ? { ...failure, kind: 'unexpected_response', wrongAddress }
        : { ...failure, kind: kindOfStatus(status) },
    );
  }
  const { checked, raw, unusable } = withoutUnusableItems(call.request, plain, exact);
  const result = responseSchemas[call.request.operation.name].safeParse(checked);
  if (result.success) {
    const text = raw === parsed ? body : undefined;
    return { value: result.data, raw, receipt: unusable > 0 ? { ...receipt, unusable } : receipt, text };
  }
  const problem =
    raw === undefined
      ? 'The answer is not JSON.'
      : `The answer does not match the API document: ${formatFirstIssue(result.error)}`;
  throw new AdLibraryError({ ...facts, kind: 'unexpected_response', problem, sent: true });
}

/**
 * Returns why an answer shows that the base address is wrong, or undefined. Such an answer is a redirect, or a 404 or 405
 * for a URL with `/v1` twice. Redirects are never followed, because they could send the key to another server.
 */
function detectWrongAddress(status: number, headers: HttpResponse['headers'], url: string): WrongAddress | undefined {
  if ([301, 302, 303, 307, 308].includes(status))
    return { reason: 'redirects', target: readRedirectTarget(headers.get('location'), url) };
  const hasVersionTwice = /\/v1\/v1(?:\/|$)/.test(new URL(url).pathname);
  return hasVersionTwice && (status === 404 || status === 405) ? { reason: 'endsInVersion' } : undefined;
}

const maxTargetLength = 300;

/**
 * Returns the target of a redirect as an absolute URL. User name, query and fragment are left out, because they may
 * contain secrets. The URL parser percent-encodes all characters outside ASCII, so the target is safe to show.
 */
function readRedirectTarget(location: string | null, url: string): string | undefined {
  if (location === null || !URL.canParse(location, url)) return undefined;
  const { protocol, host, pathname } = new URL(location, url);
  const target = `${protocol}//${host}${pathname}`;
  return /^https?:$/.test(protocol) && target.length <= maxTargetLength ? target : undefined;
}

/** Throws the error of an incomplete body. The error includes the charge, because the headers have already stated it. */
function throwBodyError(error: unknown, { signal }: Call, facts: FailureFacts): never {
  const expectedError = knownError(error, signal);
  if (expectedError === undefined) throw error;
  throw new AdLibraryError({ ...facts, ...expectedError.failure }, { cause: error });
}

/**
 * Matches a number with 16 digits or more. JavaScript reads whole numbers of up to 15 digits exactly, and most answers
 * contain no longer number outside a string.
 */
const longNumber = /[-:,[ \n\t]\d{16}/;

/**
 * Matches escapes, quotes, and numbers with 16 digits or more. A match takes as long as reading a hundred characters, so
 * up to 1,000 escapes are one match. More escapes, or a whole string, in one match would take too much memory: the engine
 * remembers a position for each repetition.
 */
const quotesAndNumbers = /(?:\\.){1,1000}|"|(?<![\w.+-])-?\d{16}[\d.eE+-]*/gs;

/** Returns JSON in which long whole numbers are strings, so that they do not lose digits when JavaScript reads them. */
function quoteLongNumbers(json: string): string {
  let isInText = false;
  return json.replace(quotesAndNumbers, (token) => {
    if (token === '"') isInText = !isInText;
    const isWhole = token !== '"' && !/[.eE]/.test(token);
    return !isInText && isWhole && String(Number(token)) !== token ? `"${token}"` : token;
  });
}

function formatFirstIssue({ issues }: z.ZodError): string {
  return z.prettifyError(new z.ZodError(issues.slice(0, 1)));
}

/** Returns the facts in the documented error body, or undefined for any other body. */
function readServiceError(body: unknown): FailureFacts | undefined {
  const parsed = ServiceError.safeParse((body as { error?: unknown } | null | undefined)?.error);
  if (!parsed.success) return undefined;
  const { code, message, requestId, details } = parsed.data;
  return { code, serviceMessage: message, details, ...(requestId !== undefined && { requestId }) };
}

const noErrorBody: FailureFacts = {
  problem: 'The answer has no documented error body: it may not come from the API.',
};

const ServiceError = lenient(ErrorBody.shape.error, []);

/** Reads the charge, the balance and the request id from the headers of an answer. */
function readReceipt(headers: { get(name: string): string | null }): Receipt {
  const chargedText = headers.get('x-service-credits-charged');
  const charged = readCredits(chargedText);
  return {
    charged,
    remaining: readCredits(headers.get('x-service-credits-remaining')),
    cached: false,
    requestId: headers.get('x-service-request-id'),
    ...(charged === null && chargedText !== null && { chargeUnreadable: true }),
  };
}

/** Returns the credits in a header. Header values are strings (document, *Endpoints*). Other forms are ignored. */
function readCredits(header: string | null): number | null {
  return header !== null && /^\d{1,12}(\.\d{1,6})?$/.test(header.trim()) ? Number(header) : null;
}

/** The most bytes of an answer. A page of 100 full ads has about 1 MB, or 3 MB if the ads are very large. */
const maxAnswerBytes = 8 * 1024 * 1024;
/**
 * The most chunks of an answer that are collected before they are joined. A chunk of one byte takes a hundred bytes of
 * memory, because each chunk is an object.
 */
const maxChunks = 1024;

/**
 * Creates a `Fetch` over the network. All callers share one undici agent. It follows no redirects, because they could send
 * the key to another server, and it limits the size of answers. It uses `dispatch`, because only `dispatch` tells when a
 * request is really sent.
 */
export function undiciFetch(): { fetch: Fetch; close(): Promise<void> } {
  let loading: Promise<Agent> | undefined;
  const fetch: Fetch = async (url, { signal, method, headers, body, onSent }) => {
    loading ??= loadAgent();
    const agent = await loading;
    signal.throwIfAborted();
    const { origin, pathname, search } = new URL(url);
    const path = `${pathname}${search}`;
    const options = { origin, path, method: method as Dispatcher.HttpMethod, headers, body: body ?? null };
    const throwExplained = (error: unknown): never => {
      throw signal.aborted ? signal.reason : networkError(error, origin);
    };
    const response = await dispatch(agent, options, { signal, onSent }).catch(throwExplained);
    return { ...response, text: () => response.text().catch(throwExplained) };
  };
  return { fetch, close: async () => (await loading)?.destroy() };
}

/** Loads undici and creates its agent. This happens with the first call, because undici takes longer to load than the rest. */
async function loadAgent(): Promise<Agent> {
  // undici is CommonJS. Only its default export exists both in the bundle and without it.
  const { Agent } = (await import('undici')).default;
  // The signal of a call is its only deadline. The timers of undici are inexact and would abort long answers. The number of
  // connections needs no limit, because the number of calls is limited. With fewer connections than calls, slow calls of
  // one key would delay the calls of other keys.
  return new Agent({ maxResponseSize: maxAnswerBytes, headersTimeout: 0, bodyTimeout: 0 });
}

type RequestEvents = Pick<HttpRequest, 'signal' | 'onSent'>;

/**
 * Sends one request. Resolves with the status and the headers. `text` of the result resolves with the whole body. Rejects
 * immediately if the signal aborts, even if the request is still waiting for a connection.
 */
function dispatch(agent: Agent, options: Dispatcher.DispatchOptions, { signal, onSent }: RequestEvents) {
  return new Promise<HttpResponse>((resolve, reject) => {
    let chunks: Buffer[] = [];
    const joinedChunks: Buffer[] = [];
    let controller: Dispatcher.DispatchController | undefined;
    let finish: (text: string) => void = () => {};
    let fail: (error: unknown) => void = reject;
    const abort = () => {
      controller?.abort(signal.reason);
      fail(signal.reason);
    };
    const removeListener = () => signal.removeEventListener('abort', abort);
    signal.addEventListener('abort', abort);
    agent.dispatch(options, {
      onRequestStart(started) {
        controller = started;
        if (signal.aborted) started.abort(signal.reason);
        else onSent();
      },
      onResponseStart(_, status, headers) {
        // A response with status 1xx only announces the real response.
        if (status < 200) return;
        const body = new Promise<string>((resolveBody, rejectBody) => {
          finish = resolveBody;
          fail = rejectBody;
        });
        // Callers of `text` get the error. If nobody calls `text`, the rejection must not count as unhandled.
        body.catch(() => {});
        resolve({ status, headers: { get: (name) => getFirstValue(headers[name]) }, text: () => body });
      },
      onResponseData(_, chunk) {
        chunks.push(chunk);
        if (chunks.length < maxChunks) return;
        joinedChunks.push(Buffer.concat(chunks));
        chunks = [];
      },
      onResponseEnd() {
        removeListener();
        finish(decodeText(Buffer.concat([...joinedChunks, ...chunks])));
      },
      onResponseError(_, error) {
        removeListener();
        fail(error);
      },
    });
  });
}

const decoder = new TextDecoder();
/** Decodes UTF-8 in two steps. In Node, this is three times as fast for long text with letters outside Latin-1. */
const decodeText = (bytes: Uint8Array) => decoder.decode(bytes, { stream: true }) + decoder.decode();

const getFirstValue = (value: string | string[] | undefined): string | null =>
  (Array.isArray(value) ? value[0] : value) ?? null;

/** Returns the `AdLibraryError` for an error of undici. */
function networkError(error: unknown, origin: string): AdLibraryError {
  const code = findErrorCode(error);
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') {
    const problem = `The answer is larger than ${maxAnswerBytes / 1024 / 1024} MB.`;
    return new AdLibraryError({ kind: 'unexpected_response', problem, tooLarge: true, sent: true });
  }
  if (code === 'HTTPParserError' || code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new AdLibraryError({ kind: 'unexpected_response', problem: 'The answer is not HTTP.', sent: true });
  }
  return new AdLibraryError({ kind: 'network', problem: `${origin}: ${code}.` }, { cause: error });
}

/** Returns the code of an error or of its cause. The message is not used: it may contain URLs and bytes of the answer. */
function findErrorCode(error: unknown): string {
  const { code, name, cause, errors } = (error ?? {}) as Record<'code' | 'name' | 'cause', unknown> & {
    errors?: unknown[];
  };
  if (typeof code === 'string') return code;
  if (name === 'HTTPParserError') return name;
  const innerError = cause ?? errors?.[0];
  return innerError === undefined ? 'unknown' : findErrorCode(innerError);
}
