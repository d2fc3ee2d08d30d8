import { createCipheriv, createDecipheriv, createHmac, hash, hkdfSync, randomBytes } from 'node:crypto';
import type { ItemLimits, Store } from '../storage.ts';

/** Encrypts the shared state and the tokens of sign-in, so that nobody else can read them, and detects changes. */
export interface Encryption {
  /** A name that tells nothing about its parts. */
  hashName(...parts: readonly string[]): string;
  /** Encrypts a value, bound to the key it is stored under. */
  encrypt(key: string, value: string | Buffer): Buffer;
  /** The value; undefined if it was sealed with another secret, for another key, or has been changed. */
  decrypt(key: string, sealed: Buffer): Buffer | undefined;
}

interface EncryptionOptions {
  secret: string;
  /** The use of the seal: the same secret gives different keys for different uses. */
  use?: string;
  /** Receives what was wrong with the first value of each kind that could not be opened. */
  warn?(message: string): void;
}

/** A sealed value begins with the version of this form, the id of the secret, the nonce and the tag: no two are equal. */
const version = 1;
const idBytes = 4;
const nonceBytes = 12;
const tagBytes = 16;
const headerBytes = 1 + idBytes + nonceBytes + tagBytes;

/** Characters of a name: 132 bits. */
const nameLength = 22;

export function createEncryption({ secret, use = 'shared state', warn = () => {} }: EncryptionOptions): Encryption {
  const deriveKey = (purpose: string, bytes = 32) =>
    Buffer.from(hkdfSync('sha256', secret, `ad-library-mcp ${use}`, purpose, bytes));
  const nameKey = deriveKey('names');
  const valueKey = deriveKey('values');
  const header = Buffer.concat([Buffer.of(version), deriveKey('id', idBytes)]);
  const warned = new Set<string>();
  const warnOnce = (problem: string) => {
    if (!warned.has(problem)) warn(problem);
    warned.add(problem);
    return undefined;
  };
  // A key for each name: random nonces are safe for many more values than the fleet will ever seal.
  const keyFor = (name: string) => createHmac('sha256', valueKey).update(name).digest();
  return {
    hashName: (...parts) =>
      createHmac('sha256', nameKey).update(JSON.stringify(parts)).digest('base64url').slice(0, nameLength),
    encrypt: (key, value) => {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', keyFor(key), nonce, { authTagLength: tagBytes });
      const text = [cipher.update(value), cipher.final()];
      return Buffer.concat([header, nonce, cipher.getAuthTag(), ...text]);
    },
    decrypt: (key, sealed) => {
      if (sealed.length < headerBytes) return warnOnce(damagedWarning);
      if (!sealed.subarray(0, header.length).equals(header)) return warnOnce(otherSecretWarning);
      const nonce = sealed.subarray(header.length, header.length + nonceBytes);
      const decipher = createDecipheriv('aes-256-gcm', keyFor(key), nonce, { authTagLength: tagBytes });
      decipher.setAuthTag(sealed.subarray(header.length + nonceBytes, headerBytes));
      try {
        return Buffer.concat([decipher.update(sealed.subarray(headerBytes)), decipher.final()]);
      } catch {
        return warnOnce(damagedWarning);
      }
    },
  };
}

/** For what only its owner can read. */
export const noEncryption: Encryption = {
  hashName: (...parts) => hash('sha256', JSON.stringify(parts), 'base64url').slice(0, nameLength),
  encrypt: (_, value) => Buffer.from(value),
  decrypt: (_, value) => value,
};

/** The sealed bytes of a base64url text; empty if the text is not in the form that this server writes. */
export function decodeToken(text: string): Buffer {
  const sealed = Buffer.from(text, 'base64url');
  return sealed.toString('base64url') === text ? sealed : Buffer.alloc(0);
}

const otherSecretWarning =
  'the shared state holds values that were sealed with another AD_LIBRARY_STATE_SECRET; they count as absent';
const damagedWarning = 'the shared state holds values that were cut or changed; they count as absent';

/** Items of a collection by their ids, sealed. */
export const openEncryptedItems = (
  { store, encryption }: { store: Pick<Store, 'readItems' | 'putItems'>; encryption: Encryption },
  name: string,
) => ({
  encrypt: (id: string, content: string | Buffer) => encryption.encrypt(`${name} ${id}`, content),
  async put(id: string, body: Buffer, limits: ItemLimits): Promise<void> {
    for (let seq = 0; (await store.putItems(name, [{ id, expectedSequenceNumber: seq, body }], limits)).size > 0; )
      seq = (await store.readItems(name, [id])).get(id)?.sequenceNumber ?? 0;
  },
  async get(id: string): Promise<Buffer | undefined> {
    const found = (await store.readItems(name, [id])).get(id);
    return found && encryption.decrypt(`${name} ${id}`, found.body);
  },
});
