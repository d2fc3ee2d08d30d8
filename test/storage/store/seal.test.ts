import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createSeal } from '../../../src/storage/store/seal.ts';

const secret = 'a secret of at least 32 characters';
const sealed = (own = secret) => {
  const warnings: string[] = [];
  return { ...createSeal({ secret: own, warn: (message) => warnings.push(message) }), warnings };
};

describe('a sealed value', () => {
  test('is read by every replica with the same secret, whatever it holds', () => {
    const [one, other] = [sealed(), sealed()];
    fc.assert(
      fc.property(fc.string(), fc.uint8Array({ maxLength: 300 }), (key, value) => {
        expect(other.open(key, one.close(key, Buffer.from(value)))).toEqual(Buffer.from(value));
      }),
    );
  });

  test('shows nothing of the value, and not even whether two are equal', () => {
    const seal = sealed();
    const [one, other] = [seal.close('key', 'an ad of an advertiser'), seal.close('key', 'an ad of an advertiser')];
    expect(one.toString('latin1')).not.toContain('advertiser');
    expect(one.subarray(5)).not.toEqual(other.subarray(5));
  });

  test('is absent with another secret, and that is said once', () => {
    const other = sealed('another secret of 32 characters !');
    for (let time = 0; time < 3; time++) expect(other.open('key', sealed().close('key', 'value'))).toBeUndefined();
    expect(other.warnings).toEqual([expect.stringContaining('another AD_LIBRARY_STATE_SECRET')]);
  });

  test('is absent if it was cut, changed, or moved to another key', () => {
    const seal = sealed();
    const whole = seal.close('key', 'a value of some length');
    for (let length = 0; length < whole.length; length++)
      expect(seal.open('key', whole.subarray(0, length)), `${length} bytes`).toBeUndefined();
    for (let at = 0; at < whole.length; at++) {
      const changed = Buffer.from(whole);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(seal.open('key', changed), `byte ${at}`).toBeUndefined();
    }
    expect(seal.open('other', whole)).toBeUndefined();
    expect(seal.open('key', whole)?.toString()).toBe('a value of some length');
    expect(seal.warnings).toHaveLength(2);
  });
});

test('names tell nothing, differ with their parts and with the secret, and are the same for all replicas', () => {
  const { name } = sealed();
  expect(name('a', 'b')).toBe(sealed().name('a', 'b'));
  expect(new Set([name('a', 'b'), name('ab'), name('a,b'), name('b', 'a'), name('a', 'b', '')]).size).toBe(5);
  expect(name('a', 'b')).not.toBe(sealed('another secret of 32 characters !').name('a', 'b'));
  expect(name('svc_live_key')).toMatch(/^[\w-]{22}$/);
});
