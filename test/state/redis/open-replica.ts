import { onTestFinished } from 'vitest';
import { openRedis, type Redis } from '../../../src/state/redis/open-redis.ts';
import type { RedisServer } from '../../support/redis-server.ts';

/** What one replica has of Redis. */
export interface RedisOfReplica {
  redis: Redis;
  warnings: string[];
  warn(message: string): void;
}

export interface RedisOptions {
  secret?: string;
  baseUrl?: string;
}

/** Connects as one more replica does. */
export async function openReplicaRedis({ port }: RedisServer, options: RedisOptions = {}): Promise<RedisOfReplica> {
  const { secret = 'a secret of the tests, long enough', baseUrl = 'https://api.example.com' } = options;
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const address = { tls: false, hosts: [{ host: '127.0.0.1', port }] };
  const redis = await openRedis({ address, secret, baseUrl, log: { warn, info: () => {} }, now: Date.now });
  onTestFinished(() => redis.connection.close());
  return { redis, warnings, warn };
}
