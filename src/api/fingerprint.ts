import type { OperationName } from './operations.ts';
import type { Call } from './send.ts';

/** Equal for equal calls, whatever the order of their arguments and whatever their API key. */
export const fingerprint = ({ operation, path, query, body }: Pick<Call, 'operation' | 'path' | 'query' | 'body'>) =>
  canonical([operation.name, path, query, body ?? null]);

/** The common start of the fingerprints of an operation's calls, or of those with these path parameters. */
export const fingerprintStart = (name: OperationName, path?: Call['path']): string =>
  `${canonical(path ? [name, path] : [name]).slice(0, -1)},`;

/** JSON with the keys of every object sorted. */
export const canonical = (value: unknown): string => JSON.stringify(value, sorted);

function sorted(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
