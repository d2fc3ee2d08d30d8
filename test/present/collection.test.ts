import { describe, expect, test } from 'vitest';
import { addedText, collectionListText, viewCollection } from '../../src/present/account.ts';

describe('a collection', () => {
  const collection = viewCollection({
    id: 'c0ffee00-0000-4000-8000-000000000001',
    name: 'Autumn ideas',
    type: 'manual',
    isDefault: true,
    defaultType: 'saved',
    isOwner: false,
    adCount: 12,
    pageCount: 3,
  });

  test('reads as one line with name, id, counts and owner', () => {
    expect(collectionListText({ items: [collection] })).toBe(
      '1 collection.\n1. "Autumn ideas" c0ffee00-0000-4000-8000-000000000001 12 ads, 3 pages, type manual, default saved, someone else\'s',
    );
  });

  test('says whether an item was added', () => {
    const result = { collection, itemType: 'ads', itemId: 'a1', added: false };
    expect(addedText(result)).toMatch(/^Ad a1 was already in the collection "Autumn ideas" c0ffee00/);
    expect(addedText({ ...result, added: true })).toMatch(/^Ad a1 added to the collection/);
  });
});

test('a list that goes on continues its numbers', () => {
  const items = [viewCollection({ id: 'c' })];
  expect(collectionListText({ items, from: 26, of: 30 })).toContain('\n26. c');
});
