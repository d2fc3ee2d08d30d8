import type { Context, Next } from 'hono';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { CallEvent } from '../../logging/log.ts';

/** The Prometheus metrics of this process. */
export type Metrics = ReturnType<typeof createMetrics>;

/**
 * Creates the Prometheus metrics of this process. Labels are names of tools, kinds of errors and HTTP statuses. A label is
 * never a value that a caller can choose, because each new value would create a new time series.
 */
export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const callDurations = new Histogram({
    name: 'ad_library_call_seconds',
    help: 'Duration of tool calls in seconds',
    labelNames: ['tool', 'outcome'],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  });
  const chargedCredits = new Counter({
    name: 'ad_library_credits_charged_total',
    help: 'Credits that the service charged',
    labelNames: ['tool'],
    registers,
  });
  const answerCount = new Counter({
    name: 'ad_library_http_answers_total',
    help: 'Answers of the MCP endpoint',
    labelNames: ['status'],
    registers,
  });
  const addGauge = (name: string, help: string, readValue: () => number) =>
    new Gauge({
      name: `ad_library_${name}`,
      help,
      registers,
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
    /** Adds gauges for the running and the waiting calls. `countCalls` runs each time the metrics are read. */
    addCallGauges: (countCalls: () => { running: number; waiting: number }) => {
      for (const state of ['running', 'waiting'] as const)
        addGauge(`calls_${state}`, `Tool calls that are ${state}`, () => countCalls()[state]);
    },
    /** Adds a gauge that is 1 while the shared state can be reached, and 0 otherwise. */
    addStateGauge: (isUp: () => boolean) =>
      void addGauge('state_up', 'Whether the state that all replicas share can be reached', () => Number(isUp())),
    /** Counts the answer to a request by its HTTP status. */
    countAnswer: async (context: Context, next: Next) => {
      await next();
      answerCount.inc({ status: context.res.status });
    },
    /** Answers with all metrics in the text format of Prometheus. */
    servePage: async ({ body }: Context) =>
      body(await registry.metrics(), 200, { 'Content-Type': registry.contentType }),
  };
}
