import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Ad, Page } from '../src/api/schemas.ts';
import { openDemoLibrary } from '../src/library/demo/demo.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
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

const pageSize = 100;

/** Asks the service of demo mode. */
async function askDemo<T>(now: number, ask: (get: (path: string, body?: object) => Promise<unknown>) => Promise<T>) {
  const { library, apiKey } = await openDemoLibrary({ now: () => now });
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const answers = await ask(async (path, body) => {
    const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) };
    const answer = await library.fetch(new Request(`http://demo${path}`, init));
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
    return answer.json();
  });
  library.close();
  return answers;
}

/** The ads and pages of demo mode, as its service sends them. */
export const demoSamples = (now: number, ads = 300, pages = 100): Promise<Samples> =>
  askDemo(now, async (get) => {
    const list = async <T>(path: string, count: number): Promise<T[]> => {
      const items: T[] = [];
      let cursor: string | null = null;
      do {
        const body: object = { limit: Math.min(pageSize, count - items.length), ...(cursor !== null && { cursor }) };
        const page = (await get(path, body)) as { items: T[]; cursor: string | null };
        items.push(...page.items);
        cursor = page.cursor;
      } while (cursor !== null && items.length < count);
      return items;
    };
    const samples = { ads: await list<Ad>('/v1/ads/search', ads), pages: await list<Page>('/v1/pages/search', pages) };
    return { source: `the data of demo mode, for there is ${noSamples}`, real: false, ...samples };
  });

/** What demo mode answers to what is asked of a key. */
export const demoAccount = (now: number) =>
  askDemo(now, async (get) => ({
    collections: (await get('/v1/collections')) as { items: object[] },
    credits: await get('/v1/credits'),
    account: await get('/v1/account'),
    identity: await get('/v1/whoami'),
  }));
