import fc from 'fast-check';
import { expect } from 'vitest';
import { singleCallTools } from '../support/every-tool.ts';
import { type Behaviour, respondAsDocumented, respondWithError, respondWithJson } from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';

const test = upstreamTest({ config: { cacheSeconds: 0 } });

test.for([301, 302, 303, 307, 308])(
  'no tool follows a %i redirect of the API, and its error shows the redirect target',
  async (status, { upstream, server }) => {
    for (const { tool, args } of singleCallTools) {
      upstream.respondWith(respondAsDocumented);
      await server.call('whoami');
      upstream.respondWith((_, response) =>
        response.writeHead(status, { location: 'https://new.example/api/v1/x' }).end(),
      );
      const { text, error } = await server.call(tool, args);
      expect(error).toMatchObject({ kind: 'unexpected_response', status, retryable: false });
      expect(text).toContain('The address of the service (AD_LIBRARY_BASE_URL) is wrong.');
      expect(text).toContain('It redirects to "https://new.example/api/v1/x"; redirects are not followed');
      expect(upstream.requests.filter(({ path }) => !path.endsWith('/credits') || tool === 'get_credits')).toHaveLength(
        1,
      );
    }
  },
);

test('an error about a relative redirect shows the redirect target as an absolute URL', async ({
  upstream,
  server,
}) => {
  upstream.respondWith((_, response) => response.writeHead(308, { location: '/elsewhere' }).end());
  expect((await server.call('whoami')).text).toContain(`It redirects to "${upstream.baseUrl}/elsewhere";`);
});

test('an error about a redirect shows only http and https URLs and no secrets from the URL', async ({
  upstream,
  server,
}) => {
  const readShownTarget = async (location: string) => {
    upstream.respondWith((_, response) => response.writeHead(302, { location }).end());
    return (await server.call('whoami')).text;
  };
  const withSecrets = await readShownTarget('https://user:secret1@new.example/a?key=secret2#secret3');
  expect(withSecrets).toContain('It redirects to "https://new.example/a";');
  expect(withSecrets).not.toContain('secret');
  for (const location of ['javascript:alert(1)', 'http://', `https://x.example/${'a'.repeat(5000)}`])
    expect(await readShownTarget(location)).toContain('It redirects elsewhere; redirects are not followed');
  const anyHeader = fc.string({ unit: 'binary-ascii' }).map((text) => text.replace(/[\r\n\0]/g, ''));
  await fc.assert(
    fc.asyncProperty(anyHeader, async (path) => {
      const text = await readShownTarget(`https://x.example/${path.replace(/[^\t\x20-\x7e]/g, '')}`);
      expect(/It redirects to "([^"\s]*)";|It redirects elsewhere;/.test(text)).toBe(true);
    }),
    { numRuns: 50 },
  );
});

test.for(['/v1', '/v1/', '/api/v1'])(
  'the error after a 404 response explains that the base URL "%s" ends in a version suffix',
  async (ending, { upstream, start }) => {
    const server = await start({ baseUrl: `${upstream.baseUrl}${ending}` });
    for (const answer of [
      respondWithError(404),
      respondWithError(405),
      respondWithJson('<h1>Not here</h1>', { status: 404 }),
    ]) {
      upstream.respondWith(answer);
      const { text, error } = await server.call('whoami');
      expect(error).toMatchObject({ kind: 'unexpected_response', retryable: false });
      expect(text).toContain('It ends in /v1, which this server adds itself.');
      expect(text).not.toContain('Use an id from an earlier result');
    }
  },
);

const answersOfOtherServers: Record<string, Behaviour> = {
  HTML: (_, response) => response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not here</h1>'),
  'other JSON': respondWithJson({ message: 'Not here' }, { status: 404 }),
  'an error without a request id': respondWithJson(
    { error: { code: 'not_found', message: 'Not here' } },
    { status: 404 },
  ),
  no_such_path: respondWithError(404, { code: 'no_such_path', message: 'There is no such path' }),
};

test.for(Object.entries(answersOfOtherServers))(
  'the error after a 404 response with %s says that the base URL is wrong, unless the request path contains an id',
  async ([, answer], { upstream, server }) => {
    for (const { tool, args } of singleCallTools) {
      upstream.respondWith(answer);
      const { text, error } = await server.call(tool, args);
      const hasId = upstream.requests.some(({ path }) => /\/(?:ads|pages|collections)\/(?!search)/.test(path));
      expect(error?.kind, tool).toBe(hasId ? 'not_found' : 'unexpected_response');
      expect(text.includes('The address of the service (AD_LIBRARY_BASE_URL) is wrong.'), tool).toBe(!hasId);
    }
  },
);

test.for([401, 403, 429])(
  'the error after a response with HTTP status %i and an undocumented body asks the user to check the base URL',
  async (status, { upstream, server }) => {
    upstream.respondWith((_, response) =>
      response.writeHead(status, { 'content-type': 'text/html' }).end('<h1>Blocked</h1>'),
    );
    const { text } = await server.call('get_credits');
    if (status === 429) expect(text).toMatch(/ask the user to check AD_LIBRARY_BASE_URL/i);
    else expect(text).toContain('Ask the user to check AD_LIBRARY_BASE_URL first, and then the API key.');
    expect(text).not.toMatch(/is wrong or has been revoked|lacks the scope|usage limit is reached/);
  },
);

test('a 404 error in the documented format is reported as not_found even if the request path has no id', async ({
  upstream,
  server,
}) => {
  upstream.respondWith(respondWithError(404, { code: 'not_found', message: 'There is no such advertiser' }));
  expect((await server.call('search_ads')).error).toMatchObject({ kind: 'not_found' });
});

test("a base URL that ends in /v1 works if the API's own paths also start with /v1", async ({ upstream, start }) => {
  const server = await start({ baseUrl: `${upstream.baseUrl}/v1` });
  upstream.respondWith((request, response) => {
    request.url = (request.url ?? '').replace('/v1/v1/', '/v1/');
    respondAsDocumented(request, response);
  });
  expect((await server.call('whoami')).isError).toBe(false);
});
