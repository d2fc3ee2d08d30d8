import { test as base } from 'vitest';
import { type Behaviour, startUpstream, type Upstream } from './faulty-upstream.ts';
import { type HttpServer, openConnection, startHttp, toolCall, validHeaders } from './http.ts';
import { type ServerOptions, startServer, type TestServer } from './server.ts';
import { startService } from './service.ts';

/**
 * Tests with a service behind them, opened when a test first asks for it. An upstream is closed after the last test of
 * its file; the library with demo data is the same for all files of a worker, so that a test that counts credits or
 * items of a collection needs a key of its own.
 */
export const test = base
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads there what a fixture depends on
  .extend('upstream', { scope: 'file' }, async ({}, { onCleanup }) => {
    const upstream = await startUpstream();
    onCleanup(upstream.close);
    return upstream;
  })
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads there what a fixture depends on
  .extend('service', { scope: 'worker' }, async ({}, { onCleanup }) => {
    const service = await startService();
    onCleanup(service.close);
    return service;
  });

interface Cleanup {
  onCleanup(close: () => Promise<void>): void;
}

/** Starts a server with settings of its own in front of the same service, and closes it after the test. */
export type StartServer = (config?: ServerOptions['config'], options?: ServerOptions) => Promise<TestServer>;

function createServerStarter(options: ServerOptions, { onCleanup }: Cleanup): StartServer {
  const servers: TestServer[] = [];
  onCleanup(async () => {
    for (const server of servers) await server.close();
  });
  return async (config, own) => {
    const server = await startServer({ ...options, ...own, config: { ...options.config, ...config } });
    servers.push(server);
    return server;
  };
}

const startWithUpstream =
  ({ config, ...options }: ServerOptions) =>
  ({ upstream }: { upstream: Upstream }, cleanup: Cleanup) =>
    createServerStarter(
      { ...options, config: { baseUrl: upstream.baseUrl, apiKey: 'svc_live_test', ...config } },
      cleanup,
    );

/** Tests of the server in front of a service that does what the test says: one server for all. */
export const upstreamTest = (options: ServerOptions = {}) =>
  test
    .extend('server', { scope: 'file' }, ({ upstream }, cleanup) => startWithUpstream(options)({ upstream }, cleanup)())
    .extend('start', startWithUpstream(options));

/** The same with a new server for each test. */
export const freshUpstreamTest = (options: ServerOptions = {}) =>
  test.extend('start', startWithUpstream(options)).extend('server', ({ start }) => start());

/** Tests of the server in front of the local library: one server for all. */
export const serviceTest = ({ config, ...options }: ServerOptions = {}) =>
  test.extend('server', { scope: 'file' }, ({ service }, cleanup) => {
    const own = { baseUrl: service.baseUrl, apiKey: service.apiKey };
    return createServerStarter({ ...options, config: { ...own, ...config } }, cleanup)();
  });

/** The same with a new server and a new key for each test. */
export const freshServiceTest = ({ config, ...options }: ServerOptions = {}) =>
  test
    .extend('start', ({ service }, cleanup) => {
      const own = { baseUrl: service.baseUrl, apiKey: service.createKey() };
      return createServerStarter({ ...options, config: { ...own, ...config } }, cleanup);
    })
    .extend('server', ({ start }) => start());

/** Tests of servers with settings of their own in front of one service, which does what the test says. */
export const httpTest = test.extend('serve', ({ upstream }, { onCleanup }) => {
  const servers: HttpServer[] = [];
  onCleanup(async () => {
    for (const server of servers) await server.close(0);
  });
  return async (
    behaviour: Behaviour,
    config?: Parameters<typeof startHttp>[0],
    ways?: Parameters<typeof startHttp>[1],
  ) => {
    upstream.respondWith(behaviour);
    const server = await startHttp({ baseUrl: upstream.baseUrl, ...config }, ways);
    servers.push(server);
    /** Over a connection of its own. */
    const post = (key: string, body: object = toolCall('whoami')) =>
      openConnection(server.origin).send({ headers: validHeaders(key), body: JSON.stringify(body) });
    const get = (path: string, headers = {}) => openConnection(server.origin).send({ method: 'GET', path, headers });
    return { server, post, get };
  };
});
