import { expect, onTestFinished, test } from 'vitest';
import { script } from '../../../src/state/redis/redis-commands.ts';
import { RedisConnection } from '../../../src/state/redis/redis-connection.ts';
import { until } from '../../support/http.ts';
import { describeWithRedis, startRedis } from '../../support/redis-server.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';

async function connected(options: { redis?: readonly string[]; password?: string; waitMs?: number } = {}) {
  const redis = await startRedis(options.redis);
  onTestFinished(redis.close);
  const logged: string[] = [];
  const log = (message: string, fields?: object) => void logged.push(`${message} ${JSON.stringify(fields)}`);
  const { password } = options;
  const hosts = [{ host: '127.0.0.1', port: redis.port }];
  const connection = new RedisConnection(
    { tls: false, hosts, ...(password && { password }) },
    { warn: log, info: log },
  );
  onTestFinished(() => connection.close());
  await connection.open(options.waitMs ?? 5000);
  return { redis, connection, logged };
}

/** A connection through a network that loses or delays what Redis answers. */
async function behindProxy(redisPort: number) {
  const proxy = await startTcpProxy(redisPort);
  const logged: string[] = [];
  const log = (message: string) => void logged.push(message);
  const connection = new RedisConnection(
    { tls: false, hosts: [{ host: '127.0.0.1', port: proxy.port }] },
    { warn: log, info: log },
  );
  onTestFinished(() => connection.close());
  await connection.open(5000);
  return { connection, ...proxy, logged };
}

describeWithRedis('the connection to Redis', () => {
  test('sends commands and scripts, and receives what is published', async () => {
    const { connection, redis } = await connected();
    expect(connection.isUp()).toBe(true);
    await connection.send('key', ['SET', 'key', Buffer.of(0, 255)]);
    expect(await connection.send('key', ['GET', 'key'])).toEqual(Buffer.of(0, 255));
    const sum = script('return tonumber(ARGV[1]) + tonumber(ARGV[2])');
    expect(await connection.run(sum, ['key'], ['1', '2'])).toBe(3);
    redis.cli('SCRIPT', 'FLUSH');
    expect(await connection.run(sum, ['key'], ['1', '2'])).toBe(3);
    const heard: string[] = [];
    await connection.listen('channel', (message) => heard.push(message));
    redis.cli('PUBLISH', 'channel', 'hello');
    await until(() => heard.length === 1);
  });

  test('an error that Redis states concerns that command alone', async () => {
    const { connection } = await connected();
    await expect(connection.send('key', ['NONSENSE'])).rejects.toMatchObject({
      failure: { kind: 'unavailable', sent: false },
    });
    expect(connection.isUp()).toBe(true);
  });

  test('a server that is gone refuses at once, and one that is back heals it, subscriptions included', async () => {
    const { connection, redis } = await connected();
    const restored: unknown[] = [];
    connection.onUp(async ({ send }) => void restored.push(await send('key', ['SET', 'key', 'restored'])));
    const heard: string[] = [];
    await connection.listen('channel', (message) => heard.push(message));
    await redis.kill();
    await until(() => !connection.isUp());
    await expect(connection.send('key', ['GET', 'key'])).rejects.toMatchObject({ failure: { kind: 'unavailable' } });
    await redis.restart();
    await until(() => connection.isUp());
    expect(restored).toHaveLength(1);
    expect(String(await connection.send('key', ['GET', 'key']))).toBe('restored');
    await until(() => {
      redis.cli('PUBLISH', 'channel', 'hello');
      return heard.length > 0;
    });
  });

  test('a server that hangs holds one command, not all of them, and one that goes on heals it', async () => {
    const { connection, redis } = await connected();
    redis.pause();
    await expect(connection.send('key', ['GET', 'key'])).rejects.toMatchObject({ failure: { kind: 'unavailable' } });
    expect(connection.isUp()).toBe(false);
    redis.resume();
    await until(() => connection.isUp());
    expect(await connection.send('key', ['GET', 'key'])).toBeNull();
  });

  test('a network that loses everything is left behind for a new connection', async () => {
    const { redis } = await connected();
    const { connection, sockets } = await behindProxy(redis.port);
    // The bytes of this connection vanish, while new ones work.
    for (const socket of sockets) socket.unpipe().pause();
    await expect(connection.send('key', ['GET', 'key'])).rejects.toMatchObject({ failure: { kind: 'unavailable' } });
    await until(() => connection.isUp());
  });

  test('a server that is always slow holds a call for as long as one that hangs, though it answers', async () => {
    const { redis } = await connected();
    const { connection, delay } = await behindProxy(redis.port);
    delay.ms = 300;
    let answered = 0;
    for (let command = 0; command < 10; command++)
      await connection.send('key', ['GET', 'key']).then(
        () => answered++,
        () => {},
      );
    expect(answered).toBeLessThan(6);
    expect(connection.isUp()).toBe(false);
    delay.ms = 0;
    await until(() => connection.isUp());
  });

  test('a server that became a replica is left for the one that its address leads to now', async () => {
    const { redis } = await connected();
    const { redis: promoted } = await connected();
    const { connection, target, logged } = await behindProxy(redis.port);
    redis.cli('REPLICAOF', '127.0.0.1', String(promoted.port));
    await expect(connection.send('key', ['SET', 'key', 'refused'])).rejects.toMatchObject({
      failure: { kind: 'unavailable' },
    });
    expect(connection.isUp()).toBe(false);
    // It is not up for as long as nothing can be written.
    await until(() => redis.cli('INFO', 'replication').includes('master_link_status:up'));
    expect(connection.isUp()).toBe(false);
    target.port = promoted.port;
    await until(() => connection.isUp());
    await connection.send('key', ['SET', 'key', 'taken']);
    expect(promoted.cli('GET', 'key')).toBe('taken');
    expect(logged.length).toBeLessThan(8);
  });

  test('starts without a server, and finds it when it comes', async () => {
    const { redis } = await connected();
    await redis.kill();
    const warned: string[] = [];
    const log = { warn: (message: string) => void warned.push(message), info: () => {} };
    const hosts = [{ host: '127.0.0.1', port: redis.port }];
    const connection = new RedisConnection({ tls: false, hosts }, log);
    onTestFinished(() => connection.close());
    const heard: string[] = [];
    await connection.listen('channel', (message) => heard.push(message));
    await connection.open(100);
    expect(warned).toEqual(['the shared state cannot be reached yet']);
    await redis.restart();
    await until(() => connection.isUp());
    redis.cli('PUBLISH', 'channel', 'hello');
    await until(() => heard.length === 1);
  });

  test('logs in with a password, which no log contains even if it is wrong', async () => {
    const { connection } = await connected({ redis: ['--requirepass', 'open-sesame'], password: 'open-sesame' });
    expect(connection.isUp()).toBe(true);
    const { connection: refused, logged } = await connected({
      redis: ['--requirepass', 'sesame'],
      password: 'wrong-word',
      waitMs: 1000,
    });
    expect(refused.isUp()).toBe(false);
    expect(logged.join('\n')).toContain('WRONGPASS');
    expect(logged.join('\n')).not.toContain('wrong-word');
  });

  test('warns of a server that forgets when it is full', async () => {
    const evicting = await connected({ redis: ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'] });
    expect(evicting.logged.join('\n')).toContain('set maxmemory-policy to noeviction {"policy":"allkeys-lru"}');
    const kept = await connected({ redis: ['--maxmemory', '100mb', '--maxmemory-policy', 'noeviction'] });
    expect(kept.logged.join('\n')).not.toContain('noeviction');
  });
});
