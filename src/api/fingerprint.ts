import type { OperationName } from './operations.ts';
import type { Call } from './send.ts';

/** Equal for equal calls, in whatever order their arguments came; says nothing of the key they are made with. */
export const fingerprint = ({ operation, path, query, body }: Pick<Call, 'operation' | 'path' | 'query' | 'body'>) =>
  canonical([operation.name, path, query, body ?? null]);

/** How the fingerprints of all calls of an operation begin, or of those with these path parameters. */
export const fingerprintStart = (name: OperationName, path?: Call['path']): string =>
  `${canonical(path ? [name, path] : [name]).slice(0, -1)},`;

/** JSON with the keys of every object in order. */
export const canonical = (value: unknown): string => JSON.stringify(value, sorted);

function sorted(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
