import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memoryCreditLedger } from '../../../src/state/memory-credit-ledger.ts';
import { RedisCreditLedger } from '../../../src/state/redis/redis-credit-ledger.ts';
import { Waiters } from '../../../src/state/redis/waiters.ts';
import { describeWithRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { ledgerSuite } from '../ledger-suite.ts';
import { joinRedis } from './fixture.ts';

describe('the ledger of one process', () => {
  ledgerSuite(async () => memoryCreditLedger({ now: Date.now }));
});

describeWithRedis('the ledger of all replicas', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.close());

  const open = async () => {
    const { redis } = await joinRedis(server);
    return new RedisCreditLedger(redis, new Waiters(redis.connection, redis.channelOf('changes')));
  };

  describe('alone', () => {
    ledgerSuite(async () => {
      server.cli('FLUSHALL');
      return open();
    });
  });

  test('the server works', async () => expect(server.cli('PING')).toBe('PONG'));
});
