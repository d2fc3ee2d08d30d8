import { createHmac } from 'node:crypto';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client';
import { describe, expect, onTestFinished, vi } from 'vitest';
import { openApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { createLogger } from '../../src/logging/log.ts';
import type { ConfirmationForm, FormAnswer } from '../../src/mcp/confirm-spending.ts';
import { serveStdio } from '../../src/transports/stdio.ts';
import { freshServiceTest } from '../support/fixtures.ts';
import { choose, connectWithForms, createSimulatedUser } from '../support/forms.ts';
import { startHttp } from '../support/http.ts';
import { readResult } from '../support/server.ts';

const threeAds = { filters: { countries: ['DE'] }, limit: 30 };

describe('Spending confirmation before protocol revision 2026-07-28', () => {
  const test = freshServiceTest({ config: { confirmCredits: 2, cacheSeconds: 900 } });

  test('a call whose price exceeds the confirmation limit is sent only after the user has accepted the price', async ({
    service,
    server,
  }) => {
    const person = choose('spend');
    const { call } = await connectWithForms(server, service.createKey(), person);
    await call('search_ads', { limit: 1 });
    service.requests.length = 0;
    const { data, isError } = await call('search_ads', threeAds);
    expect(isError).toBe(false);
    expect(data.receipt.charged).toBe(3);
    expect(person.forms.at(-1)?.message).toMatch(/search_ads.* credits?\. You have [\d,]+ credits\./);
    expect(person.forms.at(-1)?.requestedSchema.properties.choice.enum).toEqual(['spend', 'cancel']);
    expect(service.countPaidRequests()).toBe(1);
  });

  for (const [how, answer] of Object.entries<FormAnswer>({
    declines: { action: 'decline' },
    'closes the form': { action: 'cancel' },
    'chooses to cancel': { action: 'accept', content: { choice: 'cancel' } },
    'sends a choice that was not offered': { action: 'accept', content: { choice: 'first page only' } },
    'sends no choice': { action: 'accept' },
  }))
    test(`a call that needs a spending confirmation is neither sent nor charged if the user ${how}`, async ({
      service,
      server,
    }) => {
      const { call } = await connectWithForms(
        server,
        service.createKey(),
        createSimulatedUser(() => answer),
      );
      service.requests.length = 0;
      const { text, error } = await call('search_ads', threeAds);
      expect(error).toEqual({ kind: 'credit_budget', retryable: false });
      expect(text).toContain('The person declined');
      expect(text).toContain('Nothing was sent, nothing was charged.');
      expect(service.countPaidRequests()).toBe(0);
    });

  test('if the client fails to show the spending confirmation, the error contains the price of the call', async ({
    service,
    server,
  }) => {
    const broken = createSimulatedUser(() => {
      throw new Error('no screen');
    });
    const { call } = await connectWithForms(server, service.createKey(), broken);
    const { text, error } = await call('search_ads', threeAds);
    expect(text).toContain('nobody answered');
    expect(text).toContain('Nothing was sent, nothing was charged.');
    // The assistant can tell the person the price that the form has shown.
    expect(text).toContain(broken.forms[0]?.message.split(' You have')[0]);
    expect(text).toContain(
      '\nRepeat the call only if the user agrees. Tell the user this price, and ask whether to repeat the call.',
    );
    expect(error).toEqual({ kind: 'credit_budget', retryable: false });
    expect(service.countPaidRequests()).toBe(0);
  });

  test('cached results, free calls and cheap calls need no spending confirmation by the user', async ({
    service,
    start,
  }) => {
    const person = choose('spend');
    const server = await start({ confirmCredits: 3 });
    const { call } = await connectWithForms(server, service.createKey(), person);
    await call('search_ads', threeAds);
    // The first call needed a confirmation because its price was unknown.
    expect(person.forms).toHaveLength(1);
    await call('search_ads', threeAds);
    await call('list_collections');
    await call('search_ads', { ...threeAds, filters: { countries: ['FR'] } });
    expect(person.forms).toHaveLength(1);
    await call('search_ads', { limit: 50 });
    expect(person.forms).toHaveLength(2);
  });

  test('a call is sent without a spending confirmation if the client does not support forms', async ({
    service,
    server,
  }) => {
    const { call } = await server.connectAs(service.createKey());
    expect((await call('search_ads', threeAds)).isError).toBe(false);
  });

  test('the spending confirmation shows maxCredits as the price of a gather_ads call whose size is unknown', async ({
    service,
    server,
  }) => {
    const person = choose('first page only');
    const { call } = await connectWithForms(server, service.createKey(), person);
    const { data, text } = await call('gather_ads', { filters: { countries: ['DE'] }, maxCredits: 40 });
    expect(person.forms).toHaveLength(1);
    expect(person.forms[0]?.message).toContain('40 credits');
    expect(person.forms[0]?.requestedSchema.properties.choice.enum).toEqual(['spend', 'first page only', 'cancel']);
    // The price is unknown, so `maxCredits` must cover the highest possible price of the page: one credit for each ad.
    expect(data).toMatchObject({ read: 40, stopped: 'firstPage' });
    expect(text).toContain('The person chose to read the first page only.');
    expect(text).not.toContain('maxAds');
  });

  test('if the user chooses "first page only", gather_ads reads only the next page of a partly read search', async ({
    service,
    server,
  }) => {
    const question = { filters: { countries: ['DE'] }, maxCredits: 200 };
    const apiKey = service.createKey();
    const spender = await connectWithForms(server, apiKey, choose('spend'));
    expect((await spender.call('gather_ads', { ...question, maxAds: 150 })).data).toMatchObject({ read: 150 });
    const person = choose('first page only');
    const { call } = await connectWithForms(server, apiKey, person);
    const { data } = await call('gather_ads', question);
    expect(person.forms).toHaveLength(1);
    expect(data).toMatchObject({ read: 250, added: 100, stopped: 'firstPage' });
  });

  test('a cost estimate needs no spending confirmation, whether the search is cached or not', async ({
    service,
    server,
  }) => {
    const person = choose('cancel');
    const { call } = await connectWithForms(server, service.createKey(), person);
    for (const countries of [['DE'], ['DE'], ['FR']])
      expect((await call('gather_ads', { filters: { countries }, maxCredits: 0 })).isError).toBe(false);
    expect(person.forms).toEqual([]);
  });

  test('a cost estimate that needs several paid searches asks for confirmation if their total exceeds the limit', async ({
    service,
    server,
  }) => {
    const apiKey = service.createKey();
    await (await connectWithForms(server, apiKey, choose('spend'))).call('search_ads', { limit: 1 });
    const person = choose('cancel');
    const { call } = await connectWithForms(server, apiKey, person);
    const createSplit = (countries: string[]) => countries.map((country) => ({ countries: [country] }));
    await call('gather_ads', { split: createSplit(['DE', 'FR']), maxCredits: 0 });
    expect(person.forms).toEqual([]);
    service.requests.length = 0;
    const { error } = await call('gather_ads', { split: createSplit(['US', 'GB', 'AT']), maxCredits: 0 });
    expect(error?.kind).toBe('credit_budget');
    expect(person.forms.map(({ message }) => message)).toEqual([expect.stringContaining('3 credits')]);
    // An estimate reads no page, so the user cannot choose to read only the first page.
    expect(person.forms[0]?.requestedSchema.properties.choice.enum).toEqual(['spend', 'cancel']);
    expect(service.countPaidRequests()).toBe(0);
  });

  test('the spending confirmation shows the price for at most as many ads as maxAds allows', async ({
    service,
    server,
  }) => {
    const apiKey = service.createKey();
    const question = { filters: { countries: ['DE'] }, maxCredits: 200 };
    const spender = await connectWithForms(server, apiKey, choose('spend'));
    await spender.call('gather_ads', { ...question, maxAds: 30 });
    const person = choose('cancel');
    const { call } = await connectWithForms(server, apiKey, person);
    await call('gather_ads', { ...question, maxAds: 80 });
    expect(person.forms.at(-1)?.message).toContain('between 3 and 6 credits');
    await call('gather_ads', { ...question, maxAds: 30 });
    expect(person.forms).toHaveLength(1);
  });

  test('the price in a spending confirmation never exceeds the remaining credit budget of the server', async ({
    service,
    start,
  }) => {
    const server = await start({ creditBudget: 4 });
    const apiKey = service.createKey();
    const person = choose('spend');
    const { call } = await connectWithForms(server, apiKey, person);
    await call('search_ads', { limit: 10 });
    expect(person.forms[0]?.message).toContain('4 credits');
    await call('search_ads', { filters: { countries: ['DE'] }, limit: 30 });
    const formCount = person.forms.length;
    const { error, text } = await call('search_ads', { limit: 50 });
    // No credits are left, so the call would fail whatever the user chooses.
    expect(person.forms).toHaveLength(formCount);
    expect(error).toMatchObject({ kind: 'credit_budget' });
    expect(text).not.toContain('The person');
  });

  test('the form for a spending confirmation closes after 50 seconds without an answer from the user', async ({
    service,
    server,
  }) => {
    const person = createSimulatedUser(() => new Promise(() => {}));
    const { call } = await connectWithForms(server, service.createKey(), person);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const result = call('search_ads', threeAds);
    while (person.forms.length === 0) await new Promise(setImmediate);
    await vi.advanceTimersByTimeAsync(50_001);
    vi.useRealTimers();
    expect((await result).text).toContain('nobody answered');
  });

  test('the time that the user needs to confirm the spending does not count toward the timeout of the call', async ({
    service,
    start,
  }) => {
    const slow = createSimulatedUser(async () => {
      await new Promise((resolve) => setTimeout(resolve, 1500));
      return { action: 'accept', content: { choice: 'spend' } };
    });
    const server = await start({ timeoutMs: 1000 });
    const { call } = await connectWithForms(server, service.createKey(), slow);
    expect((await call('search_ads', threeAds)).isError).toBe(false);
  });

  test('a call is never sent if the host cancels it while the user is asked to confirm the spending', async ({
    service,
    server,
  }) => {
    const caller = new AbortController();
    const person = createSimulatedUser(() => {
      caller.abort();
      return new Promise(() => {});
    });
    const { call } = await connectWithForms(server, service.createKey(), person);
    service.requests.length = 0;
    await expect(call('search_ads', threeAds, { signal: caller.signal })).rejects.toThrow();
    expect(service.countPaidRequests()).toBe(0);
  });
});

describe('Spending confirmation over stdio', () => {
  const test = freshServiceTest();

  test('a stdio call that waits for a spending confirmation ends when standard input closes', async ({ service }) => {
    const config = {
      ...readConfig({}),
      baseUrl: service.baseUrl,
      apiKey: service.createKey(),
      confirmCredits: 0,
    };
    const log = createLogger('warn', () => {});
    const app = await openApp({ config, log, now: Date.now, monotonicNow: Date.now, random: () => 0 });
    const [stdin, stdout] = [new PassThrough(), new PassThrough()];
    const sessionEnd = serveStdio({
      catalog: app.catalog,
      credentials: app.credentials,
      log,
      monotonicNow: Date.now,
      onCall: () => {},
      stdin,
      stdout,
      stopRequested: new Promise(() => {}),
      drainMs: 1000,
    });
    const clientInfo = { name: 'test', version: '1' };
    const messages = [
      {
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', capabilities: { elicitation: {} }, clientInfo },
      },
      { method: 'notifications/initialized' },
      { id: 2, method: 'tools/call', params: { name: 'search_ads', arguments: {} } },
    ];
    const lines = createInterface(stdout)[Symbol.asyncIterator]();
    for (const message of messages) stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    const readMessage = async () => JSON.parse((await lines.next()).value ?? '{}');
    expect((await readMessage()).id).toBe(1);
    expect((await readMessage()).method).toBe('elicitation/create');
    service.requests.length = 0;
    stdin.end();
    const answers = [await readMessage(), await readMessage()];
    expect(answers.find(({ id }) => id === 2).result.content[0].text).toContain('nobody answered');
    await sessionEnd;
    await app.close();
    expect(service.countPaidRequests()).toBe(0);
  });
});

describe('Spending confirmation in protocol revision 2026-07-28', () => {
  const test = freshServiceTest().extend('http', async ({ service }, { onCleanup }) => {
    const http = await startHttp({ baseUrl: service.baseUrl, confirmCredits: 2 });
    onCleanup(() => http.close());
    return http;
  });

  const meta = (capabilities: object) => ({
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  });

  /** Sends a raw tool call over HTTP, so that the test can answer the form itself. */
  async function sendCall(
    url: string,
    key: string,
    { args = threeAds as object, name = 'search_ads', ...params }: Record<string, unknown> & { args?: object } = {},
  ) {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': String(name),
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name, arguments: args, ...params, _meta: meta({ elicitation: {} }) },
      }),
    });
    const { result } = (await response.json()) as { result: Record<string, unknown> };
    return result;
  }
  /** Signs a state as the server does. A caller can do this too, because the secret is the caller's own API key. */
  const signState = (content: string, key: string) => {
    const text = Buffer.from(content).toString('base64url');
    const signature = createHmac('sha256', key).update(`ad-library-mcp confirmation ${text}`).digest('base64url');
    return `${text}.${signature}`;
  };
  const spend = { confirm: { action: 'accept', content: { choice: 'spend' } } };

  test('an SDK client shows the spending confirmation to the user and repeats the call with the reply', async ({
    service,
    http,
  }) => {
    const person = choose('spend');
    const client = new ModernClient(
      { name: 'test', version: '1' },
      { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
    );
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      const { action, content } = await person.answer(params as unknown as ConfirmationForm);
      return { action, content: { choice: String(content?.choice) } };
    });
    const requestInit = { headers: { authorization: `Bearer ${service.createKey()}` } };
    await client.connect(new ModernHttp(new URL(http.url), { requestInit }));
    service.requests.length = 0;
    const result = readResult(await client.callTool({ name: 'search_ads', arguments: threeAds }));
    expect(result.isError).toBe(false);
    expect(person.forms).toHaveLength(1);
    expect(service.countPaidRequests()).toBe(1);
    await client.close();
  });

  test('a spending confirmation is valid only once and only for the same API key, tool and arguments', async ({
    service,
    http,
  }) => {
    const [key, otherKey] = [service.createKey(), service.createKey()];
    service.requests.length = 0;
    const formRequest = await sendCall(http.url, key);
    expect(formRequest).toMatchObject({ resultType: 'input_required', inputRequests: { confirm: { params: {} } } });
    const answered = { requestState: formRequest.requestState, inputResponses: spend };
    const state = String(formRequest.requestState);
    for (const [sender, params] of [
      [otherKey, answered],
      [key, { ...answered, args: { ...threeAds, limit: 40 } }],
      [key, { ...answered, name: 'search_pages', args: { limit: 60 } }],
      [key, { ...answered, requestState: `${state.slice(0, -2)}AA` }],
      [key, { ...answered, requestState: `${state.split('.')[0]}` }],
      [key, { ...answered, requestState: '.' }],
      ...['null', 'not JSON', '{}', '{"id":1}'].map((text) => [
        key,
        { ...answered, requestState: signState(text, key) },
      ]),
      [key, { inputResponses: spend }],
    ] as [string, Record<string, unknown>][])
      expect((await sendCall(http.url, sender, params)).resultType).toBe('input_required');
    expect(service.countPaidRequests()).toBe(0);

    const accepted = await sendCall(http.url, key, answered);
    expect(readResult(accepted).data.receipt.charged).toBe(3);
    const repeatedCall = { ...answered, args: { ...threeAds, limit: 31 } };
    expect((await sendCall(http.url, key, repeatedCall)).resultType).toBe('input_required');
    expect(service.countPaidRequests()).toBe(1);
  });

  test('a spending confirmation that a client sends five times allows only one paid call', async ({ service }) => {
    const http = await startHttp({ baseUrl: service.baseUrl, confirmCredits: 2, cacheSeconds: 0 });
    const key = service.createKey();
    const { requestState } = await sendCall(http.url, key);
    service.requests.length = 0;
    const results = await Promise.all(
      Array.from({ length: 5 }, () => sendCall(http.url, key, { requestState, inputResponses: spend })),
    );
    expect(results.filter(({ resultType }) => resultType === 'input_required')).toHaveLength(4);
    expect(service.countPaidRequests()).toBe(1);
    await http.close();
  });

  test('a call ends without a charge if the user declines the spending confirmation', async ({ service, http }) => {
    const key = service.createKey();
    const { requestState } = await sendCall(http.url, key);
    service.requests.length = 0;
    const declined = await sendCall(http.url, key, {
      requestState,
      inputResponses: { confirm: { action: 'decline' } },
    });
    expect(readResult(declined).error).toEqual({ kind: 'credit_budget', retryable: false });
    expect(service.countPaidRequests()).toBe(0);
  });
});
