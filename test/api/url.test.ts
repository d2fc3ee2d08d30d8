import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AdLibraryError, operations, urlOf } from '../../src/api/call.ts';

const addressFor = (id: string, operation: keyof typeof operations = 'getPage') =>
  urlOf(
    { operation: operations[operation], path: { adId: id, pageId: id, collectionId: id }, query: {} },
    'https://api.example.com/prefix/',
  );

/** Ids as people, models and attackers write them. */
const ids = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 320 }),
  fc.string({
    unit: fc.constantFrom('.', '/', '\\', '%', '2', 'e', 'f', '?', '#', ';', ' ', '\0', '\n', '@', ':'),
    maxLength: 12,
  }),
);

describe('an address', () => {
  test('keeps the path prefix of the base address, without doubling slashes', () => {
    expect(addressFor('4711')).toBe('https://api.example.com/prefix/v1/pages/4711');
  });

  test('carries query parameters encoded', () => {
    const call = {
      operation: operations.listCollectionItems,
      path: { collectionId: 'c' },
      query: { cursor: 'a&b=c d', limit: 5 },
    };
    expect(urlOf(call, 'https://api.example.com')).toBe(
      'https://api.example.com/v1/collections/c/items?cursor=a%26b%3Dc+d&limit=5',
    );
  });

  test.each(['', '.', '..', '../account', 'a/../../account', '..\\account', 'x/..', '\ud800', 'x'.repeat(301)])(
    'is not made of the id %j',
    (id) => expect(() => addressFor(id)).toThrow(/is not an id/),
  );

  test('reaches the endpoint of its operation, whatever the id: also behind a proxy that decodes', () => {
    fc.assert(
      fc.property(ids, fc.constantFrom('getPage', 'getAd', 'listCollectionItems'), (id, operation) => {
        let address: string;
        try {
          address = addressFor(id, operation);
        } catch (error) {
          expect((error as AdLibraryError).failure).toMatchObject({ kind: 'invalid_request', sent: false });
          return;
        }
        const { origin, pathname, search, hash } = new URL(address);
        const expected = `/prefix${operations[operation].path.replace(/\{\w+\}/, '([^/]+)')}`;
        expect([origin, search, hash]).toEqual(['https://api.example.com', '', '']);
        const [, segment = ''] = new RegExp(`^${expected}$`).exec(pathname) ?? [];
        expect(decodeURIComponent(segment)).toBe(id);
        const decoded = new URL(
          `https://api.example.com${pathname.replaceAll(/%2f/gi, '/').replaceAll(/%5c/gi, '\\')}`,
        );
        expect(decoded.pathname.startsWith(expected.split('(')[0] ?? '')).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
