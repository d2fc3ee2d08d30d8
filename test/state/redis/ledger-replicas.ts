import { onTestFinished } from 'vitest';
import { type LedgerOptions, RedisCreditLedger } from '../../../src/state/redis/redis-credit-ledger.ts';
import { Waiters } from '../../../src/state/redis/waiters.ts';
import { until } from '../../support/http.ts';
import { startRedis } from '../../support/redis-server.ts';
import { joinRedis } from './fixture.ts';

/** The ledger of one more replica. */
export async function openLedger(server: { port: number }, options?: LedgerOptions) {
  const { redis, logged } = await joinRedis(server);
  const waiters = new Waiters(redis.connection, redis.channelOf('changes'));
  return { ledger: new RedisCreditLedger(redis, waiters, options), redis, logged };
}

/** Replicas with a server of their own. */
export async function openLedgers(
  count: number,
  { redis = [], ...options }: LedgerOptions & { redis?: string[] } = {},
) {
  const server = await startRedis(redis);
  onTestFinished(server.close);
  const join = () => openLedger(server, options);
  const replicas = await Promise.all(Array.from({ length: count }, join));
  const areUp = () => until(() => replicas.every(({ redis }) => redis.connection.isUp()));
  return { server, replicas, join, areUp, ledgers: replicas.map(({ ledger }) => ledger) };
}
