import { type Context, Hono } from 'hono';
import type { Log } from '../../log/log.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import { type CallLimits, limitCalls } from '../call-limits.ts';
import { messagesIn } from '../messages.ts';
import { limitRefusals } from './auth-rate-limit.ts';
import { serveBothEras } from './both-eras.ts';
import { createGate } from './drain.ts';
import { hangUpOf } from './exchange.ts';
import { addressedToUs, json, type Keyed, keyed, readableBy, refuse } from './guards.ts';
import { createKeyStandings } from './known-keys.ts';
import type { Metrics } from './metrics.ts';
import { readJson } from './read-json.ts';
import { createPartition } from './tenant-id.ts';

export interface HttpOptions {
  catalog: Catalog;
  log: Log;
  now: () => number;
  /** Where it listens: always a name of ours while no others are given. */
  host?: string;
  /** Host names a request may be addressed to; loopback names when absent. */
  allowedHosts?: readonly string[] | undefined;
  /** Host names of web pages that may call; none when empty. */
  allowedOrigins: readonly string[];
  /** In demo mode every caller shares this key and brings none. */
  demoKey?: string | undefined;
  /** In demo mode, what answers requests for the pictures of ads. */
  pictures?: ((request: Request) => Promise<Response>) | undefined;
  limits: CallLimits;
  /** Refused keys a minute from one address before it has to wait; 0 for any number. */
  refusalsPerMinute: number;
  metrics?: Metrics | undefined;
}

export interface HttpApp {
  fetch: Hono<Keyed>['fetch'];
  /** Refuses what comes in from now on; resolves when what was under way is answered. */
  drain(): Promise<void>;
}

/** Arguments of a call are ids and filters: a body past this is not one of ours. */
const bodyBounds = { bytes: 1024 * 1024, depth: 64 };

/** A batch (revision 2025-03-26) is one request and many calls. */
const mostCallsInBatch = 20;

/**
 * Streamable HTTP without sessions: any replica answers any request, in the era it speaks, with the key that came
 * with it. Nothing of a request outlives it but the answers kept under its key.
 */
export function createHttpApp(options: HttpOptions): HttpApp {
  const { log, metrics, demoKey, pictures, refusalsPerMinute } = options;
  const limit = limitRefusals(refusalsPerMinute);
  const standings = createKeyStandings(limit);
  const calls = limitCalls(standings.learningFrom(options.catalog), options);
  const serve = serveBothEras(calls.catalog, (error) => log.debug('refused', { error: error.message }));
  const gate = createGate();
  const toUs = addressedToUs(options.allowedHosts, options.allowedOrigins, options.host);

  const app = new Hono<Keyed>();
  app.get('/healthz', ({ json }) => json({ status: 'ok', version: options.catalog.serverInfo.version }));
  app.get('/readyz', ({ json }) => (gate.isShut() ? json({ status: 'draining' }, 503) : json({ status: 'ready' })));
  if (metrics) {
    metrics.show(calls.counts);
    app.get('/metrics', toUs, metrics.page);
    app.use('/mcp', metrics.answers);
  }
  if (pictures) app.get('/media/*', toUs, gate.pass, ({ req }) => pictures(new Request(req.url)));
  app.use('/mcp', toUs, gate.pass);
  if (options.allowedOrigins.length > 0) app.use('/mcp', readableBy(options.allowedOrigins));
  if (demoKey === undefined) app.post('/mcp', keyed({ limit, standings, partition: createPartition() }));
  app.post('/mcp', json, async (context) => {
    const body = await bodyOf(context);
    if (body instanceof Response) return body;
    const { key, owner } = demoKey === undefined ? context.get('caller') : { key: demoKey, owner: '' };
    const onHangUp = hangUpOf(context.env.outgoing);
    return serve({ request: context.req.raw, body: body.value, owner, key, onHangUp });
  });
  addRefusals(app, log);
  return {
    fetch: app.fetch,
    drain: async () => {
      await gate.shut();
      await calls.idle();
    },
  };
}

async function bodyOf(context: Context): Promise<{ value: unknown } | Response> {
  const body = await readJson(context.req.raw, bodyBounds);
  if ('value' in body) {
    const calls = messagesIn(body.value).filter(({ method }) => method === 'tools/call').length;
    const problem = `A batch may hold ${mostCallsInBatch} calls at most.`;
    return calls > mostCallsInBatch ? refuse(context, 400, problem, -32_600) : body;
  }
  switch (body.refused) {
    case 'too large':
      // The rest of the body is still on its way: only a closed connection ends it.
      context.header('Connection', 'close');
      return refuse(context, 413, `A request may hold ${bodyBounds.bytes / 1024} KB at most.`);
    case 'too deep':
      return refuse(context, 400, `JSON may nest ${bodyBounds.depth} levels at most.`, -32_600);
    case 'not JSON':
      return refuse(context, 400, 'The body is not JSON.', -32_700);
  }
}

function addRefusals(app: Hono<Keyed>, log: Log): void {
  app.all('/mcp', (context) => {
    context.header('Allow', 'POST');
    return refuse(context, 405, 'Only POST is served here: without sessions there is nothing to listen to or to end.');
  });
  app.notFound((context) => refuse(context, 404, 'Nothing is served here. The MCP endpoint is POST /mcp.'));
  app.onError((error, context) => {
    log.error('a request failed', { error: error.stack ?? error.message });
    return refuse(context, 500, 'The server failed on its own account.');
  });
}
