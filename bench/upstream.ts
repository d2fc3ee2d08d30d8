import { hash } from 'node:crypto';
import { createServer } from 'node:http';
import { openDemoLibrary } from '../src/library/demo/demo.ts';

/**
 * A simulated service that responds without delay, with responses of the demo library that it recorded at the start. It
 * adds the name of the caller to each response, so that a benchmark notices a response sent to the wrong caller. Run it
 * with `node upstream.ts <items>`.
 */
const adCount = Number(process.argv[2]);
const { library, apiKey } = await openDemoLibrary({ now: Date.now });
const requestLibrary = async (path: string, body?: object) => {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const request = body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers };
  return (await library.fetch(new Request(`http://library${path}`, request))).json();
};
const identity = (await requestLibrary('/v1/whoami')) as { apiKey: object };
const searchPage = (await requestLibrary('/v1/ads/search', { limit: adCount })) as { items: object[] };
library.close();

const responseBodies = new Map<string, Buffer>();
const getResponseBody = (path: string, callerName: string): Buffer => {
  const cachedBody = responseBodies.get(path + callerName);
  if (cachedBody) return cachedBody;
  const items = searchPage.items.map((ad) => ({ ...ad, headline: callerName }));
  const responseValue =
    path === '/v1/whoami'
      ? { ...identity, apiKey: { ...identity.apiKey, name: callerName } }
      : { ...searchPage, items };
  const responseBody = Buffer.from(JSON.stringify(responseValue));
  responseBodies.set(path + callerName, responseBody);
  return responseBody;
};

/**
 * HTTP headers that report the charge of a search. Responses to `whoami` have no such headers, because `whoami` is free
 * (API document).
 */
const creditHeaders = { 'x-service-credits-charged': '1', 'x-service-credits-remaining': '1000' };

const server = createServer((request, response) => {
  // Derive the name from a hash, because a response must not contain the API key itself.
  const callerName = hash('sha256', request.headers.authorization ?? '').slice(0, 12);
  const responseBody = getResponseBody(request.url ?? '', callerName);
  request.resume().on('end', () => {
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': responseBody.length,
      'x-service-request-id': callerName,
      ...(request.url !== '/v1/whoami' && creditHeaders),
    });
    response.end(responseBody);
  });
});
server.listen(0, '127.0.0.1', () => process.send?.(server.address()));
