import * as z from 'zod';
import { AdLibraryError, type Failure, kindOfStatus } from './errors.ts';
import { lenient } from './lenient.ts';
import { ErrorBody } from './schemas.ts';
import type { Answer, Call, Receipt, Send } from './send.ts';
import { addressOf } from './url.ts';

/** The one seam to the world. Web-standard `fetch` fits it, and so does the local library's handler. */
export type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; body?: string; signal: AbortSignal },
) => Promise<Response>;

interface Response {
  status: number;
  headers: { get(name: string): string | null };
  text(): Promise<string>;
}

/** Puts a call on the wire and reads its answer. Throws `AdLibraryError` for everything but a documented 200. */
export function sendHttp(fetch: Fetch, options: { baseUrl: string; userAgent: string }): Send {
  return async (call) => {
    const url = addressOf(call, options.baseUrl);
    const headers: Record<string, string> = {
      authorization: `Bearer ${call.apiKey}`,
      accept: 'application/json',
      'user-agent': options.userAgent,
    };
    const body = call.body && JSON.stringify(call.body);
    if (body !== undefined) headers['content-type'] = 'application/json';
    const init = { method: call.operation.method, headers, signal: call.signal };
    const response = await fetch(url, body === undefined ? init : { ...init, body });
    return read(call, response);
  };
}

async function read(call: Call, response: Response): Promise<Answer> {
  const { status, headers } = response;
  const receipt: Receipt = {
    charged: count(headers.get('x-service-credits-charged')),
    remaining: count(headers.get('x-service-credits-remaining')),
    cached: false,
    requestId: headers.get('x-service-request-id'),
  };
  const about = { status, requestId: receipt.requestId ?? undefined, charged: receipt.charged ?? undefined };
  const body = await response.text().catch((error) => brokenOff(error, about));
  const raw = parseJson(body);
  if (status !== 200) {
    throw new AdLibraryError({
      ...about,
      ...(serviceError(raw) ?? noErrorBody),
      kind: kindOfStatus(status),
      sent: true,
    });
  }
  const parsed = call.operation.answer.safeParse(raw);
  if (parsed.success) return { value: parsed.data, raw, receipt, size: body.length };
  const problem =
    raw === undefined
      ? 'The answer is not JSON.'
      : `The answer is not that of ${call.operation.name}: ${firstOf(parsed.error)}`;
  throw new AdLibraryError({ ...about, kind: 'unexpected_response', problem, sent: true });
}

/** An answer that broke off in its body: what its head said of the charge still holds. */
function brokenOff(error: unknown, about: Partial<Failure>): never {
  if (!(error instanceof AdLibraryError)) throw error;
  throw new AdLibraryError({ ...about, ...error.failure }, { cause: error });
}

/** The header values are strings (document, *Endpoints*); of any other form, or absurdly long, they say nothing. */
function count(header: string | null): number | null {
  return header !== null && /^\d{1,12}(\.\d{1,6})?$/.test(header.trim()) ? Number(header) : null;
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

/** The error body of the document's *Errors*, as far as it is one. */
function serviceError(body: unknown): Partial<Failure> | undefined {
  const parsed = ServiceError.safeParse((body as { error?: unknown } | null | undefined)?.error);
  if (!parsed.success) return undefined;
  const { code, message, requestId, details } = parsed.data;
  return { code, serviceMessage: message, details, ...(requestId !== undefined && { requestId }) };
}

const noErrorBody: Partial<Failure> = {
  problem: 'The answer has no error body as the API documents it: it may come from something else than the API.',
};

const ServiceError = lenient(ErrorBody.shape.error, []);
