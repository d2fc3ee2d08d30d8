import { AdLibraryError } from './errors.ts';
import type { Call } from './send.ts';

/** Most characters of an id that goes into a path; the ids of the document are UUIDs and short strings. */
const maxIdLength = 300;

/**
 * The only place that makes addresses. `encodeURIComponent` leaves `.` alone, and a URL parser takes a segment of
 * one or two dots (percent-encoded or not) as a step in the tree: such an id would reach another endpoint. So would one
 * with such a step inside, behind a proxy that decodes slashes.
 */
export function urlOf(call: Pick<Call, 'operation' | 'path' | 'query'>, baseUrl: string): string {
  const path = call.operation.path.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, call.path[name] ?? ''));
  const query = new URLSearchParams(
    Object.entries(call.query).map(([key, value]): [string, string] => [key, String(value)]),
  ).toString();
  return `${baseUrl.replace(/(?<!\/)\/+$/, '')}${path}${query && `?${query}`}`;
}

const stepInTree = /(?:^|[\\/])\.{1,2}(?:[\\/]|$)/;

function segment(name: string, id: string): string {
  if (id === '' || id.length > maxIdLength || stepInTree.test(id) || !id.isWellFormed()) {
    throw new AdLibraryError({
      kind: 'invalid_request',
      problem: `${name} is not an id: it must be 1 to ${maxIdLength} characters as an earlier result gave it.`,
      sent: false,
    });
  }
  return encodeURIComponent(id);
}
