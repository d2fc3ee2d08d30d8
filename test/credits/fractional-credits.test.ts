import { expect } from 'vitest';
import { serveAds } from '../support/ad-service.ts';
import { createCreditStatus, respondWithJson } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';

const test = freshUpstreamTest({ config: { cacheSeconds: 0 } });

test('a report shows fractions of credits in the cost of each gathering and in the whole cost', async ({
  upstream,
  server,
}) => {
  serveAds(upstream, 5, () => 0.0004);
  await server.call('gather_ads', { filters: { q: 'a' }, maxCredits: 10 });
  await server.call('gather_ads', { filters: { q: 'b' }, maxCredits: 10 });
  const { data } = await server.call('write_report', { title: 'Costs', sections: [{ heading: 'Text', text: 'Text' }] });
  const { contents } = await server.client.readResource({ uri: data.uri as string });
  const [page] = contents as { text: string }[];
  expect(page?.text).toContain('Reading them cost 0.0008 credits.');
  expect(page?.text).toContain('<td class="number">0.0004</td>');
});

test('the table gatherings contains the sum of fractional charges without floating-point errors', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 5, () => 0.1);
  service.selectAds = ({ part }) => service.ads.slice(Number(part), Number(part) + 1);
  await server.call('gather_ads', { split: [{ part: 0 }, { part: 1 }, { part: 2 }], maxCredits: 10 });
  const { data } = await server.call('query_ads', { sql: 'SELECT max(charged) AS charged FROM gatherings' });
  expect(data.rows).toEqual([[0.3]]);
});

test('get_credits shows fractions of credits exactly', async ({ upstream, server }) => {
  const usageLimit = { ...createCreditStatus().usageLimit, hourlyCredits: 0.9, hourlyLimit: 1 };
  upstream.respondWith(respondWithJson({ ...createCreditStatus(), credits: 4321.0004, creditsMax: 5000, usageLimit }));
  const { text, data } = await server.call('get_credits', {});
  expect(text).toContain('credits left: 4,321.0004 of 5,000');
  expect(text).toContain('hourly: 0.9 of 1 used, 0.1 left');
  expect(data.hourlyLeft).toBe(0.1);
});
