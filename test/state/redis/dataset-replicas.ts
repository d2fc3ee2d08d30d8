import { randomBytes } from 'node:crypto';
import type { Dataset } from '../../../src/state/dataset.ts';
import { RedisDatasets, type RedisDatasetsLimits } from '../../../src/state/redis/redis-datasets.ts';
import type { RedisServer } from '../../support/redis-server.ts';
import { openReplicaRedis, type RedisOfReplica, type RedisOptions } from './open-replica.ts';

export interface Replica extends RedisOfReplica {
  datasets: RedisDatasets;
  dataset(key?: string): Promise<Dataset>;
}

export interface ReplicaOptions extends RedisOptions {
  limits?: RedisDatasetsLimits;
}

/** One more replica that shares datasets. */
export async function openReplica(server: RedisServer, { limits, ...options }: ReplicaOptions = {}): Promise<Replica> {
  const opened = await openReplicaRedis(server, options);
  const datasets = new RedisDatasets({ ...opened, ...(limits && { limits }) });
  return { ...opened, datasets, dataset: (key = 'a') => datasets.of({ tenantId: key }) };
}

export const idsIn = async (dataset: Dataset) => (await dataset.contents()).ads.map(({ id }) => id).sort();

export const step = (adIds: string[], fields: object = {}) => ({
  ...{ id: 'g', question: 'q', filters: {}, collectionId: null, parts: [], found: 2, ended: true, cursor: null },
  ...{ startedAt: 1, gatheredAt: 2, adIds, ...fields },
});

/** Text that cannot be compressed. */
export const noise = (bytes: number) => randomBytes(bytes / 2).toString('hex');

/** The lengths of the lists of all datasets whose keys end so. */
export function partsOf(redis: RedisServer, list: 'log' | 'base'): number {
  const keys = redis.cli('--scan', '--pattern', `*:dataset:${list}`).split('\n').filter(Boolean);
  return keys.reduce((sum, key) => sum + Number(redis.cli('LLEN', key)), 0);
}
