import { setTimeout as delay } from 'node:timers/promises';
import { allToolNames, openApp, monotonicNow as processMonotonicNow, version } from '../app.ts';
import { isLoopbackHost } from '../config/setting-values.ts';
import type { Config } from '../config/settings.ts';
import {
  type CallEvent,
  createCallLogger,
  createFailureWarner,
  createLogger,
  createRateLimitedWarner,
  createServiceStateTracker,
  isLogged,
  type Logger,
  type OnCall,
} from '../logging/log.ts';
import { createMemoryAcceptedKeys } from '../storage/keys.ts';
import type { ReplicaState } from '../storage/store/open-store.ts';
import { createHttpApp } from '../transports/http/app.ts';
import { createLogTenantHasher, createTenantIdGetter } from '../transports/http/authentication.ts';
import { createClientAddressGetter, createPeerAddressGetter } from '../transports/http/client-addresses.ts';
import { createLinkOriginFinder } from '../transports/http/files.ts';
import { createKeyAttemptLimiter } from '../transports/http/key-attempts.ts';
import { formatUrlHost, type ListeningServer, listen } from '../transports/http/server.ts';
import type {
  AuthorizationServer,
  AuthorizationServerOptions,
} from '../transports/http/sign-in/authorization-server.ts';
import { openReplicaState } from './replica-state.ts';

/**
 * Serves MCP over HTTP. The `close` function of the returned server stops the server, and waits for calls in progress
 * for at most the given time.
 *
 * @param dependencies replacements for tests: the HTTP client of sign-in, and the monotonic clock
 */
export async function serveHttp(
  config: Config,
  writeLogLine: (line: string) => void,
  dependencies: ServeDependencies = {},
): Promise<ListeningServer> {
  const log = createLogger(config.logLevel, writeLogLine, { format: config.logFormat ?? 'json', now: Date.now });
  const replicaState = await openReplicaState(config, log, Date.now);
  try {
    return await startServer({ config, log, replicaState, dependencies });
  } catch (error) {
    // Close the connection to the shared store, because it would keep the process alive.
    replicaState?.close();
    throw error;
  }
}

type ServeDependencies = Partial<Pick<AuthorizationServerOptions, 'openAgent' | 'monotonicNow'>>;

interface StartOptions {
  config: Config;
  log: Logger;
  /** The state that all replicas share. The started server closes it. If the start fails, the caller closes it. */
  replicaState: ReplicaState | undefined;
  dependencies: ServeDependencies;
}

async function startServer({ config, log, replicaState, dependencies }: StartOptions): Promise<ListeningServer> {
  const { openAgent, monotonicNow = processMonotonicNow } = dependencies;
  const { host, port, allowedHosts, allowedOrigins, publicUrl, signInSecret, fileLinks, demo } = config;
  const { callsAtOnce, callsPerKey, callsWaiting } = config;
  const metrics = config.metrics
    ? (await import('../transports/http/metrics.ts')).createMetrics(allToolNames)
    : undefined;
  const now = replicaState?.now ?? Date.now;
  const acceptedKeys = replicaState?.keys ?? createMemoryAcceptedKeys(monotonicNow);
  const keyAttemptLimiter = createKeyAttemptLimiter({
    maxKeysPerMinute: config.refusalsPerMinute,
    monotonicNow,
    isKnownKey: replicaState?.isKnownKey ?? acceptedKeys.has,
  });
  const getTenantId = createTenantIdGetter(replicaState?.tenantSecret);
  const trustedProxy = config.trustedProxy === 'none' ? undefined : config.trustedProxy;
  const getClientAddress = createClientAddressGetter(trustedProxy);
  // Do not warn if the operator has turned off the limit of key attempts, because a proxy then limits them.
  const isAttemptLimitEnabled = config.refusalsPerMinute > 0;
  if (publicUrl?.startsWith('https:') && config.trustedProxy === undefined && isAttemptLimitEnabled)
    log.warn(
      'AD_LIBRARY_TRUSTED_PROXY is not set, so all callers behind a proxy count as one address; set it to the address of the proxy, or to none if there is no proxy',
    );
  const serviceStateTracker = createServiceStateTracker();
  let authorizationServer: AuthorizationServer | undefined;
  const callHandlers = [
    // Each log line of a call contains a hash of the tenant id, which identifies an API key. Compute this hash only if
    // calls are logged, because hashing takes time.
    isLogged('info', config.logLevel)
      ? createCallLogger(log, createLogTenantHasher(replicaState?.tenantSecret))
      : undefined,
    createFailureWarner(log, monotonicNow),
    serviceStateTracker.onCall,
    metrics?.onCall,
    keyAttemptLimiter.onCall,
    (event: CallEvent) => authorizationServer?.onCall(event),
  ];
  const onCall: OnCall = (event) => {
    for (const handleCall of callHandlers) handleCall?.(event);
  };
  const app = await openApp({
    config,
    log,
    onCall,
    acceptedKeys,
    now,
    monotonicNow,
    random: Math.random,
    replicaState,
    demoPicturesUrl: getDemoPicturesUrl(config),
  });
  if (publicUrl && signInSecret) {
    const { createAuthorizationServer } = await import('../transports/http/sign-in/authorization-server.ts');
    const clockOffsetMs = now() - monotonicNow();
    authorizationServer = createAuthorizationServer({
      publicUrl,
      secret: signInSecret,
      keyAttemptLimiter,
      getTenantId,
      getClientAddress,
      monotonicNow,
      log,
      onCall,
      openAgent,
      serviceHost: new URL(config.baseUrl ?? publicUrl).host,
      connectionStore: replicaState?.connections,
      // Without state that is shared with other replicas, use a monotonic clock, so that tokens expire on time even if
      // someone changes the system clock.
      now: replicaState ? now : () => clockOffsetMs + monotonicNow(),
      userAgent: `ad-library-mcp/${version}`,
      checkKey: app.checkKey,
      beforeRenewal: app.extendSpendingRetention,
    });
  }
  const httpApp = createHttpApp({
    catalog: app.catalog,
    log,
    monotonicNow,
    onCall,
    allowedNames: { host, allowedHosts, allowedOrigins, publicHost: publicUrl && new URL(publicUrl).hostname },
    authentication: demo
      ? { demo: app.credentials }
      : { keyAttemptLimiter, getTenantId, getClientAddress, authorizationServer },
    serveDemoPicture: app.respondWithPicture,
    publicUrl,
    ...(fileLinks === 'on' && {
      files: {
        findLinkedFile: app.findLinkedFile,
        findLinkOrigin: createLinkOriginFinder(demo ? undefined : publicUrl),
      },
    }),
    limits: {
      maxRunningCalls: callsAtOnce,
      maxRunningCallsPerKey: demo ? callsAtOnce : callsPerKey,
      maxWaitingCalls: callsWaiting,
    },
    metrics,
    replicaState,
    getServiceState: serviceStateTracker.getServiceState,
  });
  // A connection without traffic may be waiting for a slow call, so the idle time limit is 30 seconds longer than a
  // call may take.
  const idleTimeoutMs = config.timeoutMs + 30_000;
  const warnOfRefusal = createRateLimitedWarner(
    log,
    monotonicNow,
    'connections are refused; if the address is your proxy, set AD_LIBRARY_TRUSTED_PROXY',
  );
  const httpServer = await listen(httpApp.fetch, {
    host,
    port,
    idleTimeoutMs,
    useFastResponses: true,
    getPeerAddress: createPeerAddressGetter(trustedProxy),
    onConnectionRefused: (address) => warnOfRefusal(() => ({ address })),
  });
  return {
    ...httpServer,
    close: async (drainMs: number) => {
      const deadline = performance.now() + drainMs;
      const getRemainingMs = () => Math.max(0, deadline - performance.now());
      if (replicaState) {
        httpApp.announceStop();
        await delay(Math.min(stopAnnouncementMs, drainMs / 3), undefined, { ref: false });
      }
      app.drain();
      await Promise.race([httpApp.drain(), delay(getRemainingMs(), undefined, { ref: false })]);
      await httpServer.close(getRemainingMs());
      await app.close(getRemainingMs());
      await authorizationServer?.close();
      replicaState?.close();
    },
  };
}

/**
 * How long a stopping replica still serves requests while its readiness probe fails, in milliseconds. During this time,
 * load balancers notice the failing probe and send new requests to other replicas.
 */
const stopAnnouncementMs = 3000;

/**
 * Returns the URL under which clients can load the demo pictures. Returns undefined for port 0, because the operating
 * system chooses the actual port later.
 */
function getDemoPicturesUrl({ host, port, allowedHosts }: Config): string | undefined {
  if (port === 0) return undefined;
  const mediaHost = isLoopbackHost(host) ? host : (allowedHosts?.[0] ?? host);
  return `http://${formatUrlHost(mediaHost)}:${port}/media`;
}
