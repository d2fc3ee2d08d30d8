import type { Context, Next } from 'hono';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { CallEvent } from '../../logging/log.ts';

export type Metrics = ReturnType<typeof createMetrics>;

/** Metrics of this process. Labels are tool names, error kinds and statuses: never a value that a caller can choose. */
export function createMetrics() {
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
    onCall: ({ tool, kind = 'ok', ms, charged }: CallEvent) => {
      calls.observe({ tool, outcome: kind }, ms / 1000);
      if (charged) credits.inc({ tool }, charged);
    },
    /** Reports how many calls are running and waiting when the metrics are read. */
    show: (counts: () => { running: number; waiting: number }) => {
      for (const state of ['running', 'waiting'] as const)
        gauge(`calls_${state}`, `Tool calls ${state}`, () => counts()[state]);
    },
    showState: (isUp: () => boolean) =>
      void gauge('state_up', 'Whether the state that all replicas share can be reached', () => Number(isUp())),
    answers: async (context: Context, next: Next) => {
      await next();
      answers.inc({ status: context.res.status });
    },
    page: async ({ body }: Context) => body(await registry.metrics(), 200, { 'Content-Type': registry.contentType }),
  };
}
