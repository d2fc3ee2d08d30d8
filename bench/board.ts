/**
 * Measures the ad board with 10,000 ads in Chromium: the time until the first cards and until all ads are visible, the
 * time for a filter, a sort and the timeline, and the longest task while scrolling. Run the benchmark with `npm run
 * bench:board`. To use real ads, set AD_LIBRARY_TEST_DATA to a folder with `ads.jsonl`. The benchmark then repeats
 * these ads with new ids until there are 10,000.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Frame, Page } from 'playwright-core';
import { openHostPage } from '../test/support/board/board-host.ts';
import { createAds, startBoardService } from '../test/support/board/board-service.ts';
import { hasChromium, launchChromium } from '../test/support/board/launch-chromium.ts';
import { deriveUuid } from '../test/support/derive-uuid.ts';
import { computeMedian, printRowWithMaximum, skipBenchmark } from './row.ts';

const adCount = 10_000;
const roundCount = 3;
/** The highest allowed median of each measurement, in milliseconds. */
const maxMedianMs: Record<string, number> = {
  'first paint of the empty board': 300,
  'from the first ads that come to their cards on the screen': 150,
  'a filter': 50,
  'the longest task while scrolling': 100,
};
const realAdsFolder = process.env.AD_LIBRARY_TEST_DATA;

function readRealAds(folder: string): object[] {
  const ads = readFileSync(join(folder, 'ads.jsonl'), 'utf8').trim().split('\n');
  return Array.from({ length: adCount }, (_, index) => ({
    ...JSON.parse(ads[index % ads.length] ?? '{}'),
    id: deriveUuid(`${index}`),
  }));
}

function printTimes(name: string, times: readonly number[]): void {
  process.stdout.write(`${name}: ${Math.round(computeMedian(times))} ms, ${Math.round(Math.min(...times))} at best\n`);
  if (maxMedianMs[name] !== undefined)
    printRowWithMaximum(`board of 10,000 ads: ${name}`, computeMedian(times), maxMedianMs[name]);
}

if (!hasChromium) skipBenchmark('Chromium is not installed');
const service = await startBoardService(realAdsFolder ? () => readRealAds(realAdsFolder) : createAds(adCount));
const [{ client }, browser] = await Promise.all([service.start(), launchChromium()]);
process.stdout.write(`${adCount} ${realAdsFolder ? 'real' : 'generated'} ads\n`);

/**
 * A script that runs in the page of the board. It records when the first ads arrived, when their cards were visible,
 * and when all ads were visible, in milliseconds since the page was opened.
 */
const recordTimesScript = `
  window.times = {};
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
  }).observe({ type: 'longtask', buffered: true });
  const recordAfterFrame = (name) => requestAnimationFrame(() => setTimeout(() => { window.times[name] ??= performance.now(); }));
  addEventListener('message', ({ data }) => {
    if (data.method === 'ui/notifications/tool-result') window.times.result = performance.now();
    if (data.result?._meta?.['ad-library/board']?.ads) window.times.ads ??= performance.now();
  });
  new MutationObserver(() => {
    if (document.querySelector('#list > li')) recordAfterFrame('cards');
    if (/(^|messages, )10,000 ads/.test(document.querySelector('#count')?.textContent)) recordAfterFrame('all');
  }).observe(document, { childList: true, subtree: true, characterData: true });`;

/**
 * Returns a script that clicks the element that `selector` matches. The script resolves to the time until the browser
 * paints the next frame, in milliseconds.
 */
const buildClickTimer = (selector: string) => `new Promise((resolve) => {
  const started = performance.now();
  document.querySelector(${JSON.stringify(selector)}).click();
  requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - started)));
})`;

const sortTimer = buildClickTimer('#sort').replace(
  '.click()',
  ".dispatchEvent((document.querySelector('#sort').value = 'advertiser', new Event('change')))",
);

async function measureLongestScrollTask(page: Page, frame: Frame): Promise<number> {
  await page.waitForTimeout(500);
  await frame.evaluate('window.longest = 0');
  await page.mouse.move(500, 400);
  for (let step = 0; step < 40; step++) {
    await page.mouse.wheel(0, 1500);
    await page.waitForTimeout(50);
  }
  return frame.evaluate<number>('longest');
}

const gatherCall = { tool: 'gather_ads', args: { maxAds: adCount, maxCredits: 5000 }, script: recordTimesScript };
const timesByMeasurement: Record<string, number[]> = {};
for (let round = 0; round <= roundCount; round++) {
  const hostPage = await openHostPage(browser);
  const shownBoard = await hostPage.show(client, gatherCall);
  await shownBoard.board.locator('#count', { hasText: /(^|messages, )10,000 ads/ }).waitFor();
  const frame = shownBoard.page.frames()[1];
  if (frame === undefined) throw new Error('The page has no frame with the board.');
  await shownBoard.page.waitForTimeout(300);
  const { result, ads, cards, all } = await frame.evaluate<Record<'result' | 'ads' | 'cards' | 'all', number>>('times');
  const roundTimes = {
    'first paint of the empty board': await frame.evaluate<number>(
      'performance.getEntriesByName("first-contentful-paint")[0].startTime',
    ),
    'from the first ads that come to their cards on the screen': cards - ads,
    'from the tool result to all ads, with host and server': all - result,
    'the longest time without an answer to a click, until all are there': await frame.evaluate<number>('longest'),
    'a filter': await frame.evaluate<number>(buildClickTimer('.chip[aria-pressed]')),
    'the filter off': await frame.evaluate<number>(buildClickTimer('.chip[aria-pressed=true]')),
    'the timeline': await frame.evaluate<number>(buildClickTimer('[aria-label=Timeline]')),
    'sorting by advertiser': await frame.evaluate<number>(sortTimer),
    'the cards again': await frame.evaluate<number>(buildClickTimer('[aria-label=Cards]')),
    'the longest task while scrolling': await measureLongestScrollTask(shownBoard.page, frame),
  };
  // Round 0 only warms up the server, so its times are discarded.
  if (round > 0)
    for (const [measurement, durationMs] of Object.entries(roundTimes))
      timesByMeasurement[measurement] = [...(timesByMeasurement[measurement] ?? []), durationMs];
  await hostPage.close();
}
for (const [name, allTimes] of Object.entries(timesByMeasurement)) printTimes(name, allTimes);
await browser.close();
await service.close();
