import { expect } from 'vitest';
import { freshLibraryTest as test } from './support/fixtures.ts';
import { uuid } from './support/served-library.ts';

test('an internal error reaches the log in full, and callers as a plain 500', async ({ served }) => {
  const key = served.key();
  served.library.context.database.run('DROP TABLE collections');
  const { status, headers, body } = await served.ask('GET', '/v1/collections', { key });
  expect(status).toBe(500);
  expect(body.error).toEqual({
    code: 'internal_error',
    message: 'The library failed to answer; its log says why.',
    requestId: headers.get('x-service-request-id'),
  });
  expect(served.errors.map(String)).toEqual([expect.stringContaining('collections')]);
});

test('the picture of a missing ad is a 404', async ({ served }) => {
  const { status, body } = await served.ask('GET', `/media/ads/${uuid(1)}/0.webp`);
  expect(status).toBe(404);
  expect(body.error.message).toContain('picture');
});

test('a body without a content type is refused', async ({ served }) => {
  const { status, body } = await served.ask('POST', '/v1/ads/search', { key: served.key() });
  expect(status).toBe(422);
  expect(body.error.message).toContain('takes the header "Content-Type: application/json"; got ""');
});
