import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Ad, Page } from '../src/api/schemas.ts';
import { openDemoLibrary } from '../src/library/demo/demo.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
/** The folder with real ads and pages. It is outside the repository, because the texts belong to their advertisers. */
const dataFolder = process.env.AD_LIBRARY_TEST_DATA ?? resolve(root, '../shared/data');

/** Ads and advertiser pages for benchmarks. They are either real or generated demo data. */
export interface Samples {
  dataDescription: string;
  isReal: boolean;
  ads: Ad[];
  pages: Page[];
}

/** Reads real ads and pages from `dataFolder`. Returns undefined if the folder contains no `ads.jsonl`. */
export function readRealSamples(): Samples | undefined {
  if (!existsSync(`${dataFolder}/ads.jsonl`)) return;
  return {
    dataDescription: `real data in ${dataFolder}`,
    isReal: true,
    ads: readJsonLines('ads.jsonl'),
    pages: readJsonLines('pages.jsonl'),
  };
}

/** A message that explains how to run a benchmark with real ads. */
export const missingSamplesHint = `no ads.jsonl in ${dataFolder}: set AD_LIBRARY_TEST_DATA to run this on real ads`;

const readJsonLines = <Item>(file: string): Item[] =>
  readFileSync(`${dataFolder}/${file}`, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Item);

const pageSize = 100;

/** Returns ads and pages of the demo library in the format of the service. */
export async function readDemoSamples(now: number, adCount = 300, pageCount = 100): Promise<Samples> {
  const { library, apiKey } = await openDemoLibrary({ now: () => now });
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const readAllPages = async <Item>(path: string, count: number): Promise<Item[]> => {
    const items: Item[] = [];
    let cursor: string | null = null;
    do {
      const body = JSON.stringify({
        limit: Math.min(pageSize, count - items.length),
        ...(cursor !== null && { cursor }),
      });
      const response = await library.fetch(new Request(`http://demo${path}`, { method: 'POST', headers, body }));
      if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
      const page = (await response.json()) as { items: Item[]; cursor: string | null };
      items.push(...page.items);
      cursor = page.cursor;
    } while (cursor !== null && items.length < count);
    return items;
  };
  const samples = {
    ads: await readAllPages<Ad>('/v1/ads/search', adCount),
    pages: await readAllPages<Page>('/v1/pages/search', pageCount),
  };
  library.close();
  return {
    dataDescription: `the data of demo mode, because there is ${missingSamplesHint}`,
    isReal: false,
    ...samples,
  };
}
