import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';

test('the import report shows each field under the name of the field in the stored ad', async ({ libraryServer }) => {
  const { keys, columns } = await libraryServer.importRecords(
    {
      ad: { id: 1, first_shown_date: 20250102, status_statement: 'x' },
      ad_group: { targeting_info: { age: { '18-24': true } } },
    },
    {
      adUrl: 'https://www.linkedin.com/ad-library/detail/1',
      details: { adTargeting: [{ facetName: 'Age' }], type: 'IMAGE' },
    },
  );
  expect(columns).toBeUndefined();
  expect(keys).toContain('startedAt ← ad.first_shown_date');
  expect(keys).toContain('targetingInfoAge ← ad_group.targeting_info.age');
  expect(keys).toContain('adTargeting ← details.adTargeting');
  const { items } = await libraryServer.searchAll({});
  const storedFields = items.flatMap((item) => Object.keys(item));
  for (const [, field = ''] of (keys ?? '').split(';')[0]?.matchAll(/([\w.]+) ←/g) ?? [])
    expect(storedFields).toContain(field.split('.')[0]);
});

const secondKeyNote = 'values that are not used for their fields, but stored under their own names: ';

test.for([
  ['JSON', { ad_archive_id: '1', page_name: 'Tea', pageName: 'Coffee' }, 'pageName (1)', { pageName: 'Coffee' }],
  ['a table', 'ad_archive_id,page_name,pageName\n1,Tea,Coffee\n', 'pageName (1)', { pageName: 'Coffee' }],
  [
    'Google',
    { creative_id: 'CR1', first_shown: '2026-01-05', advertiser_name: 'Tea', advertiser: 'Coffee' },
    'advertiser (1)',
    { advertiser: 'Coffee' },
  ],
  [
    'TikTok',
    { ad: { id: 1, first_shown_date: 20260105, title: 'Tea' }, title: 'Coffee' },
    'title (1)',
    { headline: 'Tea', title: 'Coffee' },
  ],
] as const)(
  'the import report lists a key of a record (source: %s) if another key already fills the same field',
  async ([_, source, list, ad], { libraryServer }) => {
    const { notes } = await libraryServer.importRecords(source);
    expect(notes).toContain(`${secondKeyNote}${list}`);
    expect((await libraryServer.searchAll({})).items).toMatchObject([ad]);
  },
);

test('the import report lists values that were not stored because another key fills the same field', async ({
  libraryServer,
}) => {
  const { notes } = await libraryServer.importRecords({ ad_archive_id: '1', page_id: '5', pageId: '6' });
  expect(notes).toContain('values that are not stored, because another key has the same field: pageId (1)');
  const equal = await libraryServer.importRecords({ ad_archive_id: '1', page_id: '5', pageId: '5' });
  expect(equal.notes.join()).not.toContain('pageId');
});
