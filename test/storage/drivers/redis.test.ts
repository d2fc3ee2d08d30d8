import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createRedisDriver, type RedisConnection } from '../../../src/storage/drivers/redis.ts';
import { CircuitBreakerStore } from '../../../src/storage/store/circuit-breaker-store.ts';
import { waitUntil } from '../../support/deadline.ts';
import { openConnection } from '../../support/http.ts';
import { findFreePort, listenOnLoopback } from '../../support/loopback.ts';
import { startHttpCommand } from '../../support/process.ts';
import { describeWithRedis, type RedisServer, startRedis } from '../../support/store-servers.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

const folder = createTemporaryFolder();
const unavailable = { failure: { kind: 'unavailable', storage: 'data' } };

/** Connects to a Redis server like a replica does. */
async function connectStore(port: number, address: Partial<RedisConnection> = {}, waitMs = 5000) {
  const logged: string[] = [];
  const log = (message: string, fields?: object) => void logged.push(`${message} ${JSON.stringify(fields)}`);
  const driver = createRedisDriver(
    { tls: false, host: '127.0.0.1', port, ...address },
    { error: log, warn: log, info: log },
  );
  const store = new CircuitBreakerStore(driver, { error: log, warn: log, info: log }, Date.now);
  onTestFinished(() => store.close());
  await store.open(waitMs);
  const write = (key = '{a}:key') =>
    store.swapDocument(key, '', { version: randomUUID(), body: Buffer.from('body'), ttlMs: 60_000 });
  return { store, logged, write };
}

async function startServer(...options: string[]): Promise<RedisServer> {
  const redis = await startRedis(options);
  onTestFinished(redis.close);
  return redis;
}

/** Starts a Redis server that requires TLS. Returns the path of its self-signed certificate, too. */
async function startServerWithTls() {
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', certificate, ...subject];
  execFileSync('openssl', request, { stdio: 'ignore' });
  const redis = await startRedis([], { key, certificate });
  onTestFinished(redis.close);
  return { ...redis, certificate };
}

/**
 * Starts a TCP proxy that tests can disturb. `sockets` contains both ends of all connections. New connections go to
 * `target.port`.
 */
async function startTcpProxy(port: number) {
  const sockets: Socket[] = [];
  const target = { port };
  const proxy = createServer((socket) => {
    const onward = connect(target.port, '127.0.0.1').on('error', () => {});
    socket.on('error', () => {}).pipe(onward);
    onward.pipe(socket);
    sockets.push(socket, onward);
  });
  const { port: proxyPort, close } = await listenOnLoopback(proxy);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    return close();
  });
  return { port: proxyPort, target, sockets };
}

describeWithRedis('The Redis driver', () => {
  test('a Redis store stays available after Redis has rejected a call', async () => {
    const redis = await startServer();
    const { store, write, logged } = await connectStore(redis.port);
    redis.cli('SCRIPT', 'FLUSH');
    expect(await write()).toMatchObject({ isDone: true });
    redis.cli('SET', '{a}:other', 'no hash');
    await expect(write('{a}:other')).rejects.toMatchObject(unavailable);
    expect(store.isUp()).toBe(true);
    expect(logged.join('\n')).toContain('the shared state refused a call');
  });

  test('a Redis store that is full rejects new documents and still returns stored ones', async () => {
    const redis = await startServer('--maxmemory-policy', 'noeviction');
    const { store, write, logged } = await connectStore(redis.port);
    await write();
    redis.cli('CONFIG', 'SET', 'maxmemory', '1');
    await expect(write('{a}:other')).rejects.toMatchObject(unavailable);
    expect(String((await store.readDocument('{a}:key')).document?.body)).toBe('body');
    expect(store.isUp()).toBe(true);
    expect(logged.join('\n')).toContain('OOM');
    await waitUntil(() => store.isNearlyFull());
    redis.cli('CONFIG', 'SET', 'maxmemory', '0');
    expect(await write('{a}:other')).toMatchObject({ isDone: true });
    await waitUntil(() => !store.isNearlyFull());
  });

  test('the log warns about Redis settings with which Redis can lose stored data', async () => {
    const evicting = await connectStore(
      (await startServer('--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru')).port,
    );
    expect(evicting.logged.join('\n')).toContain('set maxmemory-policy to noeviction {"policy":"allkeys-lru"}');
    expect(evicting.logged.join('\n')).toContain('set appendonly to yes');
    const durableStore = await connectStore((await startServer('--maxmemory', '100mb', '--appendonly', 'yes')).port);
    expect(durableStore.logged.join('\n')).not.toMatch(/noeviction|appendonly/);
  });

  test('calls fail immediately while Redis is unreachable and work again when Redis is back', async () => {
    const redis = await startServer();
    const { store, write } = await connectStore(redis.port);
    await redis.kill();
    await waitUntil(() => !store.isUp());
    const startMs = performance.now();
    await expect(write()).rejects.toMatchObject(unavailable);
    // The call must fail at once, before the time limit for a silent store.
    expect(performance.now() - startMs).toBeLessThan(900);
    const late = await connectStore(redis.port, {}, 100);
    expect(late.logged.join('\n')).toContain('the shared state cannot be reached yet');
    await redis.restart();
    await waitUntil(() => store.isUp() && late.store.isUp());
    await write();
  });

  test('a Redis connection whose packets are lost is replaced by a new connection', async () => {
    const redis = await startServer();
    const proxy = await startTcpProxy(redis.port);
    const { store, write } = await connectStore(proxy.port);
    // Drop all bytes of the existing connection. New connections still work.
    for (const socket of proxy.sockets) socket.unpipe().pause();
    await expect(write()).rejects.toMatchObject(unavailable);
    await waitUntil(() => store.isUp());
  });

  test('the Redis driver connects again after its Redis server has become a read-only replica', async () => {
    const [redis, promoted] = [await startServer(), await startServer()];
    const proxy = await startTcpProxy(redis.port);
    const { store, write, logged } = await connectStore(proxy.port);
    redis.cli('REPLICAOF', '127.0.0.1', String(promoted.port));
    await expect(write()).rejects.toMatchObject(unavailable);
    expect(store.isUp()).toBe(false);
    // The store counts as down until it accepts writes.
    await waitUntil(() => redis.cli('INFO', 'replication').includes('master_link_status:up'));
    expect(store.isUp()).toBe(false);
    proxy.target.port = promoted.port;
    await waitUntil(() => store.isUp());
    await write();
    expect(promoted.cli('EXISTS', '{a}:key')).toBe('1');
    expect(logged.length).toBeLessThan(10);
  });

  test('the log never contains the Redis password', async () => {
    const { store } = await connectStore((await startServer('--requirepass', 'open-sesame')).port, {
      password: 'open-sesame',
    });
    expect(store.isUp()).toBe(true);
    const { port } = await startServer('--requirepass', 'sesame');
    const refused = await connectStore(port, { password: 'wrong-word' }, 1);
    await waitUntil(() => refused.logged.join('\n').includes('WRONGPASS'));
    expect(refused.store.isUp()).toBe(false);
    expect(refused.logged.join('\n')).not.toContain('wrong-word');
  });

  test('the log says how to correct the URL if the URL requires TLS and the Redis server does not use TLS', async () => {
    for (const options of [[], ['--requirepass', 'sesame']]) {
      const { port } = await startServer(...options);
      const { store, logged } = await connectStore(port, { tls: true, password: 'sesame' }, 1);
      await expect.poll(() => logged.join('\n'), { timeout: 5000 }).toContain('change the URL to redis://');
      expect(store.isUp()).toBe(false);
    }
  });

  test('the log says how to correct the URL if the Redis server requires TLS and the URL does not', async () => {
    const redis = await startServerWithTls();
    const { store, logged } = await connectStore(redis.port, {}, 1);
    await expect.poll(() => logged.join('\n'), { timeout: 5000 }).toContain('change the URL to rediss://');
    expect(store.isUp()).toBe(false);
  });

  test('the log does not suggest a TLS problem if the Redis server is unreachable or does not respond', async () => {
    const silentServer = createServer((socket) => void socket.on('error', () => {}).resume());
    const { port, close } = await listenOnLoopback(silentServer);
    const silent = await connectStore(port, { tls: true }, 1);
    const away = await connectStore(await findFreePort(), {}, 1);
    await delay(3000);
    expect([...silent.logged, ...away.logged].join('\n')).not.toContain('AD_LIBRARY_STATE_URL');
    expect(silent.logged.length).toBeGreaterThan(0);
    await Promise.all([silent.store.close(), away.store.close()]);
    await close();
  });

  test("a Redis connection with TLS is refused if the server's certificate is not trusted", async () => {
    const redis = await startServerWithTls();
    const { store, logged } = await connectStore(redis.port, { tls: true }, 1);
    await waitUntil(() => logged.join('\n').includes('self-signed certificate'));
    expect(store.isUp()).toBe(false);

    const served = await startHttpCommand(['--base-url', 'http://127.0.0.1:1'], {
      NODE_EXTRA_CA_CERTS: redis.certificate,
      AD_LIBRARY_STATE_URL: `rediss://127.0.0.1:${redis.port}`,
      AD_LIBRARY_STATE_SECRET: 'a secret of at least 32 characters',
    });
    onTestFinished(() => served.close().then(() => {}));
    const ready = async () => (await openConnection(served.origin).send({ method: 'GET', path: '/readyz' })).json.state;
    await expect.poll(ready).toBe('up');
  });
});
