import type { Handler, MiddlewareHandler } from 'hono';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { OnCall } from '../../log/log.ts';

export interface Metrics {
  /** Counts a call. */
  onCall: OnCall;
  /** Reports how many calls are running and waiting when the metrics are read. */
  show(counts: () => { running: number; waiting: number }): void;
  /** Reports whether the shared state can be reached. */
  showState(isUp: () => boolean): void;
  /** Counts answers by their status. */
  answers: MiddlewareHandler;
  /** All metrics, in the text format of Prometheus. */
  page: Handler;
}

/** Metrics of this process. Labels are tool names, error kinds and statuses: never a value that a caller can choose. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const calls = new Histogram({
    name: 'ad_library_call_seconds',
    help: 'Tool calls and how long they took',
    labelNames: ['tool', 'outcome'],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  });
  const credits = new Counter({
    name: 'ad_library_credits_charged_total',
    help: 'Credits the service charged',
    labelNames: ['tool'],
    registers,
  });
  const answers = new Counter({
    name: 'ad_library_http_answers_total',
    help: 'Answers of the MCP endpoint',
    labelNames: ['status'],
    registers,
  });
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name: `ad_library_${name}`,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  return {
    onCall: ({ tool, kind = 'ok', ms, charged }) => {
      calls.observe({ tool, outcome: kind }, ms / 1000);
      if (charged) credits.inc({ tool }, charged);
    },
    show: (counts) => {
      for (const state of ['running', 'waiting'] as const)
        gauge(`calls_${state}`, `Tool calls ${state}`, () => counts()[state]);
    },
    showState: (isUp) =>
      void gauge('state_up', 'Whether the state that all replicas share can be reached', () => Number(isUp())),
    answers: async (context, next) => {
      await next();
      answers.inc({ status: context.res.status });
    },
    page: async ({ body }) => body(await registry.metrics(), 200, { 'Content-Type': registry.contentType }),
  };
}
