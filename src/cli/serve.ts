import { openApp } from '../app.ts';
import { isLoopback } from '../config/setting-values.ts';
import type { Config } from '../config/settings.ts';
import { createStructuredLog } from '../log/structured-log.ts';
import { createHttpApp } from '../serve/http/http-app.ts';
import { hostInAddress, type Listener, listen } from '../serve/http/listen.ts';

/** Serves MCP over HTTP as the settings say; closing it answers what is under way, within the deadline. */
export async function serveHttp(config: Config, write: (line: string) => void): Promise<Listener> {
  const { metrics: withMetrics, demo, callsAtOnce, callsPerKey, callsWaiting } = config;
  const plain = createStructuredLog(config.logLevel, write);
  const metrics = withMetrics ? (await import('../serve/http/metrics.ts')).createMetrics() : undefined;
  const log = metrics?.counting(plain) ?? plain;
  const mediaUrl = addressOfMedia(config);
  const app = await openApp({ config, log, now: Date.now, random: Math.random, mediaUrl });
  const http = createHttpApp({
    ...config,
    catalog: app.catalog,
    log,
    now: Date.now,
    demoKey: demo ? app.credentials.apiKey : undefined,
    pictures: app.pictures,
    limits: { atOnce: callsAtOnce, perKey: demo ? callsAtOnce : callsPerKey, waiting: callsWaiting },
    metrics,
  });
  // A call may be silent for its whole time; past that it is the reader who is slow.
  const listener = await listen(http.fetch, { ...config, idleMs: config.timeoutMs + 30_000, fastAnswers: true });
  return {
    address: listener.address,
    close: async (deadlineMs) => {
      const deadline = performance.now() + deadlineMs;
      await Promise.race([http.drain(), new Promise((resolve) => setTimeout(resolve, deadlineMs).unref())]);
      await listener.close(Math.max(0, deadline - performance.now()));
      await app.close();
    },
  };
}

/** As callers reach it; a port that the system is yet to choose cannot be told beforehand. */
function addressOfMedia({ host, port, allowedHosts }: Config): string | undefined {
  if (port === 0) return undefined;
  const name = isLoopback(host) ? host : (allowedHosts?.[0] ?? host);
  return `http://${hostInAddress(name)}:${port}/media`;
}
