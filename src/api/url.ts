import type { ServiceRequest } from './call.ts';
import { createInvalidRequestError } from './errors.ts';

/** The maximum length of an id in characters. The ids in the API document are UUIDs or short texts. */
export const maxIdLength = 300;

/**
 * Builds the URL of a request, and checks the ids in the URL.
 *
 * An id such as `..` is rejected. `encodeURIComponent` does not encode dots, and URL parsers resolve such segments, so
 * the request would reach another endpoint. An id such as `a/../account` could do the same behind a proxy that decodes
 * slashes.
 * @throws AdLibraryError `invalid_request` if an id is invalid
 */
export function buildUrl(request: Pick<ServiceRequest, 'operation' | 'path' | 'query'>, baseUrl: string): string {
  const path = request.operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeId(name, request.path[name] ?? ''),
  );
  const query = new URLSearchParams(
    Object.entries(request.query).map(([key, value]): [string, string] => [key, String(value)]),
  ).toString();
  return `${baseUrl.replace(/(?<!\/)\/+$/, '')}${path}${query && `?${query}`}`;
}

const dotSegmentPattern = /(?:^|[\\/])\.{1,2}(?:[\\/]|$)/;

/**
 * Returns true if an id can safely be part of a URL path. Returns false for an empty id, a very long id, or an id such
 * as `..`.
 */
export const isSafePathId = (id: string): boolean =>
  id !== '' && id.length <= maxIdLength && !dotSegmentPattern.test(id) && id.isWellFormed();

function encodeId(name: string, id: string): string {
  if (!isSafePathId(id)) {
    throw createInvalidRequestError(
      `${name} is not an id: it must be 1 to ${maxIdLength} characters, copied from an earlier result.`,
    );
  }
  return encodeURIComponent(id);
}
