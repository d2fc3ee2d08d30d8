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
  const { status, body } = await served.ask('GET', `/media/ads/${uuid(1)}/0.svg`);
  expect(status).toBe(404);
  expect(body.error.message).toContain('picture');
});

test('pictures need nothing but the ad’s id', async ({ served }) => {
  await served.load({ id: uuid(1) }, { id: uuid(2), displayUrl: 'tea.example', productTitle: 'Green tea' });
  const drawn = async (id: string, file: string) => (await served.ask('GET', `/media/ads/${id}/${file}`)).body;
  expect(await drawn(uuid(1), 'logo.svg')).toContain('>?</text>');
  expect(await drawn(uuid(2), 'logo.svg')).toContain('>T</text>');
  expect(await drawn(uuid(1), '0.svg')).toContain('LEARN MORE');
  for (const words of ['tea.example', 'Green tea']) expect(await drawn(uuid(2), '0.svg')).toContain(words);
});

test('a body without a content type is refused', async ({ served }) => {
  const { status, body } = await served.ask('POST', '/v1/ads/search', { key: served.key() });
  expect(status).toBe(422);
  expect(body.error.message).toContain('takes the header "Content-Type: application/json"; got ""');
});
