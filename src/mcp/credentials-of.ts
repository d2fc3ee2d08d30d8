import type { Credentials } from '../api/client.ts';

/** What both SDK lines hand on of an HTTP request's credentials. */
interface AuthInfo {
  token: string;
  clientId: string;
}

/** Who pays for a call: over HTTP whoever's key came with it, else the one the server was bound for. */
export const credentialsOf = (authInfo: AuthInfo | undefined, bound: Credentials = nobody): Credentials =>
  authInfo === undefined ? bound : { apiKey: authInfo.token, tenantId: authInfo.clientId };

const nobody: Credentials = { apiKey: undefined, tenantId: '' };
