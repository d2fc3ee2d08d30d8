import { readRequestBody } from '@modelcontextprotocol/server';

export interface BodyBounds {
  bytes: number;
  /** Levels of arrays and objects inside each other: who parses or prints them may do so recursively. */
  depth: number;
}

export type JsonBody = { value: unknown } | { refused: 'too large' | 'too deep' | 'not JSON' };

/** Reads a request's JSON once, within bounds. A body that stops halfway is not JSON. */
export async function readJson(request: Request, { bytes, depth }: BodyBounds): Promise<JsonBody> {
  try {
    const text = await readText(request, bytes);
    if (text === undefined) return { refused: 'too large' };
    return nestsDeeper(text, depth) ? { refused: 'too deep' } : { value: JSON.parse(text) };
  } catch {
    return { refused: 'not JSON' };
  }
}

async function readText(request: Request, bytes: number): Promise<string | undefined> {
  const { headers } = request;
  // A stated length is held to by the HTTP parser, and such a body is read without a stream in between.
  const stated = headers.has('transfer-encoding') ? undefined : Number(headers.get('content-length') ?? 0);
  if (stated !== undefined) return stated > bytes ? undefined : request.text();
  const read = await readRequestBody(request, bytes);
  return read.tooLarge ? undefined : read.text;
}

function nestsDeeper(text: string, most: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = endOfString(text, at);
    else if (character === '[' || character === '{') depth++;
    else if (character === ']' || character === '}') depth--;
    if (depth > most) return true;
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
