import { expect, test } from 'vitest';
import * as z from 'zod';
import { advertisers, angles, industries, phrases } from '../../src/library/demo/market.ts';

const text = z.string().min(1);
const placeholders = /^[^{}]*(\{(brand|product|percent|days|thousands|tries)\}[^{}]*)*$/;
const phrase = text.regex(placeholders);
const code = z.string().regex(/^[A-Z]{2}$/);

const Phrases = z.strictObject({
  openings: z.strictObject(Object.fromEntries(angles.map((angle) => [angle, z.array(phrase).length(2)]))),
  headlines: z.array(phrase).length(3),
  offers: z.array(phrase).length(2),
  closings: z.array(phrase).length(2),
});

test('industries have a trade and calls to action', () => {
  const Industry = z.strictObject({
    trade: z.enum(['goods', 'apps', 'games', 'services']),
    callsToAction: z.array(z.string().regex(/^[A-Z_]+$/)).min(2),
  });
  z.record(z.string(), Industry).parse(industries);
});

test('phrases are complete in every language and trade, with known placeholders only', () => {
  z.record(z.string().regex(/^[a-z]{2}$/), z.record(z.string(), Phrases)).parse(phrases);
});

test('advertisers are fictional, sell something, and have phrases in their language', () => {
  const Advertiser = z.strictObject({
    name: text,
    domain: z.string().regex(/^[a-z0-9.-]+\.example$/),
    industry: z.enum(Object.keys(industries)),
    language: z.enum(Object.keys(phrases)),
    countries: z.array(code).min(1),
    products: z.array(z.strictObject({ name: text, price: z.number().min(0) })).min(1),
    points: z.array(text).min(2),
  });
  z.array(Advertiser).parse(advertisers);
  for (const { name, language, industry } of advertisers) {
    expect(phrases[language][industries[industry].trade], `phrases for ${name}`).toBeDefined();
  }
});

test.each(['name', 'domain'] as const)('no two advertisers have the same %s', (key) => {
  const values = advertisers.map((advertiser) => advertiser[key]);
  expect(new Set(values).size).toBe(values.length);
});
