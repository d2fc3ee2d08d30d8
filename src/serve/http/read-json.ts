import { isJsonContentType, readRequestBody } from '@modelcontextprotocol/server';
import type { Context } from 'hono';
import { batchProblem, batchRevision, withoutNulls } from '../messages.ts';
import { refuse } from './refuse.ts';

/** Arguments of a call are ids and filters: no real call needs a larger body. */
const maxBytes = 1024 * 1024;
/** Maximum nesting of arrays and objects: code that parses or prints them may be recursive. */
const maxDepth = 64;

/** Reads a request's JSON once, within bounds; or answers what is wrong with it. */
export async function readJson(context: Context): Promise<{ value: unknown } | Response> {
  const { req } = context;
  if (!isJsonContentType(req.header('content-type') ?? null)) {
    return refuse(context, 415, 'The body must be application/json.');
  }
  const text = await readText(req.raw).catch(() => '');
  if (text === undefined) {
    // The rest of the body is still on its way: only a closed connection ends it.
    context.header('Connection', 'close');
    return refuse(context, 413, `A request may hold ${maxBytes / 1024} KB at most.`);
  }
  if (nestsDeeper(text, maxDepth)) return refuse(context, 400, `JSON may nest ${maxDepth} levels at most.`, -32_600);
  const body = parsed(text);
  if (body === undefined) return refuse(context, 400, 'The body is not JSON.', -32_700);
  if (!Array.isArray(body)) return { value: withoutNulls(body) };
  // A request without the header is of the last revision that had no such header (specification, *Transports*).
  const problem = batchProblem(body, req.header('mcp-protocol-version') ?? batchRevision);
  return problem ? refuse(context, 400, problem, -32_600) : { value: body.map(withoutNulls) };
}

async function readText(request: Request): Promise<string | undefined> {
  const { headers } = request;
  // The HTTP parser enforces a stated length, so such a body is read without a stream in between.
  const stated = headers.has('transfer-encoding') ? undefined : Number(headers.get('content-length') ?? 0);
  if (stated !== undefined) return stated > maxBytes ? undefined : request.text();
  const read = await readRequestBody(request, maxBytes);
  return read.tooLarge ? undefined : read.text;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function nestsDeeper(text: string, max: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = endOfString(text, at);
    else if (character === '[' || character === '{') depth++;
    else if (character === ']' || character === '}') depth--;
    if (depth > max) return true;
  }
  return false;
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '"') return at;
  }
  return text.length;
}
