import type { Call } from './call.ts';
import { invalidRequest } from './errors.ts';

/** Characters of an id, in a path and wherever ids are stored. Those of the document are UUIDs and short strings. */
export const maxIdLength = 300;

/**
 * Builds all addresses. `encodeURIComponent` does not encode `.`, and URL parsers resolve a segment of one or two dots
 * (percent-encoded or not): such an id would reach another endpoint. So would an id that contains such a segment,
 * behind a proxy that decodes slashes.
 */
export function urlOf(call: Pick<Call, 'operation' | 'path' | 'query'>, baseUrl: string): string {
  const path = call.operation.path.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, call.path[name] ?? ''));
  const query = new URLSearchParams(
    Object.entries(call.query).map(([key, value]): [string, string] => [key, String(value)]),
  ).toString();
  return `${baseUrl.replace(/(?<!\/)\/+$/, '')}${path}${query && `?${query}`}`;
}

const dotSegment = /(?:^|[\\/])\.{1,2}(?:[\\/]|$)/;

export const isPathId = (id: string): boolean =>
  id !== '' && id.length <= maxIdLength && !dotSegment.test(id) && id.isWellFormed();

function segment(name: string, id: string): string {
  if (!isPathId(id)) {
    throw invalidRequest(
      `${name} is not an id: it must be 1 to ${maxIdLength} characters, copied from an earlier result.`,
    );
  }
  return encodeURIComponent(id);
}
