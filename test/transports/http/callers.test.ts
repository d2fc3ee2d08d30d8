import { afterAll, describe, expect, test } from 'vitest';
import type { Config } from '../../../src/config/settings.ts';
import { clientKinds, connectHttp } from '../../support/clients.ts';
import { waitUntil } from '../../support/deadline.ts';
import { deriveUuid } from '../../support/derive-uuid.ts';
import { respondAsDocumented, respondWithBody, startUpstream, toCallerName } from '../../support/faulty-upstream.ts';
import { httpTest as base } from '../../support/fixtures.ts';
import { createGate } from '../../support/gate.ts';
import {
  createToolCall,
  createValidHeaders,
  formatHttpRequest,
  openConnection,
  openRawSocket,
  startHttp,
} from '../../support/http.ts';

const identity = (name: string) => ({ authenticated: true, authSource: 'api_key', apiKey: { name } });

const findCallerNames = (text: string) => new Set(text.match(/caller [\w.-]+/g));

describe('Several API keys on one HTTP server', async () => {
  /** The API waits for this many requests and then responds in reverse order. */
  let requestsPerRound = 1;
  const releaseFunctions: (() => void)[] = [];
  const waitForRound = () =>
    new Promise<void>((resolve) => {
      releaseFunctions.push(resolve);
      if (releaseFunctions.length === requestsPerRound)
        for (const release of releaseFunctions.splice(0).reverse()) release();
    });
  const upstream = await startUpstream(
    respondWithBody(async (name, path) => {
      await waitForRound();
      return path === '/v1/whoami'
        ? identity(name)
        : { items: [{ id: 'ad', headline: name }], cursor: null, hasMore: false };
    }),
  );
  const server = await startHttp({ baseUrl: upstream.baseUrl, apiKey: 'svc_live_of_the_operator' });
  afterAll(async () => {
    await server.close();
    await upstream.close();
  });

  test.each(clientKinds)(
    'eight API keys that make calls at the same time each get only their own results (client: %s)',
    async (kind) => {
      const keys = Array.from({ length: 8 }, (_, index) => `svc_live_${clientKinds.indexOf(kind)}.${index}`);
      const clients = await Promise.all(keys.map((key) => connectHttp(kind, server.url, key)));
      /** Makes the same call several times at once with every client. Returns each result with the name of its caller. */
      const callAll = (times: number, tool: string) =>
        Promise.all(
          clients.flatMap((client, index) =>
            Array.from({ length: times }, async () => {
              const { data, raw } = await client.call(tool);
              return { name: toCallerName(keys[index] ?? ''), data, text: JSON.stringify(raw) };
            }),
          ),
        );
      requestsPerRound = keys.length;
      const answers = await callAll(3, 'whoami');
      for (const { name, data, text } of answers) {
        expect(data).toMatchObject({ apiKey: { name }, receipt: { requestId: name } });
        expect(findCallerNames(text)).toEqual(new Set([name]));
      }
      expect(answers).toHaveLength(24);

      // All keys make the same paid call. The server merges and caches the calls of each key separately.
      const before = upstream.requests.length;
      for (const round of ['sent to the service', 'cached']) {
        for (const { name, text } of await callAll(3, 'search_ads')) {
          expect(findCallerNames(text), round).toEqual(new Set([name]));
        }
        expect(upstream.requests.length - before).toBe(keys.length);
      }
      requestsPerRound = 1;
      await Promise.all(clients.map((client) => client.close()));
    },
  );

  test("a request without an API key never uses the API key of the server's operator", async () => {
    const { status } = await openConnection(server.origin).send({
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify(createToolCall('whoami')),
    });
    expect(status).toBe(401);
    expect(upstream.requests.map(({ key }) => key)).not.toContain('svc_live_of_the_operator');
  });

  test('the log of the HTTP server never contains the API key of a caller', () => {
    expect(server.logged.length).toBeGreaterThan(200);
    expect(server.logged.join('')).not.toContain('svc_live_');
  });
});

describe('A tool call while it runs over HTTP', () => {
  const addedItem = { collection: {}, itemType: 'ads', itemId: deriveUuid('i'), added: true };
  const createSaveArguments = (collection: string) => ({
    collectionId: deriveUuid(collection),
    itemType: 'ads',
    itemId: deriveUuid('i'),
  });

  /** Starts servers in front of an API that delays all responses except `whoami` until a test opens their gates. */
  const test = base.extend('serveHolding', ({ serve, upstream }) => async (config: Partial<Config> = {}) => {
    const gates = new Map<string, ReturnType<typeof createGate>>();
    const gateFor = (path: string) => gates.get(path) ?? gates.set(path, createGate()).get(path) ?? createGate();
    const saves = respondWithBody((_, path) => gateFor(path).opened.then(() => addedItem));
    const { server } = await serve(
      (request, response) => (request.url === '/v1/whoami' ? respondAsDocumented : saves)(request, response),
      config,
    );
    const { call } = openConnection(server.origin);
    /** Waits until all requests that the server has sent must have reached the API. */
    const waitForArrival = async () => {
      for (const _ of [1, 2]) await call('whoami', {}, 'svc_live_somebody');
    };
    const listRequests = () => upstream.requests.filter(({ path }) => path !== '/v1/whoami');
    const release = (collection: string) => gateFor(`/v1/collections/${deriveUuid(collection)}/items`).open();
    return { server, asked: listRequests, arrived: waitForArrival, release };
  });

  test('a free API request is aborted when the HTTP client disconnects', async ({ serveHolding }) => {
    const { server, asked } = await serveHolding();
    const { socket } = openRawSocket(server.port);
    socket.write(formatHttpRequest(createToolCall('get_account')));
    await waitUntil(() => asked().length === 1);
    expect(asked()[0]?.aborted).toBe(false);
    socket.destroy();
    expect(await asked()[0]?.waitForAbort()).toBe(true);
  });

  test.for(clientKinds)(
    'a free API request is aborted when the client cancels the call (client: %s)',
    async (kind, { serveHolding }) => {
      const { server, asked, arrived } = await serveHolding();
      const client = await connectHttp(kind, server.url, 'svc_live_cancels');
      const cancel = new AbortController();
      const called = client.call('get_account', {}, cancel.signal);
      called.catch(() => {});
      await waitUntil(() => asked().length === 1);
      cancel.abort();
      await expect(called).rejects.toThrow();
      expect(await asked()[0]?.waitForAbort()).toBe(true);
      // The call must not be retried, because its caller has left.
      await arrived();
      expect(asked()).toHaveLength(1);
      await client.close();
    },
  );

  test('a cancel notification does not cancel a call with another API key', async ({ serveHolding }) => {
    const { server, asked, arrived } = await serveHolding();
    const connections = ['a', 'a', 'b'].map(() => openConnection(server.origin));
    const send = (key: string, body: object, { send: post } = openConnection(server.origin)) =>
      post({ headers: createValidHeaders(`svc_live_${key}`), body: JSON.stringify(body) });
    const calls = ['a', 'a', 'b'].map((key, index) =>
      send(key, createToolCall('get_account', {}, 7), connections[index]).catch(() => undefined),
    );
    await waitUntil(() => asked().length === 3);
    const notice = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } };
    for (const key of ['a', 'c']) expect((await send(key, notice)).status).toBe(202);
    await arrived();
    expect(asked().map(({ aborted }) => aborted)).toEqual([false, false, false]);
    expect((await send('b', notice)).status).toBe(202);
    expect(
      await asked()
        .find(({ key }) => key === 'svc_live_b')
        ?.waitForAbort(),
    ).toBe(true);
    await waitUntil(() => server.logged.some((line) => line.includes('"kind":"cancelled"')));
    await Promise.all(connections.map((connection) => connection.close()));
    await Promise.all(calls);
  });

  test('a write to the API that the client cancels is finished even while the server shuts down', async ({
    serveHolding,
  }) => {
    const { server, asked, arrived, release } = await serveHolding({ callsPerKey: 1 });
    const client = await connectHttp('v2 auto', server.url, 'svc_live_writer');
    const first = client.call('add_collection_item', createSaveArguments('first'));
    await waitUntil(() => asked().length === 1);
    const cancel = new AbortController();
    const second = client.call('add_collection_item', createSaveArguments('second'), cancel.signal);
    second.catch(() => {});
    await arrived();
    release('first');
    await first;
    await waitUntil(() => asked().length === 2);
    cancel.abort();
    await expect(second).rejects.toThrow();
    await arrived();
    let isClosed = false;
    const closing = server.close(5000).then(() => {
      isClosed = true;
    });
    for (let eventLoopTurn = 0; eventLoopTurn < 100; eventLoopTurn++)
      await new Promise((resolve) => setImmediate(resolve));
    expect({ isClosed, aborted: asked()[1]?.aborted }).toEqual({ isClosed: false, aborted: false });
    release('second');
    await closing;
    expect(asked()[1]?.aborted).toBe(false);
    expect(server.logged.filter((line) => /"call"/.test(line) && /add_collection_item/.test(line))).toHaveLength(2);
    await client.close();
  });
});
