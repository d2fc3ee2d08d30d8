import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { createTokens, type TokensOptions } from '../../../../src/serve/http/sign-in/tokens.ts';

const secret = 'a secret of sign-in, at least 32 characters';
const resource = 'https://ads.example.com/mcp';
const verifier = 'v'.repeat(43);
const challenge = createHash('sha256').update(verifier).digest('base64url');
const redirectUri = 'https://host.example.com/callback';
const minute = 60_000;
const day = 24 * 60 * minute;

function open() {
  const clock = { now: Date.UTC(2026, 0, 1) };
  const kept = new Map<string, never>();
  const connections: NonNullable<TokensOptions['connections']> = {
    read: async (tenantId) => kept.get(tenantId),
    update: async (tenantId, change) => {
      const { next, result } = change(kept.get(tenantId));
      if (next) kept.set(tenantId, next as never);
      return result;
    },
  };
  const shared = { secret, resource, connections, now: () => clock.now, tenantIdOf: (key: string) => `of ${key}` };
  const replica = (more: Partial<TokensOptions> = {}) => createTokens({ ...shared, ...more });
  const tokens = replica();
  const grant = { apiKey: 'svc_live_key', budget: 7, clientId: 'client', redirectUri, challenge };
  const redeem = (code: string, by = tokens) => by.redeem(code, { clientId: 'client', redirectUri, verifier });
  const connect = async () => (await redeem(await tokens.open(grant))) ?? { access_token: '', refresh_token: '' };
  return { clock, kept, replica, tokens, grant, redeem, connect };
}

test('a code lives for a minute, an access token for an hour, a refresh token for thirty days, each renewed', async () => {
  const { clock, tokens, grant, redeem, connect } = open();
  const late = await tokens.open(grant);
  clock.now += minute;
  expect(await redeem(late)).toBeUndefined();
  let { access_token: access, refresh_token: refresh } = await connect();
  expect(await tokens.credentials(access)).toEqual({
    ...{ apiKey: 'svc_live_key', tenantId: 'of svc_live_key' },
    connection: { id: expect.any(String), budget: 7 },
  });
  clock.now += 60 * minute;
  expect(await tokens.credentials(access)).toBeUndefined();
  for (let time = 0; time < 4; time++) {
    clock.now += 30 * day - 61 * minute;
    const renewed = await tokens.refresh(refresh, 'client');
    ({ access_token: access, refresh_token: refresh } = renewed ?? { access_token: '', refresh_token: '' });
    expect((await tokens.credentials(access))?.connection?.budget).toBe(7);
  }
  clock.now += 30 * day;
  expect(await tokens.refresh(refresh, 'client')).toBeUndefined();
});

test('a code or a refresh token that was used ends its connection even if it comes when its time is over', async () => {
  const { clock, tokens, grant, redeem } = open();
  for (const late of [2 * minute, 20 * day]) {
    const code = await tokens.open(grant);
    const first = await redeem(code);
    const second = await tokens.refresh(first?.refresh_token ?? '', 'client');
    clock.now += late;
    const third = late > day ? await tokens.refresh(second?.refresh_token ?? '', 'client') : second;
    expect(await tokens.credentials(third?.access_token ?? '')).toBeDefined();
    clock.now += late;
    expect(await (late > day ? tokens.refresh(first?.refresh_token ?? '', 'client') : redeem(code))).toBeUndefined();
    expect(await tokens.refresh(third?.refresh_token ?? '', 'client')).toBeUndefined();
  }
});

test('another secret, another address and a state that was lost or is an earlier copy let nobody in', async () => {
  const { kept, replica, tokens, connect } = open();
  const { access_token: access, refresh_token: refresh } = await connect();
  const others = [replica({ secret: `${secret}.` }), replica({ resource: 'https://other.example.com/mcp' })];
  for (const other of others) {
    expect(await other.credentials(access)).toBeUndefined();
    expect(await other.refresh(refresh, 'client')).toBeUndefined();
  }
  const earlier = new Map(kept);
  const renewed = await tokens.refresh(refresh, 'client');
  for (const [tenantId, copy] of earlier) kept.set(tenantId, copy);
  expect(await tokens.refresh(renewed?.refresh_token ?? '', 'client')).toBeUndefined();
  const again = await connect();
  kept.clear();
  expect(await tokens.credentials(again.access_token)).toBeUndefined();
  expect(await tokens.refresh(again.refresh_token, 'client')).toBeUndefined();
});

test('a clock that jumps makes no token good that has ended for good, and no key keeps more than 64 connections', async () => {
  const { clock, kept, tokens, grant, connect } = open();
  const first = await connect();
  clock.now -= 365 * day;
  expect(await tokens.credentials(first.access_token)).toBeDefined();
  clock.now += 365 * day;
  await tokens.refresh(first.refresh_token, 'client');
  clock.now -= 10 * minute;
  expect(await tokens.refresh(first.refresh_token, 'client')).toBeUndefined();
  clock.now += 10 * minute;
  const all = [];
  for (let number = 0; number < 70; number++) {
    clock.now += 1000;
    all.push(await connect());
  }
  expect(Object.keys(kept.get('of svc_live_key') ?? {})).toHaveLength(64);
  expect(await tokens.credentials(all[5]?.access_token ?? '')).toBeUndefined();
  expect(await tokens.credentials(all[6]?.access_token ?? '')).toBeDefined();
  // Codes that nobody came for make room first.
  for (let number = 0; number < 63; number++) await tokens.open(grant);
  clock.now += 2 * minute;
  await connect();
  expect(Object.keys(kept.get('of svc_live_key') ?? {}).length).toBeLessThanOrEqual(64);
});
