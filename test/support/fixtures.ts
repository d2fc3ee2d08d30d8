import { test as base } from 'vitest';
import { type Behaviour, startUpstream, type Upstream } from './faulty-upstream.ts';
import { createToolCall, createValidHeaders, type HttpServer, openConnection, startHttp } from './http.ts';
import { type ServerOptions, startServer, type TestServer } from './server.ts';
import { startService } from './service.ts';

/**
 * Defines tests with two fake APIs, which start on first use. `upstream` has scripted responses and belongs to one test
 * file. `service` is a local library with demo data that several files share, so a test that counts credits or collection
 * items needs its own API key.
 */
export const test = base
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads the dependencies of a fixture from this pattern
  .extend('upstream', { scope: 'file' }, async ({}, { onCleanup }) => {
    const upstream = await startUpstream();
    onCleanup(upstream.close);
    return upstream;
  })
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads the dependencies of a fixture from this pattern
  .extend('service', { scope: 'worker' }, async ({}, { onCleanup }) => {
    const service = await startService();
    onCleanup(service.close);
    return service;
  });

interface Cleanup {
  onCleanup(close: () => Promise<void>): void;
}

/** Starts another server in front of the same API with its own settings. The server closes after the test. */
export type StartServer = (config?: ServerOptions['config'], options?: ServerOptions) => Promise<TestServer>;

function createServerStarter(options: ServerOptions, { onCleanup }: Cleanup): StartServer {
  const servers: TestServer[] = [];
  onCleanup(async () => {
    for (const server of servers) await server.close();
  });
  return async (config, serverOptions) => {
    const server = await startServer({ ...options, ...serverOptions, config: { ...options.config, ...config } });
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

/** Defines tests of a server in front of an upstream with scripted responses. All tests of a file share the server. */
export const upstreamTest = (options: ServerOptions = {}) =>
  test
    .extend('server', { scope: 'file' }, ({ upstream }, cleanup) => startWithUpstream(options)({ upstream }, cleanup)())
    .extend('start', startWithUpstream(options));

/** Defines tests like `upstreamTest`, each with a new server. */
export const freshUpstreamTest = (options: ServerOptions = {}) =>
  test.extend('start', startWithUpstream(options)).extend('server', ({ start }) => start());

/**
 * Defines tests like `upstreamTest`, in which each test connects with a new API key. The tests share the server, but no
 * dataset, budget or watch.
 */
export const tenantUpstreamTest = (options: ServerOptions = {}) => {
  let tenantCount = 0;
  return upstreamTest(options)
    .extend(
      'connect',
      ({ server }) =>
        () =>
          server.connectAs(`svc_live_tenant_${++tenantCount}`),
    )
    .extend('tenant', ({ connect }) => connect());
};

/** Defines tests of a server in front of the local library. All tests of a file share the server. */
export const serviceTest = ({ config, ...options }: ServerOptions = {}) =>
  test.extend('server', { scope: 'file' }, ({ service }, cleanup) => {
    const serviceConfig = { baseUrl: service.baseUrl, apiKey: service.apiKey };
    return createServerStarter({ ...options, config: { ...serviceConfig, ...config } }, cleanup)();
  });

/** Defines tests like `serviceTest`, each with a new server and a new API key. */
export const freshServiceTest = ({ config, ...options }: ServerOptions = {}) =>
  test
    .extend('start', ({ service }, cleanup) => {
      const serviceConfig = { baseUrl: service.baseUrl, apiKey: service.createKey() };
      return createServerStarter({ ...options, config: { ...serviceConfig, ...config } }, cleanup);
    })
    .extend('server', ({ start }) => start());

/** Defines tests of HTTP servers in front of one upstream with scripted responses. Each server has its own settings. */
export const httpTest = test.extend('serve', ({ upstream }, { onCleanup }) => {
  const servers: HttpServer[] = [];
  onCleanup(async () => {
    for (const server of servers) await server.close(0);
  });
  return async (
    behaviour: Behaviour,
    config?: Parameters<typeof startHttp>[0],
    dependencies?: Parameters<typeof startHttp>[1],
  ) => {
    upstream.respondWith(behaviour);
    const server = await startHttp({ baseUrl: upstream.baseUrl, ...config }, dependencies);
    servers.push(server);
    /** Sends a JSON-RPC message over a new connection. */
    const post = (key: string, body: object = createToolCall('whoami')) =>
      openConnection(server.origin).send({ headers: createValidHeaders(key), body: JSON.stringify(body) });
    const get = (path: string, headers = {}) => openConnection(server.origin).send({ method: 'GET', path, headers });
    return { server, post, get };
  };
});
