import { createServer } from 'node:http';
import { Agent, request } from 'undici';
import { adViews } from '../src/tools/item-views.ts';

/**
 * The least a server between caller and service does: read, fetch with undici's `request`, parse, condense ads with
 * the server's own code, answer. `node proxy.ts <address>`.
 */
const [address] = process.argv.slice(2);
const dispatcher = new Agent({ connections: 64 });
const room = { now: Date.now(), resultTokens: 8000 };

type Options = { method: 'GET' | 'POST'; headers: Record<string, string>; body?: string };
async function ask(path: string, options: Options): Promise<unknown> {
  const { body } = await request(`${address}${path}`, { ...options, dispatcher });
  return JSON.parse(await body.text());
}

function condensed(page: { items: object[]; cursor: string | null; hasMore: boolean }): object {
  const views = adViews('brief', room);
  const { items: ads, ...paging } = page;
  const shared = views.shared?.(ads) ?? {};
  const items = ads.map(views.view);
  const text = views.text({ items, ...paging, ...shared });
  return { content: [{ type: 'text', text }], structuredContent: { items, ...paging, ...shared } };
}

const server = createServer(async (incoming, outgoing) => {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const { id, params } = JSON.parse(Buffer.concat(chunks).toString());
  const headers = { authorization: incoming.headers.authorization ?? '', 'content-type': 'application/json' };
  const answer =
    params.name === 'whoami'
      ? await ask('/v1/whoami', { method: 'GET', headers })
      : await ask('/v1/ads/search', { method: 'POST', headers, body: JSON.stringify(params.arguments) });
  const result = params.name === 'whoami' ? answer : condensed(answer as Parameters<typeof condensed>[0]);
  outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
});
server.listen(0, '127.0.0.1', () => process.send?.(server.address()));
