import { join } from 'node:path';
import { expect } from 'vitest';
import { AdService } from '../../support/ad-service.ts';
import { connectStdio } from '../../support/clients.ts';
import { delays, documented } from '../../support/faulty-upstream.ts';
import { test } from '../../support/fixtures.ts';
import { start } from '../../support/process.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const request = { name: 'gather_ads', arguments: { maxCredits: 100 }, _meta: { progressToken: 'p' } };

/** Speaks to a server of its own until a line of its output fits. */
async function gatherUntil(env: Record<string, string>, pattern: RegExp) {
  const running = start([], env);
  const send = (message: object) => running.child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const clientInfo = { name: 'test', version: '1' };
  send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } });
  send({ method: 'notifications/initialized' });
  send({ id: 2, method: 'tools/call', params: request });
  await new Promise<void>((resolve) => {
    running.child.stdout?.on('data', () => {
      if (pattern.test(running.stdout())) resolve();
    });
  });
  return running;
}

test.beforeEach(({ upstream }) => {
  upstream.credits = documented;
});

test('a gathering that was killed in the middle goes on in the next process, and pays no page twice', async ({
  upstream,
}) => {
  const service = new AdService(450);
  service.instead = ({ number }) => (number > 2 ? delays.hangs : undefined);
  upstream.does((incoming, response, body) =>
    (incoming.url?.includes('search') ? service.behaviour : documented)(incoming, response, body),
  );
  const env = {
    AD_LIBRARY_BASE_URL: upstream.baseUrl,
    AD_LIBRARY_API_KEY: 'svc_live_killed',
    AD_LIBRARY_FILES: join(temporaryFolder(), 'killed'),
  };
  const { child, ended } = await gatherUntil(env, /200 ads read/);
  child.kill('SIGKILL');
  await ended;
  service.instead = () => undefined;
  const client = await connectStdio('v1', [], env);
  const { data } = await client.call('gather_ads', request.arguments);
  await client.close();
  expect(data).toMatchObject({ read: 450, added: 250, complete: true, receipt: { charged: 25 } });
  expect(service.charged).toBe(45);
});

test('a server that is asked to end returns what it has gathered', async ({ upstream }) => {
  const service = new AdService(1000);
  upstream.does((incoming, response, body) => {
    const answer = () => service.behaviour(incoming, response, body);
    if (service.searches.length < 2) answer();
    else setTimeout(answer, 100);
  });
  const env = { AD_LIBRARY_BASE_URL: upstream.baseUrl, AD_LIBRARY_API_KEY: 'svc_live_ending' };
  const { child, stdout, ended } = await gatherUntil(env, /200 ads read/);
  await upstream.reached(3);
  child.kill('SIGTERM');
  expect((await ended).code).toBe(0);
  const result = stdout()
    .split('\n')
    .find((line) => line.includes('"id":2'));
  const { structuredContent } = JSON.parse(result ?? '{}').result;
  expect(structuredContent).toMatchObject({ stopped: 'shutdown', complete: false });
  expect(structuredContent.read).toBe(100 * service.searches.length);
});
