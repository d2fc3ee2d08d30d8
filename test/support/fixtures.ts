import { test as base } from 'vitest';
import { startUpstream, type Upstream } from './faulty-upstream.ts';
import { type ServerOptions, startServer } from './server.ts';
import { startService } from './service.ts';

/** Tests with a service behind them: opened when a test first asks for it, closed after the last test of the file. */
export const test = base
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads there what a fixture depends on
  .extend('upstream', { scope: 'file' }, async ({}, { onCleanup }) => {
    const upstream = await startUpstream();
    onCleanup(upstream.close);
    return upstream;
  })
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads there what a fixture depends on
  .extend('service', { scope: 'file' }, async ({}, { onCleanup }) => {
    const service = await startService();
    onCleanup(service.close);
    return service;
  });

interface Cleanup {
  onCleanup(close: () => Promise<void>): void;
}

async function open(options: ServerOptions, { onCleanup }: Cleanup) {
  const server = await startServer(options);
  onCleanup(server.close);
  return server;
}

const beforeUpstream =
  ({ config, ...options }: ServerOptions) =>
  ({ upstream }: { upstream: Upstream }, cleanup: Cleanup) =>
    open({ ...options, config: { baseUrl: upstream.baseUrl, apiKey: 'svc_live_test', ...config } }, cleanup);

/** Tests of one server in front of a service that does what the test says. */
export const upstreamTest = (options: ServerOptions = {}) =>
  test.extend('server', { scope: 'file' }, beforeUpstream(options));

/** The same with a new server for each test. */
export const freshUpstreamTest = (options: ServerOptions = {}) => test.extend('server', beforeUpstream(options));

/** Tests of one server in front of the local library. */
export const serviceTest = ({ config, ...options }: ServerOptions = {}) =>
  test.extend('server', { scope: 'file' }, ({ service }, cleanup) =>
    open({ ...options, config: { baseUrl: service.baseUrl, apiKey: service.apiKey, ...config } }, cleanup),
  );

/** The same with a new server for each test, and a new key for each server, so that their ledgers are apart. */
export const freshServiceTest = ({ config, ...options }: ServerOptions = {}) =>
  test.extend('server', ({ service }, cleanup) =>
    open({ ...options, config: { baseUrl: service.baseUrl, apiKey: service.createKey(), ...config } }, cleanup),
  );
