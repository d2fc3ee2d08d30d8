import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { script } from '../../../src/state/redis/redis-commands.ts';
import { RedisConnection } from '../../../src/state/redis/redis-connection.ts';
import type { StateAddress } from '../../../src/state/redis/redis-driver.ts';
import { keepAlive, until } from '../../support/http.ts';
import { serveHttp } from '../../support/process.ts';
import { describeWithRedis, startRedis } from '../../support/redis-server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();

async function open(address: Partial<StateAddress> & { port: number }) {
  const { port, ...rest } = address;
  const logged: string[] = [];
  const log = (message: string, fields?: object) => void logged.push(`${message} ${JSON.stringify(fields)}`);
  const hosts = [{ host: '127.0.0.1', port }];
  const connection = new RedisConnection({ tls: false, hosts, ...rest }, { warn: log, info: log });
  onTestFinished(() => connection.close());
  await connection.open(2000);
  return { connection, logged };
}

async function works(connection: RedisConnection) {
  const both = script(
    `redis.call('SET', KEYS[1], ARGV[1]) redis.call('PUBLISH', ARGV[2], KEYS[1]) return redis.call('GET', KEYS[1])`,
  );
  const heard: string[] = [];
  await connection.listen('channel', (message) => heard.push(message));
  for (const tag of ['a', 'b', 'c']) {
    const key = `{${tag}}:key`;
    expect(String(await connection.run(both, [key], [tag, 'channel']))).toBe(tag);
    expect(String(await connection.send(key, ['GET', key]))).toBe(tag);
  }
  await until(() => heard.length === 3);
}

describeWithRedis('an address', () => {
  test('may be that of a cluster', async () => {
    const redis = await startRedis(['--cluster-enabled', 'yes']);
    onTestFinished(redis.close);
    redis.cli('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await until(() => redis.cli('CLUSTER', 'INFO').includes('cluster_state:ok'));
    const { connection } = await open({ port: redis.port, cluster: true });
    await works(connection);
    await redis.kill();
    await until(() => !connection.isUp());
  });

  test('may be that of Sentinel', async () => {
    const redis = await startRedis();
    onTestFinished(redis.close);
    const file = join(folder, 'sentinel.conf');
    // Without a login for Redis, and with one of its own.
    writeFileSync(file, `sentinel monitor primary 127.0.0.1 ${redis.port} 1\nrequirepass open-sesame\n`);
    const sentinel = await startRedis([], { sentinel: file });
    onTestFinished(sentinel.close);
    const { connection } = await open({
      port: sentinel.port,
      sentinel: 'primary',
      sentinelPassword: 'open-sesame',
    });
    await works(connection);
  });

  test('may require TLS, whose certificate is checked', async () => {
    const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
    const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', certificate, ...subject],
      { stdio: 'ignore' },
    );
    const redis = await startRedis([], { tls: { key, certificate } });
    onTestFinished(redis.close);
    const { connection, logged } = await open({ port: redis.port, tls: true });
    expect(connection.isUp()).toBe(false);
    expect(logged.join('\n')).toContain('self-signed certificate');

    const served = await serveHttp(['--base-url', 'http://127.0.0.1:1'], {
      NODE_EXTRA_CA_CERTS: certificate,
      AD_LIBRARY_STATE_URL: `rediss://127.0.0.1:${redis.port}`,
      AD_LIBRARY_STATE_SECRET: 'a secret of at least 32 characters',
    });
    onTestFinished(() => served.close().then(() => {}));
    const ready = async () => (await keepAlive(served.origin).send({ method: 'GET', path: '/readyz' })).status;
    await expect.poll(ready, { timeout: 10_000 }).toBe(200);
  });
});
