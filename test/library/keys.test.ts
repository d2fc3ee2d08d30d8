import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';

test('the database of the local library stores only the hash of an API key', ({ libraryServer: { library } }) => {
  const { key } = library.keys.create({ name: 'Mine' });
  const storedData = [library.context.database.all('SELECT * FROM keys'), library.keys.list()];
  expect(JSON.stringify(storedData)).not.toContain(key.slice('svc_live_'.length));
});

test('an API key of the local library can be revoked by its secret, its id or its prefix', async ({
  libraryServer: { library, get, clock },
}) => {
  for (const property of ['key', 'id', 'keyPrefix'] as const) {
    const createdKey = library.keys.create();
    expect((await get('/v1/whoami', createdKey.key)).status).toBe(200);
    const { revokedAt } = library.keys.revoke(createdKey[property]);
    expect(revokedAt).toBe(clock.now++);
    expect((await get('/v1/whoami', createdKey.key)).status).toBe(401);
    expect(library.keys.revoke(createdKey.id).revokedAt).toBe(revokedAt);
  }
});

test('revoking an API key that the local library does not know fails and revokes no other key', ({
  libraryServer: { library },
}) => {
  const { keyPrefix } = library.keys.create();
  const keysBefore = library.keys.list();
  for (const name of ['svc_live_', keyPrefix.slice(0, -1), `svc_live_${'0'.repeat(40)}`, 'svc_live_zzz', ''])
    expect(() => library.keys.revoke(name)).toThrow(/^No key has that id or prefix\. "library key list" shows them\.$/);
  expect(library.keys.list()).toEqual(keysBefore);
});

test('each new API key of the local library gets its own account with two collections', async ({ libraryServer }) => {
  const key = libraryServer.createKey();
  const listCollections = async (key: string) => (await libraryServer.get('/v1/collections', key)).body.items;
  const collections = await listCollections(key);
  expect(collections).toMatchObject([
    { name: 'Saved ads', isDefault: true, defaultType: 'ads', isOwner: true, adCount: 0, pageCount: 0 },
    { name: 'Saved pages', isDefault: true, defaultType: 'pages', isOwner: true },
  ]);
  expect((await listCollections(libraryServer.createKey()))[0].id).not.toBe(collections[0].id);
});

test.for([
  [{ scopes: ['ads:read', 'cats:read'] }, /Unknown scope cats:read\. Known: account:read/],
  [{ scopes: [] }, /at least one scope/],
  [{ credits: -1 }, /credits takes a whole number/],
  [{ hourlyLimit: 1.5 }, /hourlyLimit takes a whole number/],
  [{ dailyLimit: Number.NaN }, /dailyLimit takes a whole number/],
  ...[{ credits: 0 }, { hourlyLimit: 1 }, { dailyLimit: 1 }, { subscription: false }].map(
    (options) => [{ unmetered: true, ...options }, /^An unmetered key has no credits or limits/] as const,
  ),
] as const)(
  'creating an API key with the invalid options %j fails and creates no account',
  ([options, message], { libraryServer: { library } }) => {
    const countAccounts = () => library.context.database.all('SELECT * FROM accounts').length;
    const countBefore = countAccounts();
    expect(() => library.keys.create(options)).toThrow(message);
    expect(countAccounts()).toBe(countBefore);
  },
);

test('the local library accepts an Authorization header in any letter case and with extra spaces', async ({
  libraryServer,
}) => {
  const key = libraryServer.createKey();
  const getStatus = async (Authorization: string) =>
    (await libraryServer.request('GET', '/v1/whoami', { headers: { Authorization } })).status;
  for (const value of [`bearer ${key}`, `BEARER   ${key}`, `Bearer ${key} `]) expect(await getStatus(value)).toBe(200);
  for (const value of [key, `Basic ${key}`, `Bearer ${key} x`, 'Bearer', `Bearer ${key.toUpperCase()}`])
    expect(await getStatus(value)).toBe(401);
});
