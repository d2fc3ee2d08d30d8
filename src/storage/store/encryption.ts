import { createCipheriv, createDecipheriv, createHmac, hash, hkdfSync, randomBytes } from 'node:crypto';
import type { ItemLimits, Store } from '../storage.ts';

/** Authenticated encryption. Without the secret, nobody can read a value or change it without being noticed. */
export interface Encryption {
  /**
   * Returns a keyed hash of a name, e.g. of an API key. The store contains only hashes of names, so that the names
   * reveal nothing.
   */
  hashName(...nameParts: readonly string[]): string;
  /**
   * Encrypts a value. Decrypting the value requires the same `storageKey`.
   * @param storageKey the key under which the value is stored
   */
  encrypt(storageKey: string, value: string | Buffer): Buffer;
  /**
   * Decrypts a value. Returns undefined if the value was changed, or was encrypted with another secret or `storageKey`.
   */
  decrypt(storageKey: string, encryptedValue: Buffer): Buffer | undefined;
}

interface EncryptionOptions {
  secret: string;
  /** The purpose of the encryption, e.g. `shared state`. Different purposes have different encryption keys. */
  purpose?: string;
  /**
   * Called if a value cannot be decrypted, e.g. because it was encrypted with another secret. Called only once for each
   * reason.
   */
  warn?(message: string): void;
}

/**
 * Each encrypted value begins with a header. It contains the format version (one byte), the id of the secret, a nonce
 * and the authentication tag. The random nonce makes every encrypted value unique.
 */
const formatVersion = 1;
const secretIdBytes = 4;
const nonceBytes = 12;
const tagBytes = 16;
const headerBytes = 1 + secretIdBytes + nonceBytes + tagBytes;

/** The length of a hashed name, in base64url characters. 22 characters represent 132 bits. */
const hashedNameLength = 22;

/** Creates an `Encryption` that uses AES-256-GCM. All keys are derived from the secret with HKDF (RFC 5869). */
export function createEncryption({ secret, purpose = 'shared state', warn = () => {} }: EncryptionOptions): Encryption {
  const deriveKey = (keyPurpose: string, keyBytes = 32) =>
    Buffer.from(hkdfSync('sha256', secret, `ad-library-mcp ${purpose}`, keyPurpose, keyBytes));
  const nameKey = deriveKey('names');
  const valueKey = deriveKey('values');
  const header = Buffer.concat([Buffer.of(formatVersion), deriveKey('id', secretIdBytes)]);
  const loggedProblems = new Set<string>();
  const warnOnce = (problem: string) => {
    if (!loggedProblems.has(problem)) warn(problem);
    loggedProblems.add(problem);
    return undefined;
  };
  // Use a separate encryption key for each storage key, because random nonces suffice only for a limited number of
  // values per encryption key. All replicas together will never reach this number for one storage key.
  const deriveValueKey = (storageKey: string) => createHmac('sha256', valueKey).update(storageKey).digest();
  return {
    hashName: (...nameParts) =>
      createHmac('sha256', nameKey).update(JSON.stringify(nameParts)).digest('base64url').slice(0, hashedNameLength),
    encrypt: (storageKey, value) => {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', deriveValueKey(storageKey), nonce, { authTagLength: tagBytes });
      const ciphertext = [cipher.update(value), cipher.final()];
      return Buffer.concat([header, nonce, cipher.getAuthTag(), ...ciphertext]);
    },
    decrypt: (storageKey, encryptedValue) => {
      if (encryptedValue.length < headerBytes) return warnOnce(damagedWarning);
      if (!encryptedValue.subarray(0, header.length).equals(header)) return warnOnce(otherSecretWarning);
      const nonce = encryptedValue.subarray(header.length, header.length + nonceBytes);
      const decipher = createDecipheriv('aes-256-gcm', deriveValueKey(storageKey), nonce, { authTagLength: tagBytes });
      decipher.setAuthTag(encryptedValue.subarray(header.length + nonceBytes, headerBytes));
      try {
        return Buffer.concat([decipher.update(encryptedValue.subarray(headerBytes)), decipher.final()]);
      } catch {
        return warnOnce(damagedWarning);
      }
    },
  };
}

/**
 * An `Encryption` that does not encrypt anything. It is for data that only the owner can read: in the memory of a
 * process, or in a private folder.
 */
export const noEncryption: Encryption = {
  hashName: (...nameParts) => hash('sha256', JSON.stringify(nameParts), 'base64url').slice(0, hashedNameLength),
  encrypt: (_, value) => Buffer.from(value),
  decrypt: (_, value) => value,
};

/**
 * Decodes a token from base64url. Returns an empty buffer if `token` is not canonical base64url, so that each token has
 * only one valid spelling.
 */
export function decodeToken(token: string): Buffer {
  const decodedBytes = Buffer.from(token, 'base64url');
  return decodedBytes.toString('base64url') === token ? decodedBytes : Buffer.alloc(0);
}

const otherSecretWarning =
  'the shared state contains values that were encrypted with another AD_LIBRARY_STATE_SECRET; they are ignored';
const damagedWarning = 'the shared state contains values that were truncated or changed; they are ignored';

/** Opens a collection whose items are encrypted in the store. */
export const openEncryptedItems = (
  { store, encryption }: { store: Pick<Store, 'readItems' | 'putItems'>; encryption: Encryption },
  collectionName: string,
) => ({
  encrypt: (id: string, content: string | Buffer) => encryption.encrypt(`${collectionName} ${id}`, content),
  /** Writes an encrypted item, regardless of whether the item already exists. */
  async putItem(id: string, body: Buffer, limits: ItemLimits): Promise<void> {
    for (
      let sequenceNumber = 0;
      (await store.putItems(collectionName, [{ id, expectedSequenceNumber: sequenceNumber, body }], limits)).size > 0;
    )
      sequenceNumber = (await store.readItems(collectionName, [id])).get(id)?.sequenceNumber ?? 0;
  },
  /** Reads and decrypts an item. Returns undefined if the item does not exist or cannot be decrypted. */
  async getItem(id: string): Promise<Buffer | undefined> {
    const item = (await store.readItems(collectionName, [id])).get(id);
    return item && encryption.decrypt(`${collectionName} ${id}`, item.body);
  },
});
