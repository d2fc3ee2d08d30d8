import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';

const url = 'https://www.linkedin.com/ad-library/detail/1558385343';

/** An ad as SearchApi returns it, with the date keys that records of TikTok have as well. */
const detailedAd = {
  id: '1558385343',
  link: url,
  external_link: 'https://shop.example/tea',
  ad_format: 'Single Image Ad',
  advertiser: { name: 'Tea House', link: 'https://www.linkedin.com/company/68529?trk=x' },
  content: { headline: 'Fresh tea', cta: 'Card title', call_to_action: 'Learn more' },
  paid_for_by: 'Tea House Ltd',
  first_shown_date: '2026-02-01',
  last_shown_date: '2026-02-03',
  total_impressions: '< 1k',
  impressions_by_country: [{ country: 'Germany', percentage: 60 }],
};

test.for([
  ['an object with one ad', { search_metadata: { status: 'Success' }, ad: detailedAd }],
  ['a list of ads', { search_metadata: { status: 'Success' }, ads: [detailedAd] }],
  ['a plain record', detailedAd],
] as const)(
  'a scraped LinkedIn ad is imported as a LinkedIn ad even if its dates have the key names of TikTok (%s)',
  async ([_, source], { libraryServer }) => {
    const report = await libraryServer.importRecords(JSON.stringify(source));
    expect(report).toMatchObject({ ads: 1, skipped: 0, formats: { 'linkedin-ad-library': { ads: 1 } } });
    const { body } = await libraryServer.search({});
    expect(body.items).toMatchObject([
      {
        ...{ adLibrary: 'linkedin', adArchiveId: '1558385343', adSnapshotUrl: url, pageId: 'linkedin:68529' },
        ...{ page: { pageName: 'Tea House' }, payer: 'Tea House Ltd', headline: 'Fresh tea', ctaType: 'LEARN_MORE' },
        ...{ startedAt: '2026-02-01T00:00:00.000Z', lastSeenAt: '2026-02-03T00:00:00.000Z', countries: ['DE'] },
        ...{ offerLink: 'https://shop.example/tea', impressionsMax: 1000 },
      },
    ]);
  },
);

test.for(['url', 'adLibraryUrl', 'adDetailUrl'])(
  'a scraped ad without nested objects is imported as a LinkedIn ad if its key `%s` has the URL of a LinkedIn ad',
  async (urlKey, { libraryServer }) => {
    const scrape = {
      ...{ adId: '1558385343', advertiserName: 'Tea House', headline: 'Fresh tea', paidBy: 'Tea House Ltd' },
      ...{ firstShownAt: '2026-02-01', lastShownAt: '2026-02-03', totalImpressions: '10k-50k', [urlKey]: url },
    };
    await libraryServer.importRecords(scrape);
    await libraryServer.importRecords({ ...scrape, firstShownDate: '2026-02-01', lastShownDate: '2026-02-03' });
    const { body } = await libraryServer.search({});
    expect(body.items).toMatchObject([
      {
        ...{ adLibrary: 'linkedin', adArchiveId: '1558385343', impressionsMin: 10_000, impressionsMax: 50_000 },
        ...{ startedAt: '2026-02-01T00:00:00.000Z', lastSeenAt: '2026-02-03T00:00:00.000Z' },
      },
    ]);
  },
);

test('a table from a LinkedIn scraper is imported as ads of the LinkedIn ad library', async ({ libraryServer }) => {
  const url = 'https://www.linkedin.com/ad-library/detail/1521996440';
  await libraryServer.importRecords(
    `adId,adDetailUrl,advertiserName,headline,bodyText,imageUrls\n1521996440,${url},Tea,T,B,"https://m.example/1.png,https://m.example/2.png"\n`,
  );
  const { items } = await libraryServer.searchAll({});
  expect(items).toMatchObject([
    {
      ...{ adArchiveId: '1521996440', adLibrary: 'linkedin', headline: 'T', body: 'B', adSnapshotUrl: url },
      media: [{ url: 'https://m.example/1.png' }, { url: 'https://m.example/2.png' }],
    },
  ]);
});

test('the import reads the shares of a LinkedIn ad by country and stores a share such as "<1%" as an upper bound', async ({
  libraryServer,
}) => {
  const shares = { 'urn:li:country:DE': '<1%', 'urn:li:country:FR': 50, 'urn:li:country:IT': 'some', AT: '> 40%' };
  const { notes } = await libraryServer.importRecords({
    adUrl: 'https://www.linkedin.com/ad-library/detail/1',
    details: {
      adStatistics: {
        impressionsDistributionByCountry: Object.entries(shares).map(([country, impressionPercentage]) => ({
          ...{ country, impressionPercentage },
        })),
      },
    },
  });
  expect(notes.join('\n')).toContain('impressionsDistributionByCountry: "some" is not a number');
  expect((await libraryServer.searchAll({})).items).toMatchObject([
    {
      countries: ['DE', 'FR', 'IT', 'AT'],
      regions: [
        { region: 'DE', percentageMax: 0.01 },
        { region: 'FR', percentage: 0.5 },
        { region: 'IT' },
        { region: 'AT', percentageMin: 0.4 },
      ],
    },
  ]);
});

test('`library import` stores the company that promotes a LinkedIn ad as the payer of the ad', async ({
  libraryServer,
}) => {
  await libraryServer.importRecords(
    {
      link: 'https://www.linkedin.com/ad-library/detail/1',
      advertiser: { name: 'Tea', promoted_by: 'Tea Ltd' },
      isRestricted: false,
    },
    { url: 'https://www.linkedin.com/ad-library/detail/2', promotedBy: 'Tea Ltd' },
  );
  expect((await libraryServer.searchAll({ payer: ['Tea Ltd'] })).items).toHaveLength(2);
});
