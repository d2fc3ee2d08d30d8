import { describe, expect } from 'vitest';
import { freshLibraryTest as test } from './support/fixtures.ts';
import { searchAll } from './support/served-library.ts';

const cell = (text: string) => `"${text.replaceAll('"', '""')}"`;
const ages = '{"age":"18-24","gender":"female","percentage":"0.25"}, {"age":"65+","gender":"male","percentage":0.75}';
const row = [
  ['ad_archive_id', '1234567890123456'],
  ['page_id', '77'],
  ['page_name', cell('The "Page"')],
  ['byline', 'Friends of Tests'],
  ['ad_creative_bodies', cell('First line\r\nand, another')],
  ['ad_creative_link_titles', cell('["One","Two"]')],
  ['ad_delivery_start_time', '2024-01-02'],
  ['impressions', cell('lower_bound: 1000, upper_bound: 4999')],
  ['spend', cell('{"lower_bound":"0","upper_bound":"99"}')],
  ['currency', 'EUR'],
  ['publisher_platforms', cell('facebook,instagram')],
  ['languages', 'de'],
  ['demographic_distribution', cell(ages)],
  ['estimated_audience_size', 'lower_bound: 1000001'],
  ['ad_creation_time', ''],
] as const;

test.for([
  ['commas and CRLF', ',', '\r\n'],
  ['semicolons and LF', ';', '\n'],
] as const)('ads of the archive with %s', async ([_, delimiter, lineEnd], { served, key }) => {
  const header = row.map(([name]) => name).join(delimiter);
  const cells = row.map(([, text]) => text).join(delimiter);
  const report = await served.load(['\uFEFF', header, lineEnd, cells, lineEnd, lineEnd].join(''));
  expect(report).toMatchObject({ ads: 1, fromPublicArchive: 1, skipped: 0, problems: [] });
  const { items } = await searchAll(served, '/v1/ads/search', key, { query: '"and another" two friends' });
  expect(items).toMatchObject([
    {
      adArchiveId: '1234567890123456',
      pageId: '77',
      page: { pageName: 'The "Page"' },
      body: 'First line\r\nand, another',
      headline: 'One',
      headlines: ['One', 'Two'],
      bylines: 'Friends of Tests',
      startedAt: '2024-01-02T00:00:00.000Z',
      impressionsMin: 1000,
      impressionsMax: 4999,
      adSpendMin: 0,
      adSpendMax: 99,
      currency: 'EUR',
      publisherPlatform: ['FACEBOOK', 'INSTAGRAM'],
      languages: ['de'],
      demographics: [
        { age: '18-24', gender: 'female', percentage: 0.25 },
        { age: '65+', gender: 'male', percentage: 0.75 },
      ],
      audienceSizeMin: 1_000_001,
    },
  ]);
});

const reportOf = (...rows: string[]) =>
  ['\uFEFFPage ID,Page name,Disclaimer,Amount spent (USD),Number of ads in Library', ...rows].join('\n');

test('the archive’s report becomes pages with what each disclaimer spent; again it changes nothing', async ({
  served,
  key,
}) => {
  const rows = ['1,"Shop, Inc",Paid by A,≤100,3', '1,"Shop, Inc",Paid by B,"1,250",5', '2,Other,,7,1'];
  for (const updated of [1, 3])
    expect(await served.load(reportOf(...rows))).toMatchObject({ pages: 3, updated, skipped: 0 });
  const { items } = await searchAll(served, '/v1/pages/search', key, { query: '"paid by b"' });
  expect(items).toMatchObject([
    {
      pageId: '1',
      pageName: 'Shop, Inc',
      adsAmount: 8,
      disclaimers: [
        { bylines: 'Paid by A', adsAmount: 3, adSpendMin: 0, adSpendMax: 100, currency: 'USD' },
        { bylines: 'Paid by B', adsAmount: 5, adSpendMin: 1250, adSpendMax: 1250, currency: 'USD' },
      ],
    },
  ]);
});

test('a report adds to a record of the page itself and takes nothing from it', async ({ served, key }) => {
  await served.load({ pageId: '1', pageName: 'Itself', adsAmount: 40, pageLikes: 9 });
  await served.load(reportOf('1,Shop,Paid by A,5,3'));
  const { body } = await served.ask('GET', '/v1/pages/1', { key });
  expect(body).toMatchObject({ pageName: 'Itself', adsAmount: 40, pageLikes: 9, disclaimers: [{ adsAmount: 3 }] });
});

describe('rows that cannot be used are named by their line', () => {
  test('wrong cells, ids that a spreadsheet rounded, ids that no call can ask for', async ({ served }) => {
    const ads = ['ad_archive_id,page_id,page_name', '1,2', '1.23457E+15,2,P', '3,2,"two\nlines"', '4,..,P'];
    const report = await served.load(ads.join('\n'));
    expect(report).toMatchObject({ ads: 1, skipped: 3 });
    expect(report.problems.map(({ line, problem }) => `${line} ${problem}`)).toEqual([
      '2 2 cells where the first line has 3; is a quotation mark missing?',
      '3 ad_archive_id: 1.23457E+15 is rounded, so the id is lost; export it again as a text',
      expect.stringMatching(/^6 pageId: cannot be asked for/),
    ]);
  });

  test('a quotation mark that is not closed, however much follows', async ({ served }) => {
    const rest = `${'7,Q\n'.repeat(1000)}`;
    for (const amount of [1, 1000]) {
      const report = await served.load(`ad_archive_id,page_name\n5,P\n6,"open\n${rest.repeat(amount)}`);
      expect(report).toMatchObject({ ads: 1, skipped: 1 });
      expect(report.problems).toMatchObject([{ line: 3, problem: expect.stringMatching(/^a row without an end/) }]);
    }
  });

  test('a CSV of something else says which columns are known', async ({ served }) => {
    const report = await served.load('Name,Age\nA,1\n');
    expect(report).toMatchObject({ skipped: 1, problems: [{ line: 1 }] });
    expect(report.problems[0]?.problem).toMatch(/^neither JSON nor a CSV of .* "ad_archive_id" \(ads\) or "Page ID"/);
  });
});
