import { createServer } from 'node:http';
import { Agent, request } from 'undici';

/** The least a server between caller and service does: read, fetch, parse, answer. `node proxy.ts <address>`. */
const upstream = `${process.argv[2]}/v1/ads/search`;
const dispatcher = new Agent({ connections: 64 });

const server = createServer(async (incoming, outgoing) => {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const body = JSON.stringify(JSON.parse(Buffer.concat(chunks).toString()).params.arguments);
  const headers = { authorization: incoming.headers.authorization, 'content-type': 'application/json' };
  const answer = await request(upstream, { method: 'POST', headers, body, dispatcher });
  const parsed = JSON.parse(await answer.body.text());
  outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(parsed));
});
server.listen(0, '127.0.0.1', () => process.send?.(server.address()));
