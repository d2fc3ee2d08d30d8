import { expect } from 'vitest';
import { ErrorBody } from '../../../src/api/schemas.ts';
import { type ServedLibrary, serveLibrary, uuid } from './served-library.ts';

/** Two ads of one page, another page, and accounts in every state that the document distinguishes. */
export interface SampleLibrary {
  served: ServedLibrary;
  keys: Record<'good' | 'revoked' | 'unsubscribed' | 'empty' | 'limited' | 'stranger' | 'rich', string>;
  /** A collection of the good key's account with the second ad in it. */
  collection: string;
  ask(call: Case, key: string | undefined): ReturnType<ServedLibrary['ask']>;
  /** Expects the document's error and no charge. */
  expectError(call: Case, key: string | undefined, status: number, code?: string): Promise<ErrorBody['error']>;
}

export interface Case {
  method?: string;
  path(collection: string): string;
  body?: unknown;
}

export const at = (path: string) => () => path;
export const itemsOf = (rest: string) => (collection: string) => `/v1/collections/${collection}${rest}`;
export const search = (body: unknown = {}) => ({ method: 'POST', body });

export async function serveSampleLibrary(): Promise<SampleLibrary> {
  const served = await serveLibrary();
  await served.load(
    { id: uuid(1), pageId: 'page-1', headline: 'Warm socks', page: { pageName: 'Sock Shop' } },
    { id: uuid(2), pageId: 'page-1', headline: 'Cold drinks', page: { pageName: 'Sock Shop' } },
    { pageId: 'page-2', pageName: 'Drink Shop' },
  );
  const keys = {
    good: served.key({ name: 'Good key' }),
    revoked: served.key(),
    unsubscribed: served.key({ subscription: false }),
    empty: served.key({ credits: 0 }),
    limited: served.key({ hourlyLimit: 0 }),
    stranger: served.key(),
    rich: served.key({ credits: 1e9, hourlyLimit: 1e9, dailyLimit: 1e9 }),
  };
  served.library.keys.revoke(keys.revoked.slice(0, 17));
  const { body } = await served.ask('GET', '/v1/collections', { key: keys.good });
  const collection: string = body.items[0].id;
  await served.ask('POST', `/v1/collections/${collection}/items`, {
    key: keys.good,
    body: { itemType: 'ads', itemId: uuid(2) },
  });
  const ask: SampleLibrary['ask'] = ({ method = 'GET', path, body }, key) =>
    served.ask(method, path(collection), { key, body });
  const expectError: SampleLibrary['expectError'] = async (call, key, status, code) => {
    const answer = await ask(call, key);
    expect(answer.status).toBe(status);
    const { error } = ErrorBody.parse(answer.body);
    expect(Object.keys(answer.body)).toEqual(['error']);
    expect(error.requestId).toBe(answer.headers.get('x-service-request-id'));
    expect(error.requestId).toBeTruthy();
    expect(answer.headers.get('x-service-credits-charged')).toBeNull();
    if (code) expect(error.code).toBe(code);
    return error;
  };
  return { served, keys, collection, ask, expectError };
}
