import type { Payer } from '../api/client.ts';

/** What both SDK lines hand on of an HTTP request's credentials. */
interface AuthInfo {
  token: string;
  clientId: string;
}

/** Who pays for a call: over HTTP whoever's key came with it, else the one the server was bound for. */
export const payerOf = (authInfo: AuthInfo | undefined, bound: Payer = nobody): Payer =>
  authInfo === undefined ? bound : { key: authInfo.token, owner: authInfo.clientId };

const nobody: Payer = { key: undefined, owner: '' };
