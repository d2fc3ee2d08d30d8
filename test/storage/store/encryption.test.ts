import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createEncryption } from '../../../src/storage/store/encryption.ts';

const secret = 'a secret of at least 32 characters';
const createWithWarnings = (ownSecret = secret) => {
  const warnings: string[] = [];
  return { ...createEncryption({ secret: ownSecret, warn: (message) => warnings.push(message) }), warnings };
};

describe('Encryption of the shared store', () => {
  test('every replica that has the same secret can decrypt any value', () => {
    const [one, other] = [createWithWarnings(), createWithWarnings()];
    fc.assert(
      fc.property(fc.string(), fc.uint8Array({ maxLength: 300 }), (key, value) => {
        expect(other.decrypt(key, one.encrypt(key, Buffer.from(value)))).toEqual(Buffer.from(value));
      }),
    );
  });

  test('encrypting the same value twice gives two different results', () => {
    const seal = createWithWarnings();
    const [one, other] = [seal.encrypt('key', 'an ad of an advertiser'), seal.encrypt('key', 'an ad of an advertiser')];
    expect(one.toString('latin1')).not.toContain('advertiser');
    expect(one.subarray(5)).not.toEqual(other.subarray(5));
  });

  test('a value that was encrypted with another secret counts as missing', () => {
    const otherEncryption = createWithWarnings('another secret of 32 characters !');
    for (let time = 0; time < 3; time++)
      expect(otherEncryption.decrypt('key', createWithWarnings().encrypt('key', 'value'))).toBeUndefined();
    expect(otherEncryption.warnings).toEqual([expect.stringContaining('another AD_LIBRARY_STATE_SECRET')]);
  });

  test('an encrypted value that was modified or stored under another key counts as missing', () => {
    const seal = createWithWarnings();
    const encryptedValue = seal.encrypt('key', 'a value of some length');
    for (let length = 0; length < encryptedValue.length; length++)
      expect(seal.decrypt('key', encryptedValue.subarray(0, length)), `${length} bytes`).toBeUndefined();
    for (let at = 0; at < encryptedValue.length; at++) {
      const changed = Buffer.from(encryptedValue);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(seal.decrypt('key', changed), `byte ${at}`).toBeUndefined();
    }
    expect(seal.decrypt('other', encryptedValue)).toBeUndefined();
    expect(seal.decrypt('key', encryptedValue)?.toString()).toBe('a value of some length');
    expect(seal.warnings).toHaveLength(2);
  });
});

test('replicas with the same secret compute the same hashed names', () => {
  const { hashName } = createWithWarnings();
  expect(hashName('a', 'b')).toBe(createWithWarnings().hashName('a', 'b'));
  expect(
    new Set([hashName('a', 'b'), hashName('ab'), hashName('a,b'), hashName('b', 'a'), hashName('a', 'b', '')]).size,
  ).toBe(5);
  expect(hashName('a', 'b')).not.toBe(createWithWarnings('another secret of 32 characters !').hashName('a', 'b'));
  expect(hashName('svc_live_key')).toMatch(/^[\w-]{22}$/);
});
