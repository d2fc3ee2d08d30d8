/**
 * Runs the benchmark `bench:dataset` with a given number of ads. Each number of ads runs in a separate process, so that
 * the memory of each run can be measured separately.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay, setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import {
  type AdRows,
  buildAdRows,
  extractAdTexts,
  extractLanguageText,
  selectVariantText,
} from '../src/dataset/ad-rows.ts';
import { allAdsSql, type RunStatement, writeExport } from '../src/dataset/export.ts';
import { type DatasetSnapshot, SqlPool, type TableRows } from '../src/dataset/sql/pool.ts';
import { VariantIndex } from '../src/dataset/variants.ts';
import { createSeededRandom, makeMarket } from '../src/library/demo/market/market.ts';
import { loadLanguageDetector } from '../src/views/language.ts';
import { readResidentMegabytes } from './memory.ts';
import { computeMedian, printRowWithMaximum } from './row.ts';

/** Ten typical questions of assistants, each as a short name with the SQL statement that answers the question. */
const statements: readonly [question: string, sql: string][] = [
  ['formats', 'select displayFormat, count(*) from ads group by 1 order by 2 desc'],
  ['months', 'select startedMonth, count(*), sum(active) from ads group by 1 order by 1'],
  ['advertisers', 'select pageName, count(*), avg(daysRunning), max(duplicates) from ads group by 1 order by 2 desc'],
  [
    'countries',
    'select country, count(*), avg(daysRunning) from ads join ad_countries using (id) group by 1 order by 2 desc',
  ],
  ['languages', 'select language, displayFormat, count(*) from ads group by 1, 2 order by 3 desc'],
  ['longest', 'select pageName, headline, daysRunning from ads where active = 1 order by daysRunning desc limit 20'],
  ['variants', 'select pageName, count(*), count(distinct variant) from ads group by 1 having count(*) > 5'],
  ['search', "select id, firstLine from ads where text like '%free%' and ctaType = 'SHOP_NOW'"],
  [
    'percentile',
    'with d as (select daysRunning, row_number() over (order by daysRunning) r, count(*) over () n from ads where daysRunning is not null) select max(daysRunning) from d where r <= 0.9 * n',
  ],
  ['json', "select json_extract(json, '$.page.adsAmount'), count(*) from ads group by 1"],
];

const { values: optionValues } = parseArgs({
  options: { ads: { type: 'string', default: '10000' }, data: { type: 'string' } },
});
const adCount = Number(optionValues.ads);
const gatheredAt = Date.UTC(2026, 10, 20);
const roundCount = 5;

const printLine = (line: string) => process.stdout.write(`${line}\n`);
/** Returns the resident memory of this process in megabytes, after garbage collection. */
async function measureResidentMegabytes(): Promise<number> {
  for (let round = 0; round < 3; round++) {
    globalThis.gc?.();
    await delay(200);
  }
  return readResidentMegabytes(process.pid);
}
const measureHeapMegabytes = () => Math.round(process.memoryUsage().heapUsed / 2 ** 20);
/** Runs the work. Returns its result and its duration in milliseconds. */
async function measureTime<Result>(work: () => Result | Promise<Result>): Promise<[Result, number]> {
  const startedAt = performance.now();
  return [await work(), performance.now() - startedAt];
}
/**
 * Formats the processor time that all threads have used since `cpuBefore`. Unlike elapsed time, processor time does not
 * depend on other programs.
 */
const formatProcessorTime = (cpuBefore: NodeJS.CpuUsage) => {
  const { user, system } = process.cpuUsage(cpuBefore);
  return `${Math.round((user + system) / 1000)} ms of computing`;
};

async function measureMedianMs(work: () => unknown): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < roundCount; round++) times.push((await measureTime(work))[1]);
  return computeMedian(times);
}

function* generateAds() {
  for (let seed = 1; ; seed++) for (const { ads } of makeMarket(createSeededRandom(seed), gatheredAt)) yield* ads;
}

/**
 * Yields the real ads again and again, without end. From the second round on, each ad gets a new id, so that all ids
 * differ.
 */
function* repeatRealAds(folder: string) {
  const ads: Record<string, unknown>[] = readFileSync(join(folder, 'ads.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  for (let round = 0; ; round++) for (const ad of ads) yield round === 0 ? ad : { ...ad, id: `${ad.id}-${round}` };
}

function* serializeAds(ads: Iterable<object>) {
  let serializedCount = 0;
  for (const ad of ads) {
    if (serializedCount++ === adCount) return;
    yield JSON.stringify(ad);
  }
}

const adSource =
  optionValues.data && existsSync(join(optionValues.data, 'ads.jsonl'))
    ? repeatRealAds(optionValues.data)
    : generateAds();
const adJsons = [...serializeAds(adSource)];
const detectLanguage = await loadLanguageDetector();
const idleMegabytes = await measureResidentMegabytes();
printLine(
  `\n${adCount} ${optionValues.data ? 'real' : 'generated'} ads, ${(adJsons.reduce((sum, text) => sum + text.length, 0) / 1e6).toFixed(0)} million characters of JSON`,
);

const variantIndexes = new Map<string, VariantIndex>();
function buildRowsOfAd(json: string): AdRows {
  const ad = JSON.parse(json);
  const variantIndex = variantIndexes.get(ad.pageId) ?? new VariantIndex();
  variantIndexes.set(ad.pageId, variantIndex);
  const variant = variantIndex.addAd(ad.id, selectVariantText(extractAdTexts(ad)));
  return buildAdRows(ad, { gatheredAt, json, language: detectLanguage(extractLanguageText(ad)), variantId: variant });
}
/**
 * Builds the rows of all ads in batches of 100, as the `gather_ads` tool does. Other work can run between two batches.
 */
async function buildAllRows(): Promise<AdRows[]> {
  const rows: AdRows[] = [];
  for (let start = 0; start < adCount; start += 100) {
    for (const adJson of adJsons.slice(start, start + 100)) rows.push(buildRowsOfAd(adJson));
    await yieldToEventLoop();
  }
  return rows;
}
const heapMegabytesBefore = measureHeapMegabytes();
let cpuBefore = process.cpuUsage();
const [rows, rowMs] = await measureTime(buildAllRows);
const rowCpu = formatProcessorTime(cpuBefore);
const megabytesWithRows = await measureResidentMegabytes();
printLine(
  `rows: ${rowMs.toFixed(0)} ms, ${rowCpu}; ${measureHeapMegabytes() - heapMegabytesBefore} MB of heap, ${megabytesWithRows - idleMegabytes} MB resident`,
);

const snapshot: DatasetSnapshot = {
  tenantId: 'bench',
  version: '1',
  *readTables(): Iterable<TableRows> {
    for (let start = 0; start < rows.length; start += 500) {
      const rowBatch = rows.slice(start, start + 500);
      yield { table: 'ads', rows: rowBatch.map(({ ad }) => ad) };
      yield { table: 'ad_countries', rows: rowBatch.flatMap(({ countries }) => countries) };
      yield { table: 'ad_platforms', rows: rowBatch.flatMap(({ platforms }) => platforms) };
      yield { table: 'ad_cards', rows: rowBatch.flatMap(({ cards }) => cards) };
    }
  },
};

const pool = new SqlPool({
  limits: { maxTableBytes: 1800 * 2 ** 20, maxStatementMs: 10_000, maxWorkingBytes: 512 * 2 ** 20 },
});
cpuBefore = process.cpuUsage();
const [, firstMs] = await measureTime(() => pool.query(snapshot, { sql: statements[0]?.[1] ?? '' }));
const firstCpu = formatProcessorTime(cpuBefore);
const megabytesWithWorker = await measureResidentMegabytes();
printLine(
  `first statement, worker and tables included: ${firstMs.toFixed(0)} ms, ${firstCpu}; ${megabytesWithWorker - megabytesWithRows} MB more`,
);

let groupingMs = 0;
for (const [question, sql] of statements) {
  if (question === 'json')
    printLine(
      `memory without JSON in SQL: ${(await measureResidentMegabytes()) - idleMegabytes} MB above idle (${idleMegabytes} MB)`,
    );
  const ms = await measureMedianMs(() => pool.query(snapshot, { sql })).catch(() => Number.NaN);
  if (question === 'formats') groupingMs = ms;
  printLine(`${question.padEnd(12)} ${ms.toFixed(1).padStart(7)} ms, median of ${roundCount}`);
}
const megabytesWithStatements = await measureResidentMegabytes();
printLine(`memory with it: ${megabytesWithStatements - idleMegabytes} MB above idle`);

for (const format of ['csv', 'jsonl', 'xlsx', 'parquet'] as const) {
  let bytes = 0;
  const countBytes = (chunk: Uint8Array) => {
    bytes += chunk.length;
  };
  const exportTarget = { format, maxBytes: 1e12, writeBytes: countBytes, buildMethodRows: () => [] };
  const runStatement: RunStatement = (read) => pool.exportRows(snapshot, { sql: allAdsSql }, read);
  const [, ms] = await measureTime(() => writeExport([{ name: 'Ads', sql: allAdsSql, runStatement }], exportTarget));
  printLine(`export ${format}: ${ms.toFixed(0)} ms, ${(bytes / 1e6).toFixed(1)} MB`);
}
await pool.close();

if (adCount === 10_000) {
  const ads = `10,000 ${optionValues.data ? 'real' : 'generated'} ads`;
  printRowWithMaximum(`first SQL statement, ${ads}`, firstMs, 1500);
  printRowWithMaximum(`a grouping in SQL, ${ads}`, groupingMs, 100);
  printRowWithMaximum(`memory for rows and SQL, ${ads}`, megabytesWithStatements - idleMegabytes, 300, 'MB');
}
