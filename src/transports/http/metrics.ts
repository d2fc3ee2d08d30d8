import type { Context, Next } from 'hono';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type CallEvent, signInToolName } from '../../logging/log.ts';

/** The Prometheus metrics of this process, with the functions that update them. */
export type Metrics = ReturnType<typeof createMetrics>;

/**
 * Creates the Prometheus metrics of this process. The label values are tool names, error kinds and HTTP statuses. Text
 * that a caller can choose is never a label value, because each new value creates a new time series.
 * @param toolNames the names of all tools. Their counters start at 0, because Prometheus computes an increase only
 * between two values. Otherwise, alerts would miss the first errors and the first charges.
 */
export function createMetrics(toolNames: readonly string[]) {
  const registry = new Registry();
  const registries = [registry];
  collectDefaultMetrics({ register: registry });
  const callDurations = new Histogram({
    name: 'ad_library_call_seconds',
    help: 'Duration of tool calls in seconds',
    labelNames: ['tool', 'outcome'],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: registries,
  });
  const chargedCredits = new Counter({
    name: 'ad_library_credits_charged_total',
    help: 'Credits that the service charged',
    labelNames: ['tool'],
    registers: registries,
  });
  for (const tool of [...toolNames, signInToolName]) {
    callDurations.zero({ tool, outcome: 'internal' });
    chargedCredits.inc({ tool }, 0);
  }
  const responseCounter = new Counter({
    name: 'ad_library_http_answers_total',
    help: 'Answers of the MCP endpoint',
    labelNames: ['status'],
    registers: registries,
  });
  const addGauge = (name: string, help: string, readValue: () => number) =>
    new Gauge({
      name: `ad_library_${name}`,
      help,
      registers: registries,
      collect() {
        this.set(readValue());
      },
    });
  return {
    /** Records the duration and the charge of a tool call. */
    onCall: ({ tool, kind = 'ok', ms, charged }: CallEvent) => {
      callDurations.observe({ tool, outcome: kind }, ms / 1000);
      if (charged) chargedCredits.inc({ tool }, charged);
    },
    /**
     * Adds one gauge for running calls and one for waiting calls. Both gauges call `countCalls` each time the metrics
     * are read.
     */
    addCallGauges: (countCalls: () => { running: number; waiting: number }) => {
      for (const callState of ['running', 'waiting'] as const)
        addGauge(`calls_${callState}`, `Tool calls that are ${callState}`, () => countCalls()[callState]);
    },
    /** Adds a gauge that is 1 while the state that all replicas share can be reached, and 0 otherwise. */
    addReplicaStateGauge: (isUp: () => boolean) =>
      void addGauge('state_up', 'Whether the state that all replicas share can be reached', () => Number(isUp())),
    /** Counts the response to a request by its HTTP status. */
    countResponse: async (context: Context, next: Next) => {
      await next();
      responseCounter.inc({ status: context.res.status });
    },
    /** Responds with all metrics in the Prometheus text format. */
    serveMetrics: async ({ body }: Context) =>
      body(await registry.metrics(), 200, { 'Content-Type': registry.contentType }),
  };
}
