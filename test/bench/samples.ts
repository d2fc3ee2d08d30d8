import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Ad, Page } from '../../src/api/schemas.ts';
import { languages } from '../present/languages.ts';
import { everyFact, somePage } from '../present/sample-ads.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** Real ads and pages live outside the repository: their texts are the advertisers'. */
const folder = process.env.AD_LIBRARY_TEST_DATA ?? resolve(root, '../shared/data');

export interface Samples {
  source: string;
  real: boolean;
  ads: Ad[];
  pages: Page[];
}

export function realSamples(): Samples | undefined {
  if (!existsSync(`${folder}/ads.jsonl`)) return;
  return { source: `real data in ${folder}`, real: true, ads: read('ads.jsonl'), pages: read('pages.jsonl') };
}

export const noSamples = `no ads.jsonl in ${folder}: set AD_LIBRARY_TEST_DATA to run this on real ads`;

const read = <T>(file: string): T[] =>
  readFileSync(`${folder}/${file}`, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);

const FORMATS = ['VIDEO', 'IMAGE', 'CAROUSEL', 'DCO'];
const DAY = 86_400_000;
const uuid = (seed: number) =>
  Array.from({ length: 32 }, (_, i) => ((seed * 2654435761 + i * 40503 * (seed + 7)) >>> (i % 13)) % 16)
    .map((digit) => digit.toString(16))
    .join('')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

/** Invented ads with every field, in every language we have a text for. */
export function inventedSamples(count = 200): Samples {
  const texts = Object.values(languages);
  const ads = Array.from({ length: count }, (_, i): Ad => {
    const text = texts[i % texts.length] ?? '';
    const started = Date.UTC(2026, 0, 1) + (i % 200) * DAY;
    const id = uuid(i + 1);
    return {
      ...everyFact,
      id,
      pageId: uuid(1000 + (i % 23)),
      page: { pageName: `Serra ${i % 23}`, adsAmount: i },
      headline: text.slice(0, 40),
      body: text.repeat(1 + (i % 4)),
      startedAt: new Date(started).toISOString(),
      lastSeenAt: new Date(started + (i % 90) * DAY).toISOString(),
      displayFormat: FORMATS[i % 4] ?? null,
      duplicates: i % 7,
      appUrl: `https://app.example/ads/${id}`,
    };
  });
  const pages = ads.map(
    (ad, i): Page => ({ ...somePage, pageId: ad.pageId ?? '', pageName: ad.page?.pageName ?? '', pageLikes: i * 997 }),
  );
  return { source: `invented ads, for there is ${noSamples}`, real: false, ads, pages };
}
