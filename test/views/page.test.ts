import { describe, expect, test } from 'vitest';
import { findAppUrlPattern } from '../../src/views/lists.ts';
import { buildPageView, formatPage, formatPageList, getPageViewSchema } from '../../src/views/page.ts';
import { somePage } from './sample-ads.ts';

describe('The view of an advertiser page', () => {
  test('a list of advertiser pages shows how many video and image thumbnails each page has', () => {
    const view = buildPageView(somePage, { detail: 'brief' });
    expect(getPageViewSchema().parse(view)).toEqual(view);
    expect(
      formatPageList({ items: [view], totalHits: 900, receivedCount: 50, cursor: 'next-one', hasMore: true }),
    ).toMatch(
      /^1 of 50 pages shown, 900 found in all\..*, shows 1 video, 1 image, .*\n\nThe rest of this page with cursor:\nnext-one$/s,
    );
  });

  test('the view of an advertiser page says whether the details of the page are estimated', () => {
    expect(formatPage(buildPageView(somePage, { detail: 'standard' }))).toMatch(
      /, details estimated, .*\nin the app: "https:\/\/app.example\/pages\/0b9a8c7d-[\w-]*"$/s,
    );
  });

  test('the full view of an advertiser page contains all fields from the API', () => {
    expect(buildPageView(somePage, { detail: 'full' })).toEqual(somePage);
    expect(formatPage(buildPageView(somePage, { detail: 'full' }), 'full')).toContain('thumbnails: [{"url":');
  });
});

test('the average number of duplicates of an advertiser page is rounded to three decimals', () => {
  const page = { ...somePage, averageDuplicates: 8 / 3 };
  expect(formatPage(buildPageView(page, { detail: 'brief' }))).toContain(', avg 2.667, ');
});

test('an empty result list says whether later result pages may contain items', () => {
  expect(formatPageList({ items: [], cursor: null, hasMore: false })).toBe('No pages found.');
  expect(formatPageList({ items: [], cursor: null, hasMore: false, totalHits: 50 })).toBe(
    'No pages on this page. The service counts 50 pages in all.',
  );
  expect(formatPageList({ items: [], hasMore: true, cursor: 'next-one' })).toBe(
    'No pages on this page.\n\nMore with cursor:\nnext-one',
  );
});

test('the item numbers on a further result page continue those of the previous page', () => {
  const items = [buildPageView(somePage, { detail: 'brief' })];
  expect(formatPageList({ items, firstNumber: 38, receivedCount: 50 })).toMatch(
    /^page 38 of 50 shown\..*\n38\. "Serra Boots"/,
  );
  expect(formatPageList({ items: [...items, ...items], firstNumber: 38, receivedCount: 50 })).toMatch(
    /^38 to 39 of 50 pages shown\./,
  );
});

test('a result list replaces the app URLs of its items with one URL pattern only if all URLs match the pattern', () => {
  const pages = [somePage, { ...somePage, pageId: 'x', appUrl: 'https://app.example/pages/x' }];
  expect(findAppUrlPattern(pages, 'pageId')).toBe('https://app.example/pages/<id>');
  expect(findAppUrlPattern([...pages, { pageId: 'y' }], 'pageId')).toBeUndefined();
  expect(findAppUrlPattern([], 'pageId')).toBeUndefined();
  const pageWithOtherUrl = { pageId: 'z', appUrl: 'https://other.example/pages/z' };
  expect(findAppUrlPattern([...pages, pageWithOtherUrl], 'pageId')).toBeUndefined();
  expect(findAppUrlPattern([{ pageId: 'z', appUrl: 'javascript:alert(1)//z' }], 'pageId')).toBeUndefined();
});
