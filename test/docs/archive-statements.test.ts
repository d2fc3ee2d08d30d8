import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { createAd, serveAds } from '../support/ad-service.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';

const test = freshUpstreamTest();
const guide = readFileSync(new URL('../../docs/archive.md', import.meta.url), 'utf8');
const statements = [...guide.matchAll(/```sql\n(.*?)```/gs)].map(([, sql = '']) => sql);

test('the SQL examples for payers and reach in the archive guide return results for ads with these fields', async ({
  upstream,
  server,
}) => {
  const disclose = (index: number, pageName: string, payer: string, reach: number) =>
    createAd(index, {
      ...{ pageId: `p${index}`, page: { pageName }, adLibrary: 'meta', adArchiveId: `${1000 + index}` },
      beneficiaryPayers: [{ payer, beneficiary: pageName, current: true }],
      ageCountryGenderReachBreakdown: [
        { country: 'DE', age_gender_breakdowns: [{ age_range: '25-34', male: reach, female: 1 }] },
      ],
    });
  serveAds(upstream, 0).ads = [
    disclose(1, 'Tea', 'Holding', 40),
    disclose(2, 'Coffee', 'Holding', 10),
    disclose(3, 'Cocoa', 'Cocoa Ltd', 5),
  ];
  await server.call('gather_ads', { filters: { some: 'ads' }, maxCredits: 100 });
  expect(statements).toHaveLength(2);
  const [payers = '', reach = ''] = statements;
  expect((await server.call('query_ads', { sql: payers })).data.rows).toEqual([['Holding', 2, 2]]);
  expect((await server.call('query_ads', { sql: reach })).data.rows).toEqual([
    ['DE', '25-34', 58, 'https://www.facebook.com/ads/library/?id=1001'],
  ]);
});
