import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientKinds, connectHttp } from '../../support/clients.ts';
import { answering, delays, nameOf, startUpstream, type Upstream } from '../../support/faulty-upstream.ts';
import { bareSocket, callOf, goodHeaders, type HttpServer, keepAlive, startHttp, until } from '../../support/http.ts';
import { uuidOf } from '../../support/uuid-of.ts';

const identity = (name: string) => ({ authenticated: true, authSource: 'api_key', apiKey: { name } });

const namesIn = (text: string) => new Set(text.match(/caller [\w.-]+/g));

describe('callers', () => {
  let upstream: Upstream;
  let server: HttpServer;
  /** Requests are held until so many have come, and answered the last one first. */
  let together = 1;
  const held: (() => void)[] = [];
  const hold = () =>
    new Promise<void>((resolve) => {
      held.push(resolve);
      if (held.length === together) for (const release of held.splice(0).reverse()) release();
    });
  beforeAll(async () => {
    upstream = await startUpstream(
      answering(async (name, path) => {
        await hold();
        return path === '/v1/whoami'
          ? identity(name)
          : { items: [{ id: 'ad', headline: name }], cursor: null, hasMore: false };
      }),
    );
    server = await startHttp({ baseUrl: upstream.baseUrl, apiKey: 'svc_live_of_the_operator' });
  });
  afterAll(async () => {
    await server.close();
    await upstream.close();
  });

  test.each(clientKinds)('60 keys, 4 calls each at once: every answer is its own (%s)', async (kind) => {
    const sixty = Array.from({ length: 60 }, (_, index) => `svc_live_${clientKinds.indexOf(kind)}.${index}`);
    const clients = await Promise.all(sixty.map((key) => connectHttp(kind, server.url, key)));
    /** The same call of every client so many times at once; by each result, whose it must be. */
    const callAll = (times: number, tool: string) =>
      Promise.all(
        clients.flatMap((client, index) =>
          Array.from({ length: times }, async () => {
            const { data, raw } = await client.call(tool);
            return { name: nameOf(sixty[index] ?? ''), data, text: JSON.stringify(raw) };
          }),
        ),
      );
    together = sixty.length;
    const answers = await callAll(4, 'whoami');
    for (const { name, data, text } of answers) {
      expect(data).toMatchObject({ apiKey: { name }, receipt: { requestId: name } });
      expect(namesIn(text)).toEqual(new Set([name]));
    }
    expect(answers).toHaveLength(240);

    // The same paid question of them all: coalesced, kept and condensed for each key by itself.
    const before = upstream.requests.length;
    for (const round of ['asked', 'kept']) {
      for (const { name, text } of await callAll(3, 'search_ads')) {
        expect(namesIn(text), round).toEqual(new Set([name]));
      }
      expect(upstream.requests.length - before).toBe(60);
    }
    together = 1;
    await Promise.all(clients.map((client) => client.close()));
  });

  test('are never served with the key of the operator', async () => {
    const { status } = await keepAlive(server.origin).send({
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify(callOf('whoami')),
    });
    expect(status).toBe(401);
    expect(upstream.requests.map(({ key }) => key)).not.toContain('svc_live_of_the_operator');
  });

  test('leave no key in the log', () => {
    expect(server.logged.length).toBeGreaterThan(600);
    expect(server.logged.join('')).not.toContain('svc_live_');
  });
});

describe('a call under way', () => {
  let upstream: Upstream;
  let server: HttpServer;
  beforeAll(async () => {
    const saves = answering((_, path) => until(() => mayEnd(path)).then(() => added));
    upstream = await startUpstream((request, response) =>
      request.url?.endsWith('/items') ? saves(request, response) : delays.hangs(),
    );
    server = await startHttp({ baseUrl: upstream.baseUrl });
  });
  afterAll(async () => {
    await server.close(0);
    await upstream.close();
  });
  let released = false;
  let letFirst = false;
  let letSecond = false;
  const mayEnd = (path: string) =>
    path.includes(uuidOf('first')) ? letFirst : path.includes(uuidOf('second')) ? letSecond : released;
  const added = { collection: {}, itemType: 'ads', itemId: uuidOf('i'), added: true };
  const last = () => upstream.requests.at(-1);

  test('is aborted when its caller disconnects and it is free', async () => {
    const { socket } = bareSocket(server.port);
    const body = JSON.stringify(callOf('get_account'));
    const head = Object.entries(goodHeaders()).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(
      `POST /mcp HTTP/1.1\r\nhost: localhost\r\n${head.join('')}content-length: ${body.length}\r\n\r\n${body}`,
    );
    await until(() => last()?.path === '/v1/account');
    expect(last()?.aborted).toBe(false);
    socket.destroy();
    await until(() => last()?.aborted === true);
  });

  test.each(clientKinds)(
    'is stopped by a cancel notice, or what the client does instead, where it costs nothing (%s)',
    async (kind) => {
      const client = await connectHttp(kind, server.url, `svc_live_${kind.length}`);
      const before = upstream.requests.length;
      const cancel = new AbortController();
      const called = client.call('get_account', {}, cancel.signal);
      called.catch(() => {});
      await until(() => upstream.requests.length > before);
      cancel.abort();
      await expect(called).rejects.toThrow();
      await until(() => last()?.aborted === true);
      // Nobody is there any more for whom it would be sent again.
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(upstream.requests.length).toBe(before + 1);
      await client.close();
    },
  );

  test('is not cancelled by another key, nor by an ambiguous notice', async () => {
    const before = upstream.requests.length;
    const connections = ['a', 'a', 'b'].map(() => keepAlive(server.origin));
    const calls = ['a', 'a', 'b'].map((key, index) => {
      const body = JSON.stringify(callOf('get_account', {}, 7));
      return connections[index]?.send({ headers: goodHeaders(`svc_live_${key}`), body }).catch(() => undefined);
    });
    await until(() => upstream.requests.length === before + 3);
    const notice = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } };
    const sent = (key: string) =>
      keepAlive(server.origin).send({ headers: goodHeaders(`svc_live_${key}`), body: JSON.stringify(notice) });
    expect((await sent('a')).status).toBe(202);
    expect((await sent('c')).status).toBe(202);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(upstream.requests.slice(before).map(({ aborted }) => aborted)).toEqual([false, false, false]);
    expect((await sent('b')).status).toBe(202);
    await until(() => upstream.requests.some(({ key, aborted }) => key === 'svc_live_b' && aborted));
    await until(() => server.logged.some((line) => line.includes('"kind":"cancelled"')));
    await Promise.all(connections.map((connection) => connection.close()));
    await Promise.all(calls);
  });

  test('is finished when it is a write that waited for its turn', async () => {
    const busy = await startHttp({ baseUrl: upstream.baseUrl, callsPerKey: 1 });
    const client = await connectHttp('v2 auto', busy.url, 'svc_live_waiting');
    const first = client.call('add_collection_item', {
      collectionId: uuidOf('first'),
      itemType: 'ads',
      itemId: uuidOf('i'),
    });
    await until(() => last()?.path === `/v1/collections/${uuidOf('first')}/items`);
    const leave = new AbortController();
    const saving = { collectionId: uuidOf('second'), itemType: 'ads', itemId: uuidOf('i') };
    const second = client.call('add_collection_item', saving, leave.signal);
    second.catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 50));
    letFirst = true;
    await first;
    await until(() => last()?.path === `/v1/collections/${uuidOf('second')}/items`);
    leave.abort();
    let closed = false;
    const closing = busy.close(5000).then(() => {
      closed = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect({ closed, aborted: last()?.aborted }).toEqual({ closed: false, aborted: false });
    letSecond = true;
    await closing;
    expect(last()?.aborted).toBe(false);
    await client.close();
  });

  test('is finished when it is a write', async () => {
    const client = await connectHttp('v2 auto', server.url, 'svc_live_writer');
    const cancel = new AbortController();
    const saving = { collectionId: uuidOf('c'), itemType: 'ads', itemId: uuidOf('i') };
    const called = client.call('add_collection_item', saving, cancel.signal);
    called.catch(() => {});
    await until(() => last()?.path === `/v1/collections/${uuidOf('c')}/items`);
    cancel.abort();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(last()?.aborted).toBe(false);
    released = true;
    await until(() => server.logged.some((line) => /"call"/.test(line) && /add_collection_item/.test(line)));
    expect(last()?.aborted).toBe(false);
    await client.close();
  });
});
