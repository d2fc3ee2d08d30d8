import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { waitFor } from './deadline.ts';
import { listenOnLoopback } from './loopback.ts';

/** Handles a request to the fake API: responds in a certain way, or never responds. */
export type Behaviour = (request: IncomingMessage, response: ServerResponse, body?: string) => void;

interface ReceivedRequest {
  method: string;
  /** The request path with its query. */
  path: string;
  headers: IncomingMessage['headers'];
  body: string;
  /** The caller's API key, from the `Authorization` header. */
  key: string;
  /** True if the server under test closed the connection before it received the whole response. */
  aborted: boolean;
  /**
   * Resolves with true when the server under test closes the connection before the end of the response. Rejects after a
   * timeout.
   */
  waitForAbort(): Promise<true>;
}

/** A fake API whose responses the test chooses. `requests` lists the received requests. */
export type Upstream = ReturnType<typeof createResponder>['upstream'] & {
  baseUrl: string;
  /**
   * Responds to one API key with this behavior. Returns an `Upstream` that records the requests of this key, which the
   * original `Upstream` no longer records.
   */
  forKey(key: string, behaviour: Behaviour): Upstream;
  close(): Promise<void>;
};

/** Starts a fake API over HTTP. Each test chooses its responses and faults. */
export async function startUpstream(initialBehaviour = respondWithJson({})): Promise<Upstream> {
  const respondersByKey = new Map<string, ReturnType<typeof createResponder>>();
  const server = createServer(async (request, response) => {
    const { method = '', url: path = '', headers } = request;
    // The server requests the filter description once from a loopback URL. Do not record this request.
    if (path.endsWith('/filters.json')) return void response.writeHead(404).end();
    const abort = new Promise<true>((resolve) => {
      response.once('close', () => {
        received.aborted = !response.writableFinished;
        if (!response.writableEnded) resolve(true);
      });
    });
    const waitForAbort = () => waitFor(abort, `the caller to close the connection of ${method} ${path}`);
    const received: ReceivedRequest = {
      ...{ method, path, headers, body: '', key: readKey(request), aborted: false },
      waitForAbort,
    };
    for await (const chunk of request.setEncoding('utf8')) received.body += chunk;
    const responder = respondersByKey.get(received.key) ?? defaultResponder;
    responder.takeBehaviour(received)(request, response, received.body);
  });
  server.on('clientError', (_, socket) => socket.destroy());
  const { port, close } = await listenOnLoopback(server);
  const sharedMembers: Pick<Upstream, 'baseUrl' | 'forKey' | 'close'> = {
    baseUrl: `http://127.0.0.1:${port}`,
    forKey: (key, behaviour) => {
      const responder = createResponder(behaviour);
      respondersByKey.set(key, responder);
      return Object.assign(responder.upstream, sharedMembers);
    },
    close,
  };
  const defaultResponder = createResponder(initialBehaviour);
  return Object.assign(defaultResponder.upstream, sharedMembers);
}

function createResponder(initialBehaviour: Behaviour) {
  let behaviours = [initialBehaviour];
  const waiters: { count: number; resolve: () => void }[] = [];
  const upstream = {
    requests: [] as ReceivedRequest[],
    /** The response to `GET /v1/credits`. If undefined, this request is handled like any other. */
    credits: undefined as Behaviour | undefined,
    /**
     * Sets the next responses and clears `requests`. With several behaviors, each one handles one request, and the last
     * one also handles all further requests.
     */
    respondWith: (...nextBehaviours: Behaviour[]): void => {
      behaviours = nextBehaviours;
      upstream.requests = [];
    },
    /** Resolves when `count` requests have arrived since the last `respondWith`. Rejects after a timeout. */
    waitForRequests: (count: number) => {
      const arrival = new Promise<void>((resolve) =>
        upstream.requests.length >= count ? resolve() : waiters.push({ count, resolve }),
      );
      return waitFor(arrival, `request number ${count} to reach the service`);
    },
  };
  const takeBehaviour = (received: ReceivedRequest): Behaviour => {
    upstream.requests.push(received);
    for (const { count, resolve } of waiters) if (upstream.requests.length >= count) resolve();
    const creditsBehaviour = received.path.endsWith('/v1/credits') && upstream.credits;
    return creditsBehaviour || (behaviours.length > 1 ? behaviours.shift() : behaviours[0]) || (() => {});
  };
  return { upstream, takeBehaviour };
}

const readKey = ({ headers }: IncomingMessage) => (headers.authorization ?? '').replace('Bearer ', '');

/**
 * Returns a name for the owner of an API key, e.g. `caller test` for `svc_live_test`. The server would mask a name that
 * looks like a key.
 */
export const toCallerName = (key: string): string => key.replace('svc_live_', 'caller ');

/** Responds with the JSON body that `buildBody` returns or resolves with. The request id names the caller. */
export const respondWithBody =
  (buildBody: (caller: string, path: string) => object | Promise<object>): Behaviour =>
  async (request, response) => {
    const caller = toCallerName(readKey(request));
    const value = await buildBody(caller, request.url ?? '');
    respondWithJson(value, { headers: { 'x-service-request-id': caller } })(request, response);
  };

/** Responds to `whoami` as soon as the gate opens. */
export const respondWhenOpen = ({ opened }: { opened: Promise<void> }): Behaviour =>
  respondWithBody(() => opened.then(() => ({ authenticated: true, authSource: 'api_key' })));

/** Responds with a JSON body. */
export const respondWithJson =
  (
    body: unknown,
    { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
  ): Behaviour =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json', 'x-service-request-id': 'req-1', ...headers });
    response.end(JSON.stringify(body));
  };

/** Responds with exactly these bytes. */
export const respondWithBytes =
  (body: Uint8Array | string, headers: Record<string, string> = {}): Behaviour =>
  (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', ...headers });
    response.end(body);
  };

/** Responds with an error in the documented format. */
export const respondWithError = (status: number, error: object = {}): Behaviour =>
  respondWithJson(
    { error: { code: 'some_code', message: 'The service says no.', requestId: 'req-e', ...error } },
    { status },
  );

/** Returns the response headers with the charge and the remaining credits. */
export const createCreditHeaders = (charged: number | string, remaining: number | string = 100) => ({
  'x-service-credits-charged': String(charged),
  'x-service-credits-remaining': String(remaining),
});

/** Responds to each API operation with its documented example. Only paid operations cost a credit. */
export const respondAsDocumented: Behaviour = (request, response) => {
  const url = new URL(request.url ?? '', 'http://upstream');
  const documentedBody = Object.entries(documentedBodies).find(([path]) =>
    new RegExp(`^${path}$`).test(`${request.method} ${url.pathname}`),
  );
  const isGated = /POST .*search$|GET .*\/(ads|pages|collections)\//.test(`${request.method} ${url.pathname}`);
  respondWithJson(documentedBody?.[1] ?? {}, { headers: createCreditHeaders(isGated ? 1 : 0) })(request, response);
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
/** The ad in the responses of `respondAsDocumented`. */
export const ad = { id: '6a1f7e0c-0000-4000-8000-000000000001', headline: 'Try it' };
/** The advertiser page in the responses of `respondAsDocumented`. */
export const page = { pageId: '4711', pageName: 'A page' };
const account = {
  userId: '6a1f7e0c-0000-4000-8000-000000000002',
  billingUserId: '6a1f7e0c-0000-4000-8000-000000000003',
  planId: 'pro',
  isTeamMember: false,
  subscriptionStatus: 'active',
};
/** Returns a `UsageLimit` object with this usage in the current hour and day. */
export const createUsageLimit = (used: number, limit = 400) => ({
  isLimitReached: used >= limit,
  limitType: used >= limit ? 'hourly' : 'none',
  hourlyCredits: used,
  hourlyLimit: limit,
  dailyCredits: used,
  dailyLimit: 5000,
});
/** Returns a `CreditStatus` object. */
export const createCreditStatus = (usageLimit: object = createUsageLimit(1)) => ({
  planId: 'pro',
  billingUserId: account.billingUserId,
  periodStart: 1_790_000_000,
  periodEnd: 1_792_600_000,
  credits: 90,
  creditsMax: 100,
  usageLimit,
});
const documentedBodies: Record<string, unknown> = {
  'GET /v1/whoami': {
    authenticated: true,
    authSource: 'api_key',
    user: { ...account, name: 'Ada', emailAddress: null },
    apiKey: { id: '6a1f7e0c-0000-4000-8000-000000000004', name: 'Key', keyPrefix: 'svc_live_ab' },
    oauthClientId: null,
  },
  'GET /v1/account': account,
  'GET /v1/credits': createCreditStatus(),
  'GET /v1/collections': { items: [collection] },
  'GET /v1/collections/[^/]+/items': { collection, itemType: 'ads', items: [ad], cursor: null, hasMore: false },
  'POST /v1/collections/[^/]+/items': { collection, itemType: 'ads', itemId: ad.id, added: true },
  'POST /v1/ads/search': { items: [ad], cursor: null, hasMore: false, totalHits: 1 },
  'GET /v1/ads/[^/]+': ad,
  'POST /v1/pages/search': { items: [page], cursor: null, hasMore: false, totalHits: 1 },
  'GET /v1/pages/[^/]+': page,
};

/** Broken responses, by name. Each name continues the sentence "the API …" in test titles. */
export const faults = {
  resets: (_, response) => response.socket?.resetAndDestroy(),
  'closes without an answer': (_, response) => response.socket?.end(),
  'ends in the middle of the body': (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
    response.write('{"items":[');
    setImmediate(() => response.socket?.destroy());
  },
  'sends more than its content-length': (_, response) => {
    response.socket?.end('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{"items":[],"cursor":null}');
  },
  'does not speak HTTP': (_, response) => response.socket?.end('SSH-2.0-OpenSSH_9.6\r\n'),
  'sends a header of 200 KB': (_, response) =>
    response.socket?.end(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(200_000)}\r\n\r\n`),
  'sends an invalid chunk': (_, response) =>
    response.socket?.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'),
  'sends a web page': (_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<!doctype html><title>Sign in</title><script>alert(1)</script>');
  },
  'sends bad JSON': respondWithBytes('{"items": [}'),
  'sends nothing': respondWithBytes(''),
  'sends half a JSON text': respondWithBytes('{"items":[{"id":"x"'),
  'sends null': respondWithBytes('null'),
  'sends a list': respondWithBytes('[]'),
  'sends a number': respondWithBytes('17'),
  'sends an empty object as a list of items': respondWithBytes('{"items":{}}'),
  'sends compressed bytes that nobody asked for': respondWithBytes(new Uint8Array([31, 139, 8, 0, 0, 0, 0, 0]), {
    'content-encoding': 'gzip',
  }),
  'sends bytes that are not text': respondWithBytes(new Uint8Array([0xff, 0xfe, 0x00, 0xc3, 0x28])),
  'sends 40 MB': (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const block = Buffer.alloc(1024 * 1024, ' ');
    let sentBlocks = 0;
    const writeMore = () => {
      while (sentBlocks++ < 40) if (!response.write(block)) return void response.once('drain', writeMore);
      response.end('{}');
    };
    response.on('error', () => {});
    writeMore();
  },
  'sends ten thousand nested lists': respondWithBytes(`${'['.repeat(10_000)}${']'.repeat(10_000)}`),
} satisfies Record<string, Behaviour>;

/** Responses that never end, by name, for tests of timeouts. */
export const delays = {
  hangs: () => {},
  'hangs after the headers': (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
  },
} satisfies Record<string, Behaviour>;
