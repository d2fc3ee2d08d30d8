import { createCipheriv, createDecipheriv, createHmac, hash, hkdfSync, randomBytes } from 'node:crypto';
import type { ItemLimits, Store } from '../storage.ts';

/** Encrypts the shared state and the tokens of sign-in, so that nobody else can read them, and detects changes. */
export interface Seal {
  /** A name that tells nothing about its parts. */
  name(...parts: readonly string[]): string;
  /** Encrypts a value, bound to the key it is stored under. */
  close(key: string, value: string | Buffer): Buffer;
  /** The value; undefined if it was sealed with another secret, for another key, or has been changed. */
  open(key: string, sealed: Buffer): Buffer | undefined;
}

interface SealOptions {
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
const headBytes = 1 + idBytes + nonceBytes + tagBytes;

/** Characters of a name: 132 bits. */
const nameLength = 22;

export function createSeal({ secret, use = 'shared state', warn = () => {} }: SealOptions): Seal {
  const deriveKey = (purpose: string, bytes = 32) =>
    Buffer.from(hkdfSync('sha256', secret, `ad-library-mcp ${use}`, purpose, bytes));
  const nameKey = deriveKey('names');
  const valueKey = deriveKey('values');
  const head = Buffer.concat([Buffer.of(version), deriveKey('id', idBytes)]);
  const warned = new Set<string>();
  const unreadable = (problem: string) => {
    if (!warned.has(problem)) warn(problem);
    warned.add(problem);
    return undefined;
  };
  // A key for each name: random nonces are safe for many more values than the fleet will ever seal.
  const keyFor = (name: string) => createHmac('sha256', valueKey).update(name).digest();
  return {
    name: (...parts) =>
      createHmac('sha256', nameKey).update(JSON.stringify(parts)).digest('base64url').slice(0, nameLength),
    close: (key, value) => {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', keyFor(key), nonce, { authTagLength: tagBytes });
      const text = [cipher.update(value), cipher.final()];
      return Buffer.concat([head, nonce, cipher.getAuthTag(), ...text]);
    },
    open: (key, sealed) => {
      if (sealed.length < headBytes) return unreadable(broken);
      if (!sealed.subarray(0, head.length).equals(head)) return unreadable(otherSecret);
      const nonce = sealed.subarray(head.length, head.length + nonceBytes);
      const decipher = createDecipheriv('aes-256-gcm', keyFor(key), nonce, { authTagLength: tagBytes });
      decipher.setAuthTag(sealed.subarray(head.length + nonceBytes, headBytes));
      try {
        return Buffer.concat([decipher.update(sealed.subarray(headBytes)), decipher.final()]);
      } catch {
        return unreadable(broken);
      }
    },
  };
}

/** For what only its owner can read. */
export const noSeal: Seal = {
  name: (...parts) => hash('sha256', JSON.stringify(parts), 'base64url').slice(0, nameLength),
  close: (_, value) => Buffer.from(value),
  open: (_, value) => value,
};

/** The sealed bytes of a base64url text; empty if the text is not in the form that this server writes. */
export function sealedIn(text: string): Buffer {
  const sealed = Buffer.from(text, 'base64url');
  return sealed.toString('base64url') === text ? sealed : Buffer.alloc(0);
}

const otherSecret =
  'the shared state holds values that were sealed with another AD_LIBRARY_STATE_SECRET; they count as absent';
const broken = 'the shared state holds values that were cut or changed; they count as absent';

/** Items of a collection by their ids, sealed. */
export const sealedItems = (
  { store, seal }: { store: Pick<Store, 'items' | 'putItems'>; seal: Seal },
  name: string,
) => ({
  close: (id: string, content: string | Buffer) => seal.close(`${name} ${id}`, content),
  async put(id: string, body: Buffer, limits: ItemLimits): Promise<void> {
    for (let seq = 0; (await store.putItems(name, [{ id, seq, body }], limits)).size > 0; )
      seq = (await store.items(name, [id])).get(id)?.seq ?? 0;
  },
  async get(id: string): Promise<Buffer | undefined> {
    const found = (await store.items(name, [id])).get(id);
    return found && seal.open(`${name} ${id}`, found.body);
  },
});
