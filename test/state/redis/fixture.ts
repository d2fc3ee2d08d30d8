import { onTestFinished } from 'vitest';
import { openRedis, type Redis } from '../../../src/state/redis/open-redis.ts';

const secret = 'a secret of at least 32 characters';

/** A replica's connection to the server, with everything it logs. */
export async function joinRedis({ port }: { port: number }, { baseUrl = 'http://service.invalid' } = {}) {
  const logged: string[] = [];
  const log = (message: string, fields?: object) => void logged.push(`${message} ${JSON.stringify(fields ?? {})}`);
  const address = { tls: false, hosts: [{ host: '127.0.0.1', port }] };
  const redis: Redis = await openRedis({ address, secret, baseUrl, log: { warn: log, info: log }, now: Date.now });
  onTestFinished(() => redis.connection.close());
  return { redis, logged };
}
