import { createHmac } from 'node:crypto';
import { AdLibraryError } from '../api/errors.ts';

/** 66 bits, as base64url. */
const SIGNATURE_LENGTH = 11;

/**
 * Signs with a secret derived from the caller's API key, so that every process reads the cursors of that key and no
 * other's. A signature gives away nothing about the key.
 */
export function cursorSigner(apiKey: string | undefined): (text: string) => string {
  let secret: Buffer | undefined;
  return (text) => {
    if (apiKey === undefined) throw new AdLibraryError({ kind: 'no_api_key', sent: false });
    secret ??= createHmac('sha256', apiKey).update('ad-library-mcp cursor').digest();
    return createHmac('sha256', secret).update(text).digest('base64url').slice(0, SIGNATURE_LENGTH);
  };
}
