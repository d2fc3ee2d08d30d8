import { createHash } from 'node:crypto';
import type { RandomSource } from '../service/accounts.ts';
import { uuidFromName } from '../service/request.ts';

/** Returns a source of ids and secrets that are the same each time. Other names give others. */
export function createDeterministicRandom(name: string): RandomSource {
  let drawn = 0;
  const next = () => `${name} ${drawn++}`;
  return {
    bytes: (count) => createHash('shake256', { outputLength: count }).update(next()).digest(),
    uuid: () => uuidFromName(next()),
  };
}
