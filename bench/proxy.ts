import { createServer } from 'node:http';
import { fetchAndCondense } from './fetch-and-condense.ts';

/**
 * A plain HTTP proxy between a caller and the service, which serves as a baseline for the benchmarks. It does not use
 * MCP and does only the work that our server cannot avoid. Run it with `node proxy.ts <url>`.
 */
const [serviceUrl = ''] = process.argv.slice(2);

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const { id, params } = JSON.parse(Buffer.concat(chunks).toString());
  const { authorization = '' } = request.headers;
  const result = await fetchAndCondense(serviceUrl, params.name, params.arguments, authorization);
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
});
server.listen(0, '127.0.0.1', () => process.send?.(server.address()));
