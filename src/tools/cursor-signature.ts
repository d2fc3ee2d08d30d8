import { createHmac } from 'node:crypto';
import { AdLibraryError } from '../api/errors.ts';

/** 66 bits, as base64url. */
const SIGNATURE_LENGTH = 11;

/**
 * Signs under the key of one caller, so that every process the key is used with reads the same cursors, and no other
 * key's. What is signed with is derived from the key: a signature tells nothing that helps to find it.
 */
export function cursorSigner(apiKey: string | undefined): (text: string) => string {
  let secret: Buffer | undefined;
  return (text) => {
    if (apiKey === undefined) throw new AdLibraryError({ kind: 'no_api_key', sent: false });
    secret ??= createHmac('sha256', apiKey).update('ad-library-mcp cursor').digest();
    return createHmac('sha256', secret).update(text).digest('base64url').slice(0, SIGNATURE_LENGTH);
  };
}
