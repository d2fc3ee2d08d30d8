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

/** The only way out: undici on the network, or the handler of the local library. */
export type Fetch = (url: string, init: HttpRequest) => Promise<HttpResponse>;

export interface HttpRequest {
  method: string;
  headers: Record<string, string>;
  body?: string;
  signal: AbortSignal;
  /** Must be called when the first byte leaves: from then on the service may carry out the call. */
  onSent(): void;
}

/** The part of a web-standard response that is used. */
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
  /** Masks the key in the text of a body, so that nothing that is stored holds the key. */
  keyMasker(key: string): <Value>(value: Value, text?: string) => Value;
}

const attempts = 3;
/** Maximum wait before the second attempt, in milliseconds; it doubles with each further one. */
const base = 300;

/**
 * Sends a call and reads its answer. Throws `AdLibraryError` for anything but a documented 200.
 *
 * Repeats failed calls within their deadline, if that is safe: calls that never left, calls that a gateway rejected
 * (502, 503, 504), and calls that cost nothing to repeat. A paid call is only repeated if nothing was sent, or after a
 * 503 that was not charged: it states a charge of 0, or none. Any other failed call may have been charged. 402 and 429
 * are not repeated, because they last: 429 is a credit window of an hour or a day.
 */
export function httpService(options: ServiceOptions): Send {
  return async (call) => {
    let unsafe = 0;
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await request(call, options);
        return unsafe > 0 ? { ...answer, repeated: true } : answer;
      } catch (thrown) {
        const error = unsafe > 0 ? withEarlier(thrown) : thrown;
        const retry = attempt < attempts ? retryOf(thrown, call, unsafe) : 'no';
        if (retry === 'no' || call.transit?.isWanted?.() === false) throw error;
        if (retry === 'unsafe') {
          unsafe++;
          if (call.transit) call.transit.mayBeDone = true;
        }
        // Exponential backoff with full jitter, so that calls that failed together are not repeated together.
        const pause = options.random() * base * 2 ** (attempt - 1);
        await wait(pause, undefined, { signal: call.signal }).catch(() => {
          throw error;
        });
      }
    }
  };
}

const withEarlier = (error: unknown): unknown =>
  error instanceof AdLibraryError
    ? new AdLibraryError({ ...error.failure, sent: true, repeated: true }, { cause: error })
    : error;

/** Whether to repeat a call; `unsafe` if the failed attempt may have been carried out. */
function retryOf(error: unknown, call: Call, unsafe: number): 'no' | 'safe' | 'unsafe' {
  const { operation, signal, paid = operation.gated } = call;
  if (signal.aborted || !(error instanceof AdLibraryError)) return 'no';
  const { kind, status, sent, charged, chargeUnreadable } = error.failure;
  if (kind === 'network' && sent === false) return 'safe';
  if (charged || chargeUnreadable) return 'no';
  if (paid) return status === 503 ? 'safe' : 'no';
  const isRejected = status === 502 || status === 503 || status === 504;
  if (isRejected && !operation.writes) return 'safe';
  return (isRejected || kind === 'network') && unsafe < operation.maxUnsafeRetries ? 'unsafe' : 'no';
}

async function request(call: Call, { fetch, baseUrl, userAgent, keyMasker }: ServiceOptions): Promise<Answer> {
  const { transit = { sent: false }, signal } = call;
  const url = urlOf(call, baseUrl);
  const headers: Record<string, string> = {
    authorization: `Bearer ${call.apiKey}`,
    accept: 'application/json',
    'user-agent': userAgent,
  };
  const body = call.body && JSON.stringify(call.body);
  if (body !== undefined) headers['content-type'] = 'application/json';
  const onSent = () => {
    transit.sent = true;
  };
  const init = { method: call.operation.method, headers, signal, onSent, ...(body !== undefined && { body }) };
  try {
    const response = await fetch(url, init);
    return await read(call, url, response, keyMasker(call.apiKey));
  } catch (error) {
    const { sent } = transit;
    transit.sent = false;
    throw withSent(error, { signal, sent });
  }
}

function withSent(error: unknown, { signal, sent }: { signal: AbortSignal; sent: boolean }): unknown {
  if (error instanceof AdLibraryError) {
    const { failure } = error;
    if (sent || failure.kind !== 'network') return error;
    return new AdLibraryError({ ...failure, sent: false }, { cause: error });
  }
  return signal.aborted ? abortedError(signal, sent) : error;
}

async function read(
  call: Call,
  url: string,
  response: HttpResponse,
  withoutKey: ReturnType<ServiceOptions['keyMasker']>,
): Promise<Answer> {
  const { status, headers } = response;
  const stated = receiptIn(headers);
  const receipt = { ...stated, requestId: stated.requestId && withoutKey(stated.requestId) };
  const { charged, requestId, chargeUnreadable = false } = receipt;
  const about = { status, requestId: requestId ?? undefined, charged: charged ?? undefined, chargeUnreadable };
  const body = await response.text().catch((error) => brokenOff(error, call, about));
  const parsed = parseJson(body);
  const plain = withoutKey(parsed, body);
  const isShortened = plain !== undefined && longNumber.test(body);
  const exact = isShortened ? withoutKey(JSON.parse(withAllDigits(body)), body) : plain;
  if (status !== 200) {
    const failed = { ...about, ...(serviceError(exact) ?? noErrorBody), sent: true };
    const wrongAddress = wrongAddressOf(status, headers, url);
    throw new AdLibraryError(
      wrongAddress
        ? { ...failed, kind: 'unexpected_response', wrongAddress }
        : { ...failed, kind: kindOfStatus(status) },
    );
  }
  const { checked, raw, unusable } = withoutUnusableItems(call, plain, exact);
  const read = responseSchemas[call.operation.name].safeParse(checked);
  if (read.success) {
    const text = raw === parsed ? body : undefined;
    return { value: read.data, raw, receipt: unusable > 0 ? { ...receipt, unusable } : receipt, text };
  }
  const problem =
    raw === undefined
      ? 'The answer is not JSON.'
      : `The answer does not match the API document: ${firstOf(read.error)}`;
  throw new AdLibraryError({ ...about, kind: 'unexpected_response', problem, sent: true });
}

/**
 * Recognizes an answer that shows a wrong base address: a redirect, which is never followed because it could carry the
 * key elsewhere, or a 404 or 405 for an address with `/v1` twice.
 */
function wrongAddressOf(status: number, headers: HttpResponse['headers'], url: string): WrongAddress | undefined {
  if ([301, 302, 303, 307, 308].includes(status))
    return { reason: 'redirects', target: redirectTargetOf(headers.get('location'), url) };
  const hasVersionTwice = /\/v1\/v1(?:\/|$)/.test(new URL(url).pathname);
  return hasVersionTwice && (status === 404 || status === 405) ? { reason: 'endsInVersion' } : undefined;
}

const maxTargetLength = 300;

/**
 * The target of a redirect as an absolute address, without user name, query and fragment, which may hold secrets. The
 * URL parser percent-encodes everything that is not plain ASCII.
 */
function redirectTargetOf(location: string | null, url: string): string | undefined {
  if (location === null || !URL.canParse(location, url)) return undefined;
  const { protocol, host, pathname } = new URL(location, url);
  const target = `${protocol}//${host}${pathname}`;
  return /^https?:$/.test(protocol) && target.length <= maxTargetLength ? target : undefined;
}

/** An answer that broke off in its body: the charge stated in its headers still applies. */
function brokenOff(error: unknown, { signal }: Call, about: FailureFacts): never {
  const expectedError = knownError(error, signal);
  if (expectedError === undefined) throw error;
  throw new AdLibraryError({ ...about, ...expectedError.failure }, { cause: error });
}

/** JavaScript reads whole numbers of up to 15 digits exactly. Most answers have no longer one outside a string. */
const longNumber = /[-:,[ \n\t]\d{16}/;

/**
 * Quotes, and numbers of 16 digits or more. Many escapes are matched at once, because each match takes as long as a
 * hundred characters; but not all of them, nor a string as a whole, because the engine remembers a position for each.
 */
const quotesAndNumbers = /(?:\\.){1,1000}|"|(?<![\w.+-])-?\d{16}[\d.eE+-]*/gs;

/** JSON in which whole numbers that JavaScript cannot read exactly are texts, so that they keep their digits. */
function withAllDigits(json: string): string {
  let isInText = false;
  return json.replace(quotesAndNumbers, (token) => {
    if (token === '"') isInText = !isInText;
    const isWhole = token !== '"' && !/[.eE]/.test(token);
    return !isInText && isWhole && String(Number(token)) !== token ? `"${token}"` : token;
  });
}

function firstOf({ issues }: z.ZodError): string {
  return z.prettifyError(new z.ZodError(issues.slice(0, 1)));
}

function serviceError(body: unknown): FailureFacts | undefined {
  const parsed = ServiceError.safeParse((body as { error?: unknown } | null | undefined)?.error);
  if (!parsed.success) return undefined;
  const { code, message, requestId, details } = parsed.data;
  return { code, serviceMessage: message, details, ...(requestId !== undefined && { requestId }) };
}

const noErrorBody: FailureFacts = {
  problem: 'The answer has no documented error body: it may not come from the API.',
};

const ServiceError = lenient(ErrorBody.shape.error, []);

function receiptIn(headers: { get(name: string): string | null }): Receipt {
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

/** Header values are strings (document, *Endpoints*); those of any other form are ignored. */
function readCredits(header: string | null): number | null {
  return header !== null && /^\d{1,12}(\.\d{1,6})?$/.test(header.trim()) ? Number(header) : null;
}

/** A page of 100 full ads has about 1 MB, and 3 MB if they are very large. */
const maxAnswerBytes = 8 * 1024 * 1024;
/** Parts of an answer that are held before they are joined: a part of one byte takes a hundred bytes as an object. */
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
    const path = `${pathname}${search}`;
    const options = { origin, path, method: method as Dispatcher.HttpMethod, headers, body: body ?? null };
    const explain = (error: unknown): never => {
      throw signal.aborted ? signal.reason : networkError(error, origin);
    };
    const response = await dispatch(agent, options, { signal, onSent }).catch(explain);
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

type RequestEvents = Pick<HttpRequest, 'signal' | 'onSent'>;

/**
 * Sends one request. Resolves with the head of the answer, whose `text` resolves with the whole body. Rejects at once
 * if the signal aborts, even while the request still waits for a connection.
 */
function dispatch(agent: Agent, options: Dispatcher.DispatchOptions, { signal, onSent }: RequestEvents) {
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
    return new AdLibraryError({ kind: 'unexpected_response', problem, tooLarge: true, sent: true });
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
