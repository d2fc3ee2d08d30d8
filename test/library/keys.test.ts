import { expect } from 'vitest';
import { keysText } from '../../src/library/commands/commands.ts';
import { freshLibraryTest as freshTest, libraryTest as test } from './support/fixtures.ts';
import { serveLibrary, uuid } from './support/served-library.ts';

test('a key looks as documented, and only a hash of it is kept', async ({ served }) => {
  const { key, keyPrefix } = served.library.keys.create({ name: 'Mine' });
  expect(key).toMatch(/^svc_live_[0-9a-f]{40}$/);
  expect(key.startsWith(keyPrefix)).toBe(true);
  const rows = served.library.context.database.all('SELECT * FROM keys');
  expect(JSON.stringify(rows)).not.toContain(key.slice('svc_live_'.length));
  expect(JSON.stringify(served.library.keys.list())).not.toContain(key);
});

test('a key can be revoked by itself, its id, its prefix or part of it, and stops working at once', async ({
  served,
}) => {
  for (const name of ['key', 'id', 'keyPrefix', 'part'] as const) {
    const made = served.library.keys.create();
    expect((await served.ask('GET', '/v1/whoami', { key: made.key })).status).toBe(200);
    const { revokedAt } = served.library.keys.revoke(name === 'part' ? made.keyPrefix.slice(0, -1) : made[name]);
    expect(revokedAt).toBe(served.clock.now);
    expect((await served.ask('GET', '/v1/whoami', { key: made.key })).status).toBe(401);
    expect(served.library.keys.revoke(made.id).revokedAt).toBe(revokedAt);
  }
});

test.for([
  ['svc_live_', /No key has/],
  [`svc_live_${'0'.repeat(40)}`, /^No key has that id or prefix\. "library key list" shows them\.$/],
  ['svc_live_zzz', /No key has/],
  ['', /No key has/],
] as const)('%j revokes nothing', ([name, message], { served }) => {
  const before = served.library.keys.list();
  expect(() => served.library.keys.revoke(name)).toThrow(message);
  expect(served.library.keys.list()).toEqual(before);
});

test('a prefix that several keys share revokes none of them', async () => {
  const own = await serveLibrary();
  const prefixes = Array.from({ length: 17 }, () => own.library.keys.create().keyPrefix.slice(0, 10));
  const shared = prefixes.find((prefix, at) => prefixes.indexOf(prefix) !== at) ?? '';
  expect(() => own.library.keys.revoke(shared)).toThrow(/keys begin with/);
  expect(own.library.keys.list().every(({ revokedAt }) => revokedAt === null)).toBe(true);
  await own.close();
});

test('every key has an account of its own with the two default collections, unless it shares one', async ({
  served,
}) => {
  const first = served.key();
  const list = async (key: string) => (await served.ask('GET', '/v1/collections', { key })).body.items;
  const mine = await list(first);
  expect(mine).toMatchObject([
    { name: 'Saved ads', isDefault: true, defaultType: 'ads', isOwner: true, adCount: 0, pageCount: 0 },
    { name: 'Saved pages', isDefault: true, defaultType: 'pages', isOwner: true },
  ]);
  expect(await list(served.key({ accountOf: first.slice(0, 17) }))).toEqual(mine);
  expect((await list(served.key()))[0].id).not.toBe(mine[0].id);
});

test.for([
  [{ scopes: ['ads:read', 'cats:read'] }, /Unknown scope cats:read\. Known: account:read/],
  [{ scopes: [] }, /at least one scope/],
  [{ credits: -1 }, /credits takes a whole number/],
  [{ hourlyLimit: 1.5 }, /hourlyLimit takes a whole number/],
  [{ dailyLimit: Number.NaN }, /dailyLimit takes a whole number/],
  [{ accountOf: 'nobody' }, /No key has/],
  ...[{ credits: 5 }, { credits: 0 }, { hourlyLimit: 1 }, { dailyLimit: 1 }, { subscription: false }].map(
    (options) => [{ unmetered: true, ...options }, /^An unmetered key has no credits or limits/] as const,
  ),
] as const)('%j is refused and leaves nothing behind', ([options, message], { served }) => {
  const accounts = () => served.library.context.database.all('SELECT * FROM accounts').length;
  const before = accounts();
  expect(() => served.library.keys.create(options)).toThrow(message);
  expect(accounts()).toBe(before);
});

test('the header is read as HTTP says: the scheme in any case, spaces around', async ({ served }) => {
  const key = served.key();
  for (const value of [`bearer ${key}`, `BEARER   ${key}`, `Bearer ${key} `]) {
    expect((await served.ask('GET', '/v1/whoami', { headers: { Authorization: value } })).status).toBe(200);
  }
  for (const value of [key, `Basic ${key}`, `Bearer ${key} x`, 'Bearer', `Bearer ${key.toUpperCase()}`]) {
    expect((await served.ask('GET', '/v1/whoami', { headers: { Authorization: value } })).status).toBe(401);
  }
});

freshTest(
  'calls with an unmetered key cost nothing and meet no limits, also in an account without credits',
  async ({ served }) => {
    await served.load({ id: uuid(1) });
    const empty = served.key({ credits: 0, hourlyLimit: 0, dailyLimit: 0 });
    const unsubscribed = served.key({ subscription: false });
    for (const accountOf of [undefined, empty, unsubscribed]) {
      const key = served.key({ unmetered: true, ...(accountOf && { accountOf }) });
      const calls = [
        await served.ask('GET', `/v1/ads/${uuid(1)}`, { key }),
        await served.ask('POST', '/v1/ads/search', { key, body: {} }),
      ];
      expect(calls.map(({ status }) => status)).toEqual([200, 200]);
      for (const { headers } of calls) expect(headers.get('x-service-credits-charged')).toBe('0');
      const { body } = await served.ask('GET', '/v1/credits', { key });
      expect(body.usageLimit).toMatchObject({ isLimitReached: false, limitType: 'none', hourlyCredits: 0 });
    }
    expect((await served.ask('GET', `/v1/ads/${uuid(1)}`, { key: empty })).status).toBe(402);
  },
);

test('the list of keys tells unmetered ones apart', ({ served }) => {
  served.key({ name: 'Paying' });
  served.key({ name: 'Free', unmetered: true });
  const [paying, free] = keysText(served.library.keys.list()).split('\n').slice(-2);
  expect(paying).toContain('  active  Paying  ');
  expect(free).toContain('  active, unmetered  Free  ');
});
