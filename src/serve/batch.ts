import { messagesIn, requestsIn } from './messages.ts';

/** The only revision that has batches: the ones before and after it send one message at a time. */
export const batchRevision = '2025-03-26';

/** A batch is one request, but makes many calls. */
export const maxBatch = 10;

/** What is wrong with a body of several messages under the revision of its request. */
export function batchProblem(messages: readonly unknown[], revision: string | undefined): string | undefined {
  if (revision !== batchRevision) return `Only revision ${batchRevision} has batches: send one message at a time.`;
  if (messages.length === 0 || messages.length > maxBatch) return `A batch holds 1 to ${maxBatch} messages.`;
  // The client could not tell two answers with the same id apart.
  const ids = requestsIn(messagesIn(messages)).map(({ id }) => id);
  return new Set(ids).size < ids.length ? 'Each request of a batch needs an id of its own.' : undefined;
}
