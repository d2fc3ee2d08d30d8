import type { ServiceRequest } from './call.ts';
import { invalidRequest } from './errors.ts';

/**
 * The maximum length of an id in URLs and in storage, in characters. The ids in the API document are UUIDs or short
 * strings.
 */
export const maxIdLength = 300;

/**
 * Builds the URL of a request. All request URLs are built here, so that ids are always checked.
 *
 * Ids with a segment that consists of one or two dots are rejected. `encodeURIComponent` does not encode dots, and URL
 * parsers resolve such segments, so the request would reach another endpoint. The same could happen with an id such as
 * `a/../account` behind a proxy that decodes slashes.
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
 * Returns true if an id can safely be part of a URL path. Ids such as `..`, empty ids and very long ids are not safe.
 */
export const isPathId = (id: string): boolean =>
  id !== '' && id.length <= maxIdLength && !dotSegmentPattern.test(id) && id.isWellFormed();

function encodeId(name: string, id: string): string {
  if (!isPathId(id)) {
    throw invalidRequest(
      `${name} is not an id: it must be 1 to ${maxIdLength} characters, copied from an earlier result.`,
    );
  }
  return encodeURIComponent(id);
}
