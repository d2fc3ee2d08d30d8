import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findListingOrder, type OrderValues, orderFields } from '../../src/dataset/listing-order.ts';

const value = fc.option(fc.integer({ min: 0, max: 1000 }), { freq: 20 });
const listing = fc.array(fc.tuple(...orderFields.map(() => value)), { minLength: 12, maxLength: 60 });

const compare = (index: number, sign: number) => (left: OrderValues, right: OrderValues) =>
  sign * ((left[index] ?? -1) - (right[index] ?? -1));

test('the field by which an ad list is sorted is detected from the ads, together with its lowest and highest value', () => {
  fc.assert(
    fc.property(listing, fc.nat(orderFields.length - 1), fc.boolean(), (ads, index, isDescending) => {
      const order = findListingOrder(ads.toSorted(compare(index, isDescending ? -1 : 1)));
      const knownValues = ads.flatMap((ad) => ad[index] ?? []);
      // If more than a fifth of the values are missing, the order may stay undetected.
      if (knownValues.length < 0.8 * ads.length) return;
      expect(order).toMatchObject({ field: orderFields[index], isDescending });
      if (index > 2)
        expect([order?.minValue, order?.maxValue]).toEqual([Math.min(...knownValues), Math.max(...knownValues)]);
    }),
  );
});

test('no sort field is detected for an ad list that is short or unsorted', () => {
  const shuffled = (count: number) =>
    Array.from({ length: count }, (_, index) => orderFields.map((_, field) => (index * 37 + field) % 101));
  expect(findListingOrder(shuffled(60))).toBeUndefined();
  expect(findListingOrder(shuffled(60).map((ad, index) => ad.map(() => (index === 0 ? 2 : 1))))).toBeUndefined();
  expect(findListingOrder(Array.from({ length: 5 }, (_, index) => orderFields.map(() => index)))).toBeUndefined();
  expect(findListingOrder([])).toBeUndefined();
});

test('the field by which an ad list is sorted is detected even if one value is out of order', () => {
  const position = fc.integer({ min: 2, max: 197 });
  fc.assert(
    fc.property(position, fc.integer({ min: -1000, max: 2000 }), fc.boolean(), (index, wrongValue, isDescending) => {
      const values = Array.from({ length: 200 }, (_, place) => (isDescending ? 500 - place : 500 + place));
      const ads = values
        .with(index, wrongValue)
        .map((value) => orderFields.map((field) => (field === 'duplicates' ? value : null)));
      expect(findListingOrder(ads)).toEqual({
        field: 'duplicates',
        isDescending,
        minValue: Math.min(...values),
        maxValue: Math.max(...values),
        lastValue: values.at(-1),
        hasListedAllValues: false,
      });
    }),
  );
});

const createListing = (field: string, values: readonly (number | null)[]): OrderValues[] =>
  values.map((value, index) => orderFields.map((name) => (name === field ? value : (index * 37) % 101)));

test('the requested sort order is reported although all values are equal or most ads have no value', () => {
  const day = Date.UTC(2026, 10, 20);
  const equalDays = createListing(
    'lastSeenAt',
    Array.from({ length: 40 }, () => day),
  );
  expect(findListingOrder(equalDays, { sort: 'lastSeenAt' })).toEqual({
    field: 'lastSeenAt',
    isDescending: true,
    minValue: '2026-11-20',
    maxValue: '2026-11-20',
    lastValue: '2026-11-20',
    hasListedAllValues: false,
  });
  expect(findListingOrder(equalDays)).toBeUndefined();
  const fewEnds = createListing(
    'endDate',
    Array.from({ length: 40 }, (_, index) => (index < 5 ? day - index : null)),
  );
  expect(findListingOrder(fewEnds, { sort: 'endDate', order: 'desc' })).toMatchObject({
    field: 'endDate',
    isDescending: true,
    hasListedAllValues: true,
  });
  expect(findListingOrder(fewEnds)).toBeUndefined();
});

test('the requested sort order is not reported if the values in the list contradict it', () => {
  const rising = createListing(
    'duplicates',
    Array.from({ length: 40 }, (_, index) => index),
  );
  expect(findListingOrder(rising, { sort: 'duplicates', order: 'asc' })).toMatchObject({ isDescending: false });
  expect(findListingOrder(rising, { sort: 'lastSeenAt' })).toMatchObject({ field: 'duplicates' });
  const mixed = createListing(
    'duplicates',
    Array.from({ length: 40 }, (_, index) => (index * 53) % 67),
  );
  expect(findListingOrder(mixed, { sort: 'duplicates' })).toBeUndefined();
});
