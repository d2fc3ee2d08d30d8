import { expect } from 'vitest';
import { freshServiceTest } from '../support/fixtures.ts';

const test = freshServiceTest();

test('tmp', async ({ server, service }) => {
  const est = await server.call('gather_ads', { maxCredits: 0 });
  console.log(est.text, JSON.stringify(est.data));
  const r = await server.call('gather_ads', { filters: { countries: ['DE'] }, maxCredits: 15 });
  console.log(r.text, JSON.stringify({ ...r.data, summary: '' }));
  const r2 = await server.call('gather_ads', { filters: { countries: ['DE'] }, maxCredits: 1500 });
  console.log(r2.text.slice(0, 600), JSON.stringify({ ...r2.data, summary: '' }));
  const r3 = await server.call('gather_ads', { filters: { countries: ['DE'] }, maxCredits: 1500 });
  console.log(r3.text.slice(0, 600), JSON.stringify({ ...r3.data, summary: '' }));
  const c = await server.call('count_ads', {
    filters: { countries: ['DE'] },
    split: [{ displayFormat: ['VIDEO'] }, { nope: 1 }, {}],
  });
  console.log(c.text, JSON.stringify(c.data), c.error);
  const c2 = await server.call('count_ads', { by: 'displayFormat' });
  console.log(c2.text, JSON.stringify(c2.data), c2.error);
});
