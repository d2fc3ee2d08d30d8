import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonical, fingerprint, operations } from '../../src/api/call.ts';

/** The same value with the keys of every object the other way round. */
const reversed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, reversed(inner)]),
  );
};

const call = (body: Record<string, unknown>) => ({ operation: operations.searchAds, path: {}, query: {}, body });
const bodies = fc.dictionary(
  fc.string().filter((key) => key !== '__proto__'),
  fc.jsonValue(),
);

test('equal requests have the same fingerprint, whatever the order of their keys', () => {
  fc.assert(
    fc.property(bodies, (body) => {
      expect(fingerprint(call(reversed(body) as Record<string, unknown>))).toBe(fingerprint(call(body)));
    }),
  );
});

test('different requests have different fingerprints', () => {
  fc.assert(
    fc.property(bodies, bodies, (one, other) => {
      const equal = JSON.stringify(JSON.parse(canonical(one))) === JSON.stringify(JSON.parse(canonical(other)));
      expect(fingerprint(call(one)) === fingerprint(call(other))).toBe(equal);
    }),
  );
  expect(fingerprint(call({ countries: ['DE', 'AT'] }))).not.toBe(fingerprint(call({ countries: ['AT', 'DE'] })));
});

test('a key named __proto__ counts', () => {
  const odd = JSON.parse('{"__proto__":{"a":1}}');
  expect(fingerprint(call(odd))).not.toBe(fingerprint(call({})));
});
