import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { openDemoLibrary } from '../src/library/demo/demo.ts';
import { createSeededRandom, makeMarket } from '../src/library/demo/market/market.ts';
import { openLibrary } from '../src/library/open.ts';
import { computeMedian, printRowWithMaximum } from './row.ts';

/**
 * Measures the local library with 100,000 generated ads: the import, complete searches (from the check of the API key
 * to the JSON response), and the result pages that the `gather_ads` tool reads for 1,000 ads. Run the benchmark with
 * `npm run bench:library`. Set `BENCH_ADS` to use another number of ads.
 */
const adCount = Number(process.env.BENCH_ADS ?? 100_000);
const roundCount = 15;
const currentTime = Date.UTC(2026, 10, 20);

/**
 * The searches to measure. They combine rare and common words in several writing systems with filters and sort orders.
 */
const searchRequests: Record<string, unknown>[] = [
  { query: 'serum', countries: ['US', 'BR'] },
  { query: 'sérum', startedAtFrom: '2026-06-01' },
  { query: '세럼', displayFormat: ['VIDEO'], sort: 'duplicates' },
  { query: '수분', daysRunningFrom: 30 },
  { query: 'カバー', ctaType: ['SHOP_NOW'] },
  { query: 'عطر', publisherPlatform: ['THREADS'], sort: 'audienceReach' },
  { query: 'कारीगरों', audienceReachFrom: 10_000 },
  { query: 'mattress -pillow', active: true },
  { query: '"free shipping"', adSpendFrom: 500, sort: 'adSpend' },
  { query: 'kaffee schokolade', countries: ['AT'] },
  { query: 'trail shoe', mediaKind: ['video'], sort: 'performancePublic' },
  { query: 'crème', domain: ['maison-ortevelle.example'] },
  { advertiser: 'heron', duplicatesFrom: 2, sort: 'daysRunning' },
  { query: 'desconto', countries: ['BR'], active: true, sort: 'trendPublic' },
];
const printLine = (line: string) => process.stdout.write(`${line}\n`);
const folder = await mkdtemp(join(tmpdir(), 'ad-library-bench-'));
const file = join(folder, 'ads.jsonl');

async function* generateLines() {
  let generatedCount = 0;
  for (let seed = 1; generatedCount < adCount; seed++) {
    for (const { page, ads } of makeMarket(createSeededRandom(seed), currentTime)) {
      const remainingAds = ads.slice(0, adCount - generatedCount);
      generatedCount += remainingAds.length;
      if (remainingAds.length > 0)
        yield [page, ...remainingAds].map((record) => `${JSON.stringify(record)}\n`).join('');
    }
  }
}

const openingStartedAt = performance.now();
const demo = await openDemoLibrary({ now: () => currentTime });
const openMs = performance.now() - openingStartedAt;
await demo.library.fetch(new Request('http://library.example/v1/whoami'));
printLine(
  `demo: open in ${openMs.toFixed(0)} ms, first answer after ${(performance.now() - openingStartedAt).toFixed(0)} ms`,
);
demo.library.close();

await pipeline(generateLines, createWriteStream(file));
const database = join(folder, 'ads.db');
const library = await openLibrary({ database, now: () => currentTime });
const cpuBefore = process.cpuUsage();
const importStartedAt = performance.now();
const report = await library.import(createReadStream(file));
const importSeconds = (performance.now() - importStartedAt) / 1000;
const { user, system } = process.cpuUsage(cpuBefore);
const computingSeconds = ((user + system) / 1e6).toFixed(1);
const readFileMegabytes = async (path: string) => ((await stat(path)).size / 2 ** 20).toFixed(0);
printLine(
  `import: ${report.ads} ads and ${report.pages} pages in ${importSeconds.toFixed(1)} s, ${computingSeconds} s of it computing (${await readFileMegabytes(file)} MB)`,
);
printLine(
  `memory: at most ${(process.resourceUsage().maxRSS / 2 ** 10).toFixed(0)} MB resident; database ${await readFileMegabytes(database)} MB`,
);

const { key } = library.keys.create({ credits: 1e9, hourlyLimit: 1e9, dailyLimit: 1e9 });
async function measureSearch(body: Record<string, unknown>) {
  const request = () =>
    new Request('http://library.example/v1/ads/search', {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
  const times: number[] = [];
  let totalHits = 0;
  for (let round = 0; round < roundCount; round++) {
    const sentAt = performance.now();
    const response = await library.fetch(request());
    const responseText = await response.text();
    times.push(performance.now() - sentAt);
    if (response.status !== 200) throw new Error(responseText);
    totalHits = JSON.parse(responseText).totalHits;
  }
  return { body, totalHits, times };
}

const printTimes = ({ body, totalHits, times }: Awaited<ReturnType<typeof measureSearch>>) =>
  printLine(
    `${computeMedian(times).toFixed(1).padStart(7)} ms  ${String(totalHits).padStart(6)} hits  ${JSON.stringify(body)}`,
  );

printLine('\nfiltered full-text search, median of each:');
const allTimes: number[] = [];
for (const body of searchRequests) {
  const result = await measureSearch(body);
  printTimes(result);
  allTimes.push(...result.times);
}
printRowWithMaximum('filtered full-text search of 100,000 ads, median', computeMedian(allTimes), 20);

const gatheringStartedAt = performance.now();
let gatheredCount = 0;
for (let cursor: string | null = null; gatheredCount < Math.min(adCount, 1000); ) {
  const request = new Request('http://library.example/v1/ads/search', {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ limit: 100, ...(cursor !== null && { cursor }) }),
  });
  const page = (await (await library.fetch(request)).json()) as { items: unknown[]; cursor: string | null };
  gatheredCount += page.items.length;
  cursor = page.cursor;
}
printLine(`first gathering: ${gatheredCount} ads in ${(performance.now() - gatheringStartedAt).toFixed(0)} ms`);
library.close();
await rm(folder, { recursive: true });
