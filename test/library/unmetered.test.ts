import { expect } from 'vitest';
import { keysText } from '../../src/library/commands/commands.ts';
import { freshLibraryTest as test } from './support/fixtures.ts';
import { uuid } from './support/served-library.ts';

test('calls with an unmetered key cost nothing and meet no limits, also in an account without credits', async ({
  served,
}) => {
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
});

test('the list of keys tells unmetered ones apart', ({ served }) => {
  served.key({ name: 'Paying' });
  served.key({ name: 'Mine', unmetered: true });
  const [paying, mine] = keysText(served.library.keys.list()).split('\n');
  expect(paying).toContain('  active  Paying  ');
  expect(mine).toContain('  active, unmetered  Mine  ');
});

test.for([{ credits: 5 }, { credits: 0 }, { hourlyLimit: 1 }, { dailyLimit: 1 }, { subscription: false }])(
  'an unmetered key with %j is refused',
  (options, { served }) => {
    const before = served.library.keys.list();
    expect(() => served.key({ unmetered: true, ...options })).toThrow(/^An unmetered key has no credits or limits/);
    expect(served.library.keys.list()).toEqual(before);
  },
);
