import { createHash } from 'node:crypto';
import type { RandomSource } from '../service/accounts.ts';
import { computeUuidFromName } from '../service/request.ts';

/**
 * Creates a source of ids and secrets that returns the same sequence in every process.
 * @param name the name of the sequence; each name produces a different sequence
 */
export function createDeterministicRandom(name: string): RandomSource {
  let inputCount = 0;
  const createNextInput = () => `${name} ${inputCount++}`;
  return {
    generateBytes: (length) => createHash('shake256', { outputLength: length }).update(createNextInput()).digest(),
    generateUuid: () => computeUuidFromName(createNextInput()),
  };
}
