import { expect, onTestFinished, test } from 'vitest';
import { readPageToken } from '../support/board/board-service.ts';
import { clientKinds, connectHttp, connectStdio, type TestClient } from '../support/clients.ts';
import { startHttpCommand } from '../support/process.ts';

const uri = 'ui://ad-library/board';
const showing = ['search_ads', 'gather_ads', 'view_ads', 'check_watches', 'list_collection_items'];
const csp = { connectDomains: [], resourceDomains: [], frameDomains: [], baseUriDomains: [] };

async function expectBoard(client: TestClient): Promise<void> {
  const meta = new Map((await client.listTools()).map((tool) => [tool.name, (tool as { _meta?: object })._meta]));
  for (const name of showing) expect(meta.get(name)).toEqual({ ui: { resourceUri: uri }, 'ui/resourceUri': uri });
  for (const name of ['board_ads', 'board_pictures']) expect(meta.get(name)).toEqual({ ui: { visibility: ['app'] } });
  expect([...meta.values()].filter((value) => value !== undefined)).toHaveLength(showing.length + 2);

  expect(await client.listResources()).toContainEqual(
    expect.objectContaining({
      uri,
      mimeType: 'text/html;profile=mcp-app',
      _meta: { ui: { csp, prefersBorder: true } },
    }),
  );
  const [page] = (await client.read(uri)) as [{ text: string; mimeType: string; _meta: object }];
  expect(page).toMatchObject({ uri, mimeType: 'text/html;profile=mcp-app', _meta: { ui: { csp } } });
  expect(page.text).toMatch(/^<!doctype html>/);
  expect(Buffer.byteLength(page.text)).toBeLessThan(110_000);
  // The page loads nothing from other hosts. The only URLs in it are XML namespaces.
  expect(page.text.match(/https?:\/\/(?!www\.w3\.org\/)[^"'`\s]*/g)).toBeNull();

  const { data } = await client.call('search_ads', { limit: 2 });
  const ids = data.items.map(({ id }) => id);
  const boardData = (await client.call('board_ads', { ids, page: readPageToken(page.text) })).raw._meta?.[
    'ad-library/board'
  ];
  expect(boardData).toMatchObject({ ads: ids.map((id) => ({ id })), left: [], missingIds: [] });
}

test('clients of older and newer MCP protocol revisions can open the ad board', async () => {
  const served = await startHttpCommand(['--demo']);
  onTestFinished(async () => void (await served.close()));
  for (const kind of clientKinds) {
    const client = await connectHttp(kind, served.url);
    await expectBoard(client);
    // Revision 2026-07-28 changed the error code of a missing resource.
    const code = kind === 'v1' ? -32_002 : -32_602;
    for (const missing of ['ui://ad-library/none', 'ad-library://exports/none/ads.csv'])
      await expect(client.read(missing)).rejects.toMatchObject({ code });
    await client.close();
  }
  const client = await connectStdio('v2 auto', ['--demo']);
  onTestFinished(() => client.close());
  await expectBoard(client);
});
