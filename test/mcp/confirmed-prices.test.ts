import { expect } from 'vitest';
import { serveAds } from '../support/ad-service.ts';
import { deriveUuid } from '../support/derive-uuid.ts';
import { ad, createCreditHeaders, createCreditStatus, respondWithJson } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { choose, connectWithForms, createSimulatedUser } from '../support/forms.ts';

const test = freshUpstreamTest({ config: { confirmCredits: 10 } });

test('saving an item needs a spending confirmation if the service charged for an earlier save', async ({
  upstream,
  server,
}) => {
  const person = createSimulatedUser(() => ({ action: 'decline' }));
  const { call } = await connectWithForms(server, 'svc_live_saver', person);
  const collectionId = deriveUuid('collection');
  const saved = { collection: { id: collectionId, name: 'Saved' }, itemType: 'ads', itemId: ad.id, added: true };
  upstream.credits = respondWithJson(createCreditStatus());
  upstream.respondWith(respondWithJson(saved, { headers: createCreditHeaders(5) }));
  const first = await call('add_collection_item', { collectionId, itemType: 'ads', itemId: ad.id });
  expect(first.data.receipt.charged).toBe(5);
  expect(person.forms).toEqual([]);
  // The item that the call lists twice is saved only once.
  const itemIds = ['a', 'b', 'c', 'c'].map(deriveUuid);
  const { error } = await call('add_collection_item', { collectionId, itemType: 'ads', itemIds });
  expect(error).toMatchObject({ kind: 'credit_budget' });
  expect(person.forms.map(({ message }) => message)).toEqual([
    'Save to a collection (add_collection_item) costs 15 credits. You have 90 credits.',
  ]);
  expect(upstream.requests.filter(({ method }) => method === 'POST')).toHaveLength(1);
});

test('the spending confirmation of count_ads shows at most the default of maxCredits, which is 50 credits', async ({
  upstream,
  start,
}) => {
  const server = await start({ confirmCredits: 20 });
  serveAds(upstream, 1000, () => 2);
  const person = choose('spend');
  const { call } = await connectWithForms(server, 'svc_live_counter', person);
  const split = Array.from({ length: 30 }, (_, part) => ({ part }));
  await call('count_ads', { filters: { q: 'shoe' } });
  const { data } = await call('count_ads', { filters: { q: 'shoe' }, split });
  expect(data.receipt.charged).toBe(50);
  expect(person.forms.map(({ message }) => message)).toEqual([
    'Count ads (count_ads) may cost at most 50 credits. You have 90 credits.',
    'Count ads (count_ads) may cost between 2 and 50 credits. You have 90 credits.',
  ]);
});

test('the spending confirmation of count_ads shows a range of prices if maxCredits covers only some of the searches', async ({
  upstream,
  server,
}) => {
  serveAds(upstream, 1000, () => 30);
  const person = choose('spend');
  const { call } = await connectWithForms(server, 'svc_live_range', person);
  await call('search_ads', { limit: 1, filters: { q: 'other' } });
  const { data } = await call('count_ads', { split: [{ q: 'a' }, { q: 'b' }, { q: 'c' }], maxCredits: 100 });
  expect(data.receipt.charged).toBe(90);
  expect(person.forms.at(-1)?.message).toBe(
    'Count ads (count_ads) may cost between 30 and 100 credits. You have 90 credits.',
  );
});

test('the spending confirmation of gather_ads shows maxCredits as the upper limit if every known price exceeds it', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 1000, () => 30);
  const apiKey = 'svc_live_upper_limit';
  const spender = await connectWithForms(server, apiKey, choose('spend'));
  for (const limit of [1, 100]) await spender.call('search_ads', { limit });
  const [countedAds, uncountedAds] = [{ q: 'counted' }, { q: 'uncounted' }];
  await spender.call('gather_ads', { filters: countedAds, maxCredits: 0 });
  const chargedBefore = service.chargedCredits;
  const person = choose('spend');
  const { call } = await connectWithForms(server, apiKey, person);
  for (const filters of [countedAds, uncountedAds]) await call('gather_ads', { filters, maxCredits: 25 });
  expect(service.chargedCredits).toBe(chargedBefore);
  const message = 'Gather all ads that match (gather_ads) may cost at most 25 credits. You have 90 credits.';
  expect(person.forms.map((form) => form.message)).toEqual([message, message]);
});

test('the spending confirmation shows a range of prices if the credit budget covers only some of the saved items', async ({
  upstream,
  start,
}) => {
  const server = await start({ creditBudget: 17 });
  const person = choose('cancel');
  const { call } = await connectWithForms(server, 'svc_live_budget_saver', person);
  const collectionId = deriveUuid('collection');
  const saved = { collection: { id: collectionId, name: 'Saved' }, itemType: 'ads', itemId: ad.id, added: true };
  upstream.credits = respondWithJson(createCreditStatus());
  upstream.respondWith(respondWithJson(saved, { headers: createCreditHeaders(5) }));
  await call('add_collection_item', { collectionId, itemType: 'ads', itemId: ad.id });
  await call('add_collection_item', { collectionId, itemType: 'ads', itemIds: ['a', 'b', 'c'].map(deriveUuid) });
  expect(person.forms.map(({ message }) => message)).toEqual([
    'Save to a collection (add_collection_item) may cost between 5 and 12 credits. You have 90 credits.',
  ]);
});

test('calls that are refused because they lack maxCredits show no spending confirmation', async ({
  upstream,
  server,
}) => {
  serveAds(upstream, 1000);
  const person = choose('spend');
  const { call } = await connectWithForms(server, 'svc_live_forgetful', person);
  const filters = { q: 'shoe' };
  await call('watch_ads', { name: 'shoes', filters, maxCredits: 100 });
  for (const result of [await call('gather_ads', { filters }), await call('check_watches')]) {
    expect(result.error).toMatchObject({ kind: 'invalid_request' });
    expect(result.text).toContain('maxCredits is required');
  }
  expect(person.forms).toEqual([]);
});

test('a call that spends exactly the last credits of a budget needs a spending confirmation (fractions of credits)', async ({
  upstream,
  start,
}) => {
  const server = await start({ creditBudget: 200 });
  const service = serveAds(upstream, 1000, (limit) => (limit === 30 ? 64.4 : 35.6));
  const apiKey = 'svc_live_fractions';
  const spender = await connectWithForms(server, apiKey, choose('spend'));
  for (const [index, limit] of [20, 30, 30].entries()) await spender.call('search_ads', { limit, filters: { index } });
  // In floating-point numbers, 200 - 164.4 is 35.599999999999994.
  const person = choose('cancel');
  const { call } = await connectWithForms(server, apiKey, person);
  await call('search_ads', { limit: 20, filters: { q: 'shoe' } });
  expect(person.forms).toHaveLength(1);
  expect(service.chargedCredits).toBeCloseTo(164.4);
});

test('no spending confirmation is needed for calls whose first request exceeds maxCredits or the credit budget', async ({
  upstream,
  start,
}) => {
  const server = await start({ creditBudget: 85 });
  const service = serveAds(upstream, 1000, () => 30);
  const apiKey = 'svc_live_first';
  const spender = await connectWithForms(server, apiKey, choose('spend'));
  await spender.call('search_ads', { limit: 1 });
  const person = choose('spend');
  const { call } = await connectWithForms(server, apiKey, person);
  const split = ['a', 'b', 'c'].map((q) => ({ q }));
  await call('count_ads', { split, maxCredits: 25 });
  await spender.call('search_ads', { limit: 1, filters: { q: 'other' } });
  // 25 credits remain in the budget.
  await call('count_ads', { split, maxCredits: 200 });
  const { error } = await call('count_ads', { filters: { q: 'shoe' } });
  expect(error).toMatchObject({ kind: 'credit_budget' });
  expect(person.forms).toEqual([]);
  expect(service.chargedCredits).toBe(60);
});

test('no spending confirmation is needed to check a watch (saved search) in parts if all pages have been free', async ({
  upstream,
  server,
}) => {
  serveAds(upstream, 200, () => 0);
  const apiKey = 'svc_live_free_watch';
  await (await connectWithForms(server, apiKey, choose('spend'))).call('search_ads', { limit: 100 });
  const person = choose('cancel');
  const { call } = await connectWithForms(server, apiKey, person);
  const split = [{ part: 1 }, { part: 2 }];
  await call('watch_ads', { name: 'shoes', filters: { q: 'shoe' }, split, maxCredits: 100 });
  await call('check_watches', {});
  expect(person.forms).toEqual([]);
});

test('gather_ads without maxCredits needs a spending confirmation if only small pages have been free', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 200, (ads) => Math.floor(ads / 10));
  const apiKey = 'svc_live_free';
  await (await connectWithForms(server, apiKey, choose('spend'))).call('search_ads', { limit: 1 });
  const person = choose('cancel');
  const { call } = await connectWithForms(server, apiKey, person);
  await call('gather_ads', { filters: { q: 'shoe' } });
  expect(person.forms).toHaveLength(1);
  expect(service.chargedCredits).toBe(0);
});

test('gather_ads needs a spending confirmation even if the credit budget covers only some of the ads', async ({
  upstream,
  start,
}) => {
  const server = await start({ creditBudget: 60 });
  const service = serveAds(upstream, 1000);
  const apiKey = 'svc_live_budget';
  const spender = await connectWithForms(server, apiKey, choose('spend'));
  for (const limit of [1, 10, 100]) await spender.call('search_ads', { limit });
  const person = choose('cancel');
  const { call } = await connectWithForms(server, apiKey, person);
  await call('gather_ads', { filters: { q: 'shoe' }, maxCredits: 0 });
  const chargedBefore = service.chargedCredits;
  const { error } = await call('gather_ads', { filters: { q: 'shoe' }, maxCredits: 100 });
  expect(error).toMatchObject({ kind: 'credit_budget' });
  // All ads cost 100 credits. The server has spent 13 of its 60 credits, so the call could spend the other 47.
  expect(person.forms.map(({ message }) => message)).toEqual([
    'Gather all ads that match (gather_ads) may cost at most 47 credits. You have 90 credits.',
  ]);
  expect(service.chargedCredits).toBe(chargedBefore);
});
