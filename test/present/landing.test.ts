import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cleanAddress, domainOf, expiryOf } from '../../src/present/values.ts';

describe('where an ad leads', () => {
  test('is a domain without www, however the address is written', () => {
    for (const address of [
      'https://www.serra.example/boots?x=1',
      'HTTP://WWW.SERRA.EXAMPLE',
      'serra.example/boots',
      'https://user:secret@serra.example:8443/',
      '//serra.example',
    ])
      expect(domainOf(address)).toBe('serra.example');
    expect(domainOf('')).toBeUndefined();
    expect(domainOf(null)).toBeUndefined();
  });

  test('is shown without tracking, unfilled macros and fragments, but with what the page needs', () => {
    expect(
      cleanAddress(
        'https://serra.example/p?id=7&utm_source=fb&fbclid=1&c={{campaign.name}}&gclid=x&size=42#reviews',
        60,
      ),
    ).toBe('https://serra.example/p?id=7&size=42');
    expect(cleanAddress('https://serra.example/?utm_medium=cpc', 60)).toBe('https://serra.example/');
  });

  test('is readable where the path is percent-coded, and stays one word', () => {
    expect(cleanAddress('https://serra.example/%EB%B6%80%EC%B8%A0%20a', 60)).toBe('https://serra.example/부츠%20a');
    expect(cleanAddress('https://serra.example/%E0%A4%A', 60)).toBe('https://serra.example/%E0%A4%A');
  });

  test('is no domain where it is longer than a name can be', () => {
    expect(domainOf(`https://${'a'.repeat(250)}.example/`)).toBeUndefined();
    expect(domainOf(`https://${'a.'.repeat(600)}example/`)).toBeUndefined();
    expect(domainOf(`https://${'a.'.repeat(120)}example/`)).toBe(`${'a.'.repeat(120)}example`);
  });

  test('says how much of a long address is missing, what was not looked at included', () => {
    const address = `https://serra.example/${'boots/'.repeat(3000)}`;
    const [, kept = '', missing] = /^(.*)… \(\+(\d+) chars\)$/.exec(cleanAddress(address, 30) ?? '') ?? [];
    expect(kept.length + Number(missing)).toBe(address.length);
  });

  test('is bounded', () => {
    fc.assert(
      fc.property(fc.oneof(fc.webUrl({ withQueryParameters: true }), fc.string({ unit: 'binary' })), (address) => {
        expect(cleanAddress(address.repeat(50), 30)?.length ?? 0).toBeLessThan(200);
        expect(domainOf(address) ?? '').not.toMatch(/[\s/]/);
      }),
    );
  });
});

describe('a signed address', () => {
  test('says when it ends, in three dialects', () => {
    expect(expiryOf('https://m.example/v.mp4?_nc=1&oe=68000000')).toBe(0x68000000 * 1000);
    expect(expiryOf('https://m.example/v.mp4?Expires=1700000000&Signature=x')).toBe(1_700_000_000_000);
    expect(expiryOf('https://m.example/v?X-Amz-Date=20260101T000000Z&X-Amz-Expires=3600')).toBe(
      Date.UTC(2026, 0, 1, 1),
    );
    expect(expiryOf('https://m.example/v.mp4')).toBeUndefined();
  });
});
