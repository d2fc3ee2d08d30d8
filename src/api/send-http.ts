import * as z from 'zod';
import { abortedError, knownError } from './abort.ts';
import { AdLibraryError, type Failure, kindOfStatus } from './errors.ts';
import { ErrorBody } from './resource-schemas.ts';
import { lenient, responseSchemas } from './response-schemas.ts';
import type { Answer, Call, Receipt, Send } from './send.ts';
import { urlOf } from './send.ts';

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

/** Sends a call and reads its answer. Throws `AdLibraryError` for anything but a documented 200. */
export function sendHttp(fetch: Fetch, options: { baseUrl: string; userAgent: string }): Send {
  return async (call) => {
    const { transit = { sent: false }, signal } = call;
    const url = urlOf(call, options.baseUrl);
    const headers: Record<string, string> = {
      authorization: `Bearer ${call.apiKey}`,
      accept: 'application/json',
      'user-agent': options.userAgent,
    };
    const body = call.body && JSON.stringify(call.body);
    if (body !== undefined) headers['content-type'] = 'application/json';
    const onSent = () => {
      transit.sent = true;
    };
    const request = { method: call.operation.method, headers, signal, onSent };
    try {
      return await read(call, await fetch(url, body === undefined ? request : { ...request, body }));
    } catch (error) {
      const { sent } = transit;
      transit.sent = false;
      throw withSent(error, { signal, sent });
    }
  };
}

/** Marks a failure before the first byte left as not sent. */
function withSent(error: unknown, { signal, sent }: { signal: AbortSignal; sent: boolean }): unknown {
  if (error instanceof AdLibraryError) {
    const { failure } = error;
    if (sent || failure.kind !== 'network') return error;
    return new AdLibraryError({ ...failure, sent: false }, { cause: error });
  }
  return signal.aborted ? abortedError(signal, sent) : error;
}

async function read(call: Call, response: HttpResponse): Promise<Answer> {
  const { status, headers } = response;
  const receipt = receiptIn(headers);
  const { charged, requestId, chargeUnreadable = false } = receipt;
  const about = { status, requestId: requestId ?? undefined, charged: charged ?? undefined, chargeUnreadable };
  const body = await response.text().catch((error) => brokenOff(error, call, about));
  const raw = parseJson(body);
  if (status !== 200) {
    throw new AdLibraryError({
      ...about,
      ...(serviceError(raw) ?? noErrorBody),
      kind: kindOfStatus(status),
      sent: true,
    });
  }
  const parsed = responseSchemas[call.operation.name].safeParse(raw);
  if (parsed.success) return { value: parsed.data, raw, receipt };
  const problem =
    raw === undefined
      ? 'The answer is not JSON.'
      : `The answer does not match the API document: ${firstOf(parsed.error)}`;
  throw new AdLibraryError({ ...about, kind: 'unexpected_response', problem, sent: true });
}

/** An answer that broke off in its body: the charge stated in its headers still applies. */
function brokenOff(error: unknown, { signal }: Call, about: Partial<Failure>): never {
  const known = knownError(error, signal);
  if (known === undefined) throw error;
  throw new AdLibraryError({ ...about, ...known.failure }, { cause: error });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function firstOf({ issues }: z.ZodError): string {
  return z.prettifyError(new z.ZodError(issues.slice(0, 1)));
}

/** Reads the error body (document, *Errors*), if there is one. */
function serviceError(body: unknown): Partial<Failure> | undefined {
  const parsed = ServiceError.safeParse((body as { error?: unknown } | null | undefined)?.error);
  if (!parsed.success) return undefined;
  const { code, message, requestId, details } = parsed.data;
  return { code, serviceMessage: message, details, ...(requestId !== undefined && { requestId }) };
}

const noErrorBody: Partial<Failure> = {
  problem: 'The answer has no documented error body: it may not come from the API.',
};

const ServiceError = lenient(ErrorBody.shape.error, []);

/** Reads the request id and the credit headers of an answer (document, *Endpoints*). */
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
