import fc from 'fast-check';
import { expect, test } from 'vitest';
import { variantCopy } from '../../src/dataset/ad-rows.ts';
import { VariantIndex } from '../../src/dataset/variants.ts';

const boots = 'Meet the boots that outlast every trail. Hand-made in small batches, shipped free within two days.';

function variantsOf(copies: (string | null)[]) {
  const index = new VariantIndex();
  return copies.map((copy, position) => index.add(`${position}`, copy));
}

test.each([
  ['the same words', boots],
  ['another price, emoji, case and spelling of letters', `🔥 ${boots.toUpperCase()} 🔥`],
  ['a line more', `${boots} Try them now.`],
  ['a word less', boots.replace('Hand-made in', 'Made in')],
])('%s are the same variant', (_, copy) => {
  expect(variantsOf([`${boots} 19.99`, `${copy} 24.50`])).toEqual(['0', '0']);
});

test('other words are another variant, and so is another language', () => {
  const french = 'Découvrez les bottes qui survivent à tous les sentiers, fabriquées à la main.';
  expect(variantsOf([boots, 'A tent for two, light as a feather.', french, boots])).toEqual(['0', '1', '2', '0']);
});

test('what has no copy has no variant', () => {
  expect(variantsOf([null, '', '🔥', '!!'])).toEqual([null, null, null, null]);
  expect(variantsOf(['무료배송', '무료배송', '送料無料'])).toEqual(['0', '0', '2']);
});

test('the cards speak only where the ad has neither headline nor body', () => {
  const cards = [{ title: 'Red', body: 'boots' }];
  expect(variantCopy({ headline: null, body: 'Walk', cards })).toBe('Walk');
  expect(variantCopy({ headline: null, body: null, cards })).toBe('Red\nboots');
});

const copies = fc.array(
  fc
    .array(fc.constantFrom('boots', 'tent', 'sale', 'free', 'today', 'warm', 'light'), { maxLength: 6 })
    .map((words) => words.join(' ')),
);

test('more ads change no variant of those already there', () => {
  fc.assert(
    fc.property(copies, copies, (first, more) => {
      expect(variantsOf([...first, ...more]).slice(0, first.length)).toEqual(variantsOf(first));
    }),
  );
});

test('ten times the ads of one advertiser take about ten times as long, alike or not', () => {
  const words = Array.from({ length: 997 }, (_, index) => (index * 7919).toString(26));
  const copyOf = (index: number) =>
    Array.from({ length: 30 }, (_, place) => words[(index * (place + 3) * 31 + place * place) % 997]).join(' ');
  const timeOf = (count: number) => {
    const started = process.cpuUsage();
    variantsOf(Array.from({ length: count }, (_, index) => copyOf(index)));
    // What other processes take of the machine does not count.
    return process.cpuUsage(started).user;
  };
  timeOf(300);
  expect(timeOf(5000) / timeOf(500)).toBeLessThan(40);
});
