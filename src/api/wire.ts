import { z } from 'zod';
import { addressOf } from './address.ts';
import { AdLibraryError, type Failure, kindOfStatus } from './errors.ts';
import { ErrorBody } from './schemas.ts';
import type { Answer, Call, Receipt, Send } from './send.ts';

/** The one seam to the world. Web-standard `fetch` fits it, and so does the local library's handler. */
export type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; body?: string; signal: AbortSignal },
) => Promise<{ status: number; headers: { get(name: string): string | null }; text(): Promise<string> }>;

/** Puts a call on the wire and reads its answer. Throws `AdLibraryError` for everything but a documented 200. */
export function sendOver(fetch: Fetch, options: { baseUrl: string; userAgent: string }): Send {
  return async (call) => {
    const url = addressOf(call, options.baseUrl);
    const headers: Record<string, string> = {
      authorization: `Bearer ${call.key}`,
      accept: 'application/json',
      'user-agent': options.userAgent,
    };
    const body = call.body && JSON.stringify(call.body);
    if (body !== undefined) headers['content-type'] = 'application/json';
    const init = { method: call.operation.method, headers, signal: call.signal };
    const response = await fetch(url, body === undefined ? init : { ...init, body });
    return read(call, response.status, response.headers, await response.text());
  };
}

function read(call: Call, status: number, headers: { get(name: string): string | null }, text: string): Answer {
  const receipt: Receipt = {
    charged: count(headers.get('x-service-credits-charged')),
    remaining: count(headers.get('x-service-credits-remaining')),
    cached: false,
    requestId: headers.get('x-service-request-id'),
  };
  const about = {
    status,
    requestId: receipt.requestId ?? undefined,
    charged: receipt.charged ?? undefined,
    sent: true,
  };
  const raw = parseJson(text);
  if (status !== 200) throw new AdLibraryError({ ...about, ...serviceError(raw), kind: kindOfStatus(status) });

  const parsed = call.operation.answer.safeParse(raw);
  if (parsed.success) return { value: parsed.data, raw, receipt, size: text.length };
  const problem =
    raw === undefined
      ? 'The answer is not JSON.'
      : `The answer is not a ${call.operation.name} answer: ${z.prettifyError(parsed.error)}`;
  throw new AdLibraryError({ ...about, kind: 'unexpected_response', problem });
}

/** The header values are strings (document, *Endpoints*). */
function count(header: string | null): number | null {
  return header !== null && /^\d+(\.\d+)?$/.test(header.trim()) ? Number(header) : null;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function serviceError(body: unknown): Partial<Failure> {
  const parsed = ErrorBody.shape.error.partial().safeParse((body as { error?: unknown } | undefined)?.error);
  if (!parsed.success) return {};
  const { code, message, requestId, details } = parsed.data;
  return { code, serviceMessage: message, details, ...(requestId !== undefined && { requestId }) };
}
