import { expect, test } from 'vitest';
import { advertisers } from '../../../src/library/demo/market-tables.ts';
import { shapeFor } from '../../../src/library/media/shape-for.ts';

test.each([
  ['Breakfast tea', 'cup'],
  ['Coffee', 'cup'],
  ['Trail shoe', 'shoe'],
  ['Payroll', 'phone'],
  ['Sérum', 'bottle'],
  ['la Crème Voile d’Aube', 'jar'],
  ['el Sofá Siesta Larga', 'sofa'],
  ['四季の掛け布団', 'bed'],
  ['رحلة النجوم', 'mountains'],
  ['le Panier Semaine Douce', 'basket'],
  ['Something', 'box'],
])('%s is drawn as %s', (title, shape) => {
  expect(shapeFor([title, 'New'])).toBe(shape);
});

test('what says most about the product comes first', () => {
  expect(shapeFor([undefined, 'Shoes for the trail', 'SHOP_NOW'])).toBe('shoe');
  expect(shapeFor(['Trail shoe', 'A jacket comes with it'])).toBe('shoe');
  expect(shapeFor([null, 'New', 'BOOK_TRAVEL'])).toBe('mountains');
});

test('the demo’s market shows many kinds of products', () => {
  const kinds = new Set(advertisers.flatMap(({ products }) => products.map(({ name }) => shapeFor([name]))));
  expect(kinds.size).toBeGreaterThanOrEqual(14);
});
