import { createServer } from 'node:http';
import { openDemoLibrary } from '../../src/library/demo.ts';

/**
 * A service that answers at once with what it has at hand: searches of one size, with the caller's name in the first
 * headline and in the request id, so that an answer in the wrong hands shows. `node upstream.ts <items>`.
 */
const limit = Number(process.argv[2] ?? 10);
const { library, apiKey } = await openDemoLibrary({ now: Date.now });
const asked = await library.fetch(
  new Request('http://library/v1/ads/search', {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ limit }),
  }),
);
const found = (await asked.json()) as { items: { headline?: string }[] };
library.close();

const answers = new Map<string, Buffer>();
const answerFor = (caller: string): Buffer => {
  const kept = answers.get(caller);
  if (kept) return kept;
  const [first, ...rest] = found.items;
  const answer = Buffer.from(JSON.stringify({ ...found, items: [{ ...first, headline: caller }, ...rest] }));
  answers.set(caller, answer);
  return answer;
};

const server = createServer((request, response) => {
  const caller = (request.headers.authorization ?? '').replace('Bearer svc_live_', '');
  const answer = answerFor(caller);
  request.resume().on('end', () => {
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': answer.length,
      'x-service-request-id': caller,
      'x-service-credits-charged': '1',
      'x-service-credits-remaining': '1000',
    });
    response.end(answer);
  });
});
server.listen(0, '127.0.0.1', () => process.send?.(server.address()));
