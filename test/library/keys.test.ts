import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';

test('only a hash of a key is kept', ({ served: { library } }) => {
  const { key } = library.keys.create({ name: 'Mine' });
  const kept = [library.context.database.all('SELECT * FROM keys'), library.keys.list()];
  expect(JSON.stringify(kept)).not.toContain(key.slice('svc_live_'.length));
});

test('a key can be revoked by itself, its id or its prefix, and stops working at once', async ({
  served: { library, get, clock },
}) => {
  for (const name of ['key', 'id', 'keyPrefix'] as const) {
    const made = library.keys.create();
    expect((await get('/v1/whoami', made.key)).status).toBe(200);
    const { revokedAt } = library.keys.revoke(made[name]);
    expect(revokedAt).toBe(clock.now++);
    expect((await get('/v1/whoami', made.key)).status).toBe(401);
    expect(library.keys.revoke(made.id).revokedAt).toBe(revokedAt);
  }
});

test('a name that no key has revokes nothing', ({ served: { library } }) => {
  const { keyPrefix } = library.keys.create();
  const before = library.keys.list();
  for (const name of ['svc_live_', keyPrefix.slice(0, -1), `svc_live_${'0'.repeat(40)}`, 'svc_live_zzz', ''])
    expect(() => library.keys.revoke(name)).toThrow(/^No key has that id or prefix\. "library key list" shows them\.$/);
  expect(library.keys.list()).toEqual(before);
});

test('every key has an account of its own with the two default collections', async ({ served }) => {
  const first = served.key();
  const list = async (key: string) => (await served.get('/v1/collections', key)).body.items;
  const mine = await list(first);
  expect(mine).toMatchObject([
    { name: 'Saved ads', isDefault: true, defaultType: 'ads', isOwner: true, adCount: 0, pageCount: 0 },
    { name: 'Saved pages', isDefault: true, defaultType: 'pages', isOwner: true },
  ]);
  expect((await list(served.key()))[0].id).not.toBe(mine[0].id);
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
] as const)('%j is refused and leaves nothing behind', ([options, message], { served: { library } }) => {
  const accounts = () => library.context.database.all('SELECT * FROM accounts').length;
  const before = accounts();
  expect(() => library.keys.create(options)).toThrow(message);
  expect(accounts()).toBe(before);
});

test('the header is read as HTTP says: the scheme in any case, spaces around', async ({ served }) => {
  const key = served.key();
  const statusFor = async (Authorization: string) =>
    (await served.ask('GET', '/v1/whoami', { headers: { Authorization } })).status;
  for (const value of [`bearer ${key}`, `BEARER   ${key}`, `Bearer ${key} `]) expect(await statusFor(value)).toBe(200);
  for (const value of [key, `Basic ${key}`, `Bearer ${key} x`, 'Bearer', `Bearer ${key.toUpperCase()}`])
    expect(await statusFor(value)).toBe(401);
});
