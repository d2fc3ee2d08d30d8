import { Client as LatestClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport as LatestStdio } from '@modelcontextprotocol/client/stdio';
import { Client as EarlierClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as EarlierStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as EarlierHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, onTestFinished, test } from 'vitest';
import { waitUntil } from '../support/deadline.ts';
import { buildCommandLine, startHttpCommand } from '../support/process.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { envelope, openSession, request } from '../transports/stdio/session.ts';

const client = { name: 'test', version: '1' };
const modes = ['earlier revisions', 'revision 2026-07-28'] as const;
const report = {
  name: 'write_report',
  arguments: { title: 'Ads', name: 'ads', sections: [{ heading: 'All', text: 'Nothing yet.' }] },
};

interface Listed {
  resources: { name: string }[];
}

/** Connects a client that lists the resources each time the server announces a change. */
async function connect(
  mode: (typeof modes)[number],
  transports: { earlier: () => EarlierTransport; latest: () => LatestTransport },
) {
  const announced: string[][] = [];
  const onChanged = (_error: Error | null, resources: { name: string }[] | null) =>
    void announced.push((resources ?? []).map(({ name }) => name));
  const listChanged = { resources: { onChanged } };
  const connection =
    mode === 'earlier revisions'
      ? new EarlierClient(client, { listChanged })
      : new LatestClient(client, { listChanged, versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await (mode === 'earlier revisions'
    ? (connection as EarlierClient).connect(transports.earlier())
    : (connection as LatestClient).connect(transports.latest()));
  onTestFinished(() => connection.close());
  return {
    announced,
    capabilities: () => connection.getServerCapabilities(),
    call: (call: { name: string; arguments: Record<string, unknown> }) => connection.callTool(call),
    listNames: async () => ((await connection.listResources()) as Listed).resources.map(({ name }) => name),
  };
}

type EarlierTransport = EarlierStdio | EarlierHttp;
type LatestTransport = LatestStdio | StreamableHTTPClientTransport;

/** Returns a demo command that exports into a temporary folder. */
const demoCommand = () => buildCommandLine(['--demo', '--files', createTemporaryFolder()]);
const stdio = {
  earlier: () => new EarlierStdio(demoCommand()),
  latest: () => new LatestStdio(demoCommand()),
};

test.each(modes)('the stdio server notifies its client about a new report (protocol: %s)', async (mode) => {
  const { announced, call } = await connect(mode, stdio);
  await call(report);
  await waitUntil(() => announced.length > 0);
  expect(announced).toEqual([['board', 'ads.html']]);
});

test.each(modes)(
  'the stdio server sends no notification after a call that creates no file (protocol: %s)',
  async (mode) => {
    const { announced, call } = await connect(mode, stdio);
    await call({ name: 'query_ads', arguments: { sql: 'SELECT 1' } });
    expect(await call({ name: 'export_ads', arguments: { sql: 'DROP TABLE ads' } })).toMatchObject({ isError: true });
    // The first announcement comes from the report written now.
    await call(report);
    await waitUntil(() => announced.length > 0);
    expect(announced).toHaveLength(1);
  },
);

test.each(modes)(
  'the HTTP server lists a new report but sends no notification about it (protocol: %s)',
  async (mode) => {
    const served = await startHttpCommand(['--demo']);
    onTestFinished(async () => void (await served.close()));
    const { capabilities, call, listNames, announced } = await connect(mode, {
      earlier: () => new EarlierHttp(new URL(served.url)),
      latest: () => new StreamableHTTPClientTransport(new URL(served.url)),
    });
    expect(capabilities()?.resources).toEqual({});
    await call(report);
    expect(await listNames()).toEqual(['board', 'ads.html']);
    expect(announced).toEqual([]);
  },
);

test('a stdio session ends when its input closes, although the client still subscribes to changes', async () => {
  const session = await openSession({ revision: '' });
  const params = { notifications: { resourcesListChanged: true }, _meta: envelope };
  session.send(request(1, 'subscriptions/listen', params));
  await waitUntil(() => session.lines.length > 0);
  expect(session.lines).toMatchObject([{ method: 'notifications/subscriptions/acknowledged' }]);
  session.stdin.end();
  await session.ended;
});
