import { describe, expect, test } from 'vitest';
import { appUrlPattern } from '../../src/views/lists.ts';
import { PageView, pageListText, pageText, viewPage } from '../../src/views/page.ts';
import { somePage } from './sample-ads.ts';

describe('an advertiser page', () => {
  test('in a list keeps the numbers, and counts the thumbnails instead of showing them', () => {
    const view = viewPage(somePage, { detail: 'brief' });
    expect(PageView.parse(view)).toEqual(view);
    expect(pageListText({ items: [view], total: 900, of: 50, cursor: 'next-one', hasMore: true })).toMatch(
      /^1 of 50 pages shown, 900 found in all\..*, shows 1 video, 1 image, .*\n\nThe rest of this page with cursor:\nnext-one$/s,
    );
  });

  test('alone says whether its details are estimated, and links to the application', () => {
    expect(pageText(viewPage(somePage, { detail: 'standard' }))).toMatch(
      /, details estimated, .*\nin the app: "https:\/\/app.example\/pages\/0b9a8c7d-[\w-]*"$/s,
    );
  });

  test('in full has what the service sent', () => {
    expect(viewPage(somePage, { detail: 'full' })).toEqual(somePage);
    expect(pageText(viewPage(somePage, { detail: 'full' }), 'full')).toContain('thumbnails: [{"url":');
  });
});

test('a list without items says so, and that they may be on the next page', () => {
  expect(pageListText({ items: [], cursor: null, hasMore: false })).toBe('No pages found.');
  expect(pageListText({ items: [], hasMore: true, cursor: 'next-one' })).toBe(
    'No pages on this page.\n\nMore with cursor:\nnext-one',
  );
});

test('a list that goes on numbers its items where the last one ended', () => {
  const items = [viewPage(somePage, { detail: 'brief' })];
  expect(pageListText({ items, from: 38, of: 50 })).toMatch(/^page 38 of 50 shown\..*\n38\. "Serra Boots"/);
  expect(pageListText({ items: [...items, ...items], from: 38, of: 50 })).toMatch(/^38 to 39 of 50 pages shown\./);
});

test('a list says the form of the links to the application once', () => {
  const pages = [somePage, { ...somePage, pageId: 'x', appUrl: 'https://app.example/pages/x' }];
  expect(appUrlPattern(pages, 'pageId')).toBe('https://app.example/pages/<id>');
  expect(appUrlPattern([...pages, { pageId: 'y' }], 'pageId')).toBeUndefined();
  expect(appUrlPattern([], 'pageId')).toBeUndefined();
  const elsewhere = { pageId: 'z', appUrl: 'https://other.example/pages/z' };
  expect(appUrlPattern([...pages, elsewhere], 'pageId')).toBeUndefined();
  expect(appUrlPattern([{ pageId: 'z', appUrl: 'javascript:alert(1)//z' }], 'pageId')).toBeUndefined();
});
