import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listenOnLoopback } from './loopback.ts';

export type Behaviour = (request: IncomingMessage, response: ServerResponse, body?: string) => void;

interface Seen {
  method: string;
  /** Path and query as they came. */
  path: string;
  headers: IncomingMessage['headers'];
  body: string;
  /** The caller's key, as its header carries it. */
  key: string;
  /** Whether the caller hung up before it was answered. */
  aborted: boolean;
  /** Resolves when it did. */
  left: Promise<void>;
}

export type Upstream = ReturnType<typeof doing>['upstream'] & {
  baseUrl: string;
  /** The same for one key alone, of which this one sees nothing from then on. */
  as(key: string, behaviour: Behaviour): Upstream;
  close(): Promise<void>;
};

/**
 * A service that does what a test tells it, over real HTTP.
 * @param behaviour what it does at first
 */
export async function startUpstream(behaviour = json({})): Promise<Upstream> {
  const keyed = new Map<string, ReturnType<typeof doing>>();
  const server = createServer(async (request, response) => {
    const { method = '', url: path = '', headers } = request;
    // Servers ask a loopback address once whether it describes its filters.
    if (path.endsWith('/filters.json')) return void response.writeHead(404).end();
    const left = new Promise<void>((resolve) => {
      response.once('close', () => {
        seen.aborted = !response.writableFinished;
        if (!response.writableEnded) resolve();
      });
    });
    const seen: Seen = { method, path, headers, body: '', key: keyOf(request), aborted: false, left };
    for await (const chunk of request.setEncoding('utf8')) seen.body += chunk;
    (keyed.get(seen.key) ?? all).turn(seen)(request, response, seen.body);
  });
  server.on('clientError', (_, socket) => socket.destroy());
  const { port, close } = await listenOnLoopback(server);
  const common: Pick<Upstream, 'baseUrl' | 'as' | 'close'> = {
    baseUrl: `http://127.0.0.1:${port}`,
    as: (key, behaviour) => {
      const own = doing(behaviour);
      keyed.set(key, own);
      return Object.assign(own.upstream, common);
    },
    close,
  };
  const all = doing(behaviour);
  return Object.assign(all.upstream, common);
}

function doing(behaviour: Behaviour) {
  let turns = [behaviour];
  const waiting: { count: number; resolve: () => void }[] = [];
  const upstream = {
    requests: [] as Seen[],
    /** What `GET /v1/credits` gets; undefined: the same as everything else. */
    credits: undefined as Behaviour | undefined,
    /** What it does from now on: with every request, or in turn, the last one from then on. */
    does: (...behaviours: Behaviour[]): void => {
      turns = behaviours;
      upstream.requests = [];
    },
    /** Resolves when so many requests have come in. */
    reached: (count: number) =>
      new Promise<void>((resolve) =>
        upstream.requests.length >= count ? resolve() : waiting.push({ count, resolve }),
      ),
  };
  const turn = (seen: Seen): Behaviour => {
    upstream.requests.push(seen);
    for (const { count, resolve } of waiting) if (upstream.requests.length >= count) resolve();
    const asksCredits = seen.path.endsWith('/v1/credits') && upstream.credits;
    return asksCredits || (turns.length > 1 ? turns.shift() : turns[0]) || (() => {});
  };
  return { upstream, turn };
}

const keyOf = ({ headers }: IncomingMessage) => (headers.authorization ?? '').replace('Bearer ', '');

/** Whose key it is, in words that are no key: what looks like one is masked wherever it comes back. */
export const nameOf = (key: string): string => key.replace('svc_live_', 'caller ');

/** Answers once there is an answer; the request id names the caller. */
export const answering =
  (answer: (caller: string, path: string) => object | Promise<object>): Behaviour =>
  async (request, response) => {
    const caller = nameOf(keyOf(request));
    const value = await answer(caller, request.url ?? '');
    json(value, { headers: { 'x-service-request-id': caller } })(request, response);
  };

/** Identifies the caller once the gate is open. */
export const heldBy = ({ opened }: { opened: Promise<void> }): Behaviour =>
  answering(() => opened.then(() => ({ authenticated: true, authSource: 'api_key' })));

export const json =
  (
    body: unknown,
    { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
  ): Behaviour =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json', 'x-service-request-id': 'req-1', ...headers });
    response.end(JSON.stringify(body));
  };

export const bytes =
  (body: Uint8Array | string, headers: Record<string, string> = {}): Behaviour =>
  (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', ...headers });
    response.end(body);
  };

/** The error body of the document. */
export const refusal = (status: number, error: object = {}): Behaviour =>
  json({ error: { code: 'some_code', message: 'The service says no.', requestId: 'req-e', ...error } }, { status });

export const paid = (charged: number | string, remaining: number | string = 100) => ({
  'x-service-credits-charged': String(charged),
  'x-service-credits-remaining': String(remaining),
});

/** Answers in the document's shapes, one for each operation; what is not gated is charged nothing. */
export const documented: Behaviour = (request, response) => {
  const url = new URL(request.url ?? '', 'http://upstream');
  const answer = Object.entries(answers).find(([path]) =>
    new RegExp(`^${path}$`).test(`${request.method} ${url.pathname}`),
  );
  const isGated = /POST .*search$|GET .*\/(ads|pages|collections)\//.test(`${request.method} ${url.pathname}`);
  json(answer?.[1] ?? {}, { headers: paid(isGated ? 1 : 0) })(request, response);
};

const collection = {
  id: '6a1f7e0c-0000-4000-8000-00000000c011',
  name: 'Saved',
  type: 'personal',
  isDefault: true,
  defaultType: 'ads',
  isOwner: true,
  adCount: 1,
  pageCount: 0,
};
export const ad = { id: '6a1f7e0c-0000-4000-8000-000000000001', headline: 'Try it' };
export const page = { pageId: '4711', pageName: 'A page' };
const account = {
  userId: '6a1f7e0c-0000-4000-8000-000000000002',
  billingUserId: '6a1f7e0c-0000-4000-8000-000000000003',
  planId: 'pro',
  isTeamMember: false,
  subscriptionStatus: 'active',
};
export const usage = (used: number, limit = 400) => ({
  isLimitReached: used >= limit,
  limitType: used >= limit ? 'hourly' : 'none',
  hourlyCredits: used,
  hourlyLimit: limit,
  dailyCredits: used,
  dailyLimit: 5000,
});
export const creditStatus = (usageLimit: object = usage(1)) => ({
  planId: 'pro',
  billingUserId: account.billingUserId,
  periodStart: 1_790_000_000,
  periodEnd: 1_792_600_000,
  credits: 90,
  creditsMax: 100,
  usageLimit,
});
const answers: Record<string, unknown> = {
  'GET /v1/whoami': {
    authenticated: true,
    authSource: 'api_key',
    user: { ...account, name: 'Ada', emailAddress: null },
    apiKey: { id: '6a1f7e0c-0000-4000-8000-000000000004', name: 'Key', keyPrefix: 'svc_live_ab' },
    oauthClientId: null,
  },
  'GET /v1/account': account,
  'GET /v1/credits': creditStatus(),
  'GET /v1/collections': { items: [collection] },
  'GET /v1/collections/[^/]+/items': { collection, itemType: 'ads', items: [ad], cursor: null, hasMore: false },
  'POST /v1/collections/[^/]+/items': { collection, itemType: 'ads', itemId: ad.id, added: true },
  'POST /v1/ads/search': { items: [ad], cursor: null, hasMore: false, totalHits: 1 },
  'GET /v1/ads/[^/]+': ad,
  'POST /v1/pages/search': { items: [page], cursor: null, hasMore: false, totalHits: 1 },
  'GET /v1/pages/[^/]+': page,
};

export const faults = {
  resets: (_, response) => response.socket?.resetAndDestroy(),
  'closes without a word': (_, response) => response.socket?.end(),
  'breaks off in the body': (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
    response.write('{"items":[');
    setImmediate(() => response.socket?.destroy());
  },
  'promises less than it sends': (_, response) => {
    response.socket?.end('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{"items":[],"cursor":null}');
  },
  'is not HTTP': (_, response) => response.socket?.end('SSH-2.0-OpenSSH_9.6\r\n'),
  'sends a header of 200 KB': (_, response) =>
    response.socket?.end(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(200_000)}\r\n\r\n`),
  'breaks its own chunks': (_, response) =>
    response.socket?.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'),
  'sends a web page': (_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<!doctype html><title>Sign in</title><script>alert(1)</script>');
  },
  'sends bad JSON': bytes('{"items": [}'),
  'sends nothing': bytes(''),
  'sends half a JSON text': bytes('{"items":[{"id":"x"'),
  'sends null': bytes('null'),
  'sends a list': bytes('[]'),
  'sends a number': bytes('17'),
  'sends an empty object as a list of items': bytes('{"items":{}}'),
  'sends compressed bytes that nobody asked for': bytes(new Uint8Array([31, 139, 8, 0, 0, 0, 0, 0]), {
    'content-encoding': 'gzip',
  }),
  'sends bytes that are no text': bytes(new Uint8Array([0xff, 0xfe, 0x00, 0xc3, 0x28])),
  'sends 40 MB': (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const piece = Buffer.alloc(1024 * 1024, ' ');
    let sent = 0;
    const more = () => {
      while (sent++ < 40) if (!response.write(piece)) return void response.once('drain', more);
      response.end('{}');
    };
    response.on('error', () => {});
    more();
  },
  'nests ten thousand deep': bytes(`${'['.repeat(10_000)}${']'.repeat(10_000)}`),
} satisfies Record<string, Behaviour>;

export const delays = {
  hangs: () => {},
  'hangs after its head': (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
  },
} satisfies Record<string, Behaviour>;
