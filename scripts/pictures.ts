/**
 * Draws the pictures in `docs/pictures` from the demo data of one day: a conversation in an MCP host, the ad board, a
 * picture sheet of ads, a report and a weekly mail. Run it with `npm run pictures`.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { openApp } from '../src/app.ts';
import { readConfig } from '../src/config/read-config.ts';
import { openDemoLibrary } from '../src/library/demo/demo.ts';
import { createLogger } from '../src/logging/log.ts';
import { createPaletteStyles } from '../src/ui/palette.ts';
import { type ServedAd, serveAds } from '../test/support/ad-service.ts';
import { type HostOptions, openHostPage } from '../test/support/board/board-host.ts';
import { launchChromium } from '../test/support/board/launch-chromium.ts';
import { startUpstream } from '../test/support/faulty-upstream.ts';
import { startServer } from '../test/support/server.ts';
import { screenshotFile as conversationFile } from './docs/published.ts';

const picturesFolder = new URL('../docs/pictures/', import.meta.url);
const pictureTime = Date.UTC(2026, 10, 20, 12);
const filters = { countries: ['US'], query: '"free shipping"' };
const gatherOptions = { tool: 'gather_ads', args: { filters, maxAds: 200, maxCredits: 50 } } satisfies HostOptions;

mkdirSync(picturesFolder, { recursive: true });
const [server, browser] = await Promise.all([
  startServer({ config: { demo: true }, now: () => pictureTime }),
  launchChromium(),
]);
const hostPage = await openHostPage(browser);

async function saveScreenshot(name: string, options: Omit<HostOptions, 'tool'>, mode: 'cards' | 'timeline') {
  const { page, board } = await hostPage.show(server.client, { ...gatherOptions, ...options });
  await board.locator('.card img').nth(1).waitFor();
  if (mode === 'timeline') await board.getByRole('button', { name: 'Timeline' }).click();
  else await board.locator('.card input').nth(1).check();
  await page.waitForLoadState('networkidle');
  await page.waitForTimeout(800);
  writeFileSync(new URL(name, picturesFolder), await page.screenshot());
}

await drawConversation();
await saveScreenshot('board-light.png', { width: 1100, height: 900 }, 'cards');
await saveScreenshot('board-dark.png', { width: 1100, height: 900, context: { theme: 'dark' } }, 'timeline');
await saveScreenshot('board-narrow.png', { width: 360, height: 900 }, 'cards');

// The picture sheet shows the longest-running ad of each language.
const longestByLanguageSql = `SELECT id, max(daysRunning) AS days FROM ads GROUP BY language ORDER BY days DESC`;
await server.call('gather_ads', { maxAds: 3000, maxCredits: 300 });
const { data: longestByLanguage } = await server.call('query_ads', { sql: longestByLanguageSql, limit: 12 });
const { raw: sheetResult } = await server.call('view_ads', {
  adIds: (longestByLanguage.rows as string[][]).map(([id]) => id),
});
const image = sheetResult.content.find(({ type }) => type === 'image');
if (image?.type === 'image') writeFileSync(new URL('sheet.jpg', picturesFolder), Buffer.from(image.data, 'base64'));

const longestRunningSql =
  'SELECT id FROM current_ads WHERE active = 1 GROUP BY pageName ORDER BY max(daysRunning) DESC LIMIT 8';
const { data: longestRunning } = await server.call('query_ads', { sql: longestRunningSql });
const { data: report } = await server.call('write_report', {
  title: 'What keeps running: a report on demo ads',
  sections: [
    {
      heading: 'In short',
      text: 'This is what write_report makes of demo data: text, charts, tables and ads in one file to hand on.\n\nEvery advertiser and ad in it is generated.',
    },
    {
      heading: 'New ads by month',
      sql: 'SELECT startedMonth AS month, count(*) AS ads, sum(active = 1) AS running FROM current_ads GROUP BY 1 ORDER BY 1',
      chart: 'line',
    },
    {
      heading: 'Days running, by call to action',
      sql: 'SELECT ctaType, median(daysRunning) AS medianDays, count(*) AS ads FROM ads GROUP BY 1 ORDER BY 2 DESC',
    },
    {
      heading: 'Advertisers with most ads',
      sql: 'SELECT pageName, count(*) AS ads FROM ads GROUP BY 1 ORDER BY 2 DESC LIMIT 12',
      chart: 'bar',
    },
    { heading: 'The longest running', adIds: (longestRunning.rows as string[][]).map(([id]) => id) },
  ],
});
const { contents } = await server.client.readResource({ uri: report.uri as string });
await savePage('report', contents, { width: 1100, height: 1250 });
const mail = await createWeeklyMail();
await savePage('mail', mail.contents, { width: 640, height: 900 });
process.stdout.write(`${mail.text}\n`);
await browser.close();
await server.close();

async function savePage(name: string, contents: readonly object[], viewport: { width: number; height: number }) {
  const [{ text: html = '' } = {}] = contents as { text?: string }[];
  writeFileSync(new URL(`${name}.html`, picturesFolder), html);
  const page = await browser.newPage({ viewport });
  await page.setContent(html);
  writeFileSync(new URL(`${name}.png`, picturesFolder), await page.screenshot());
}

/**
 * Returns the mail and the text of a `check_watches` call one week after the first check. During that week, the
 * advertiser has started some ads, changed one ad and ended one ad.
 */
async function createWeeklyMail() {
  const { library, apiKey } = await openDemoLibrary({ now: () => pictureTime });
  const upstream = await startUpstream();
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const requestLibrary = (path: string, options = {}) =>
    library.fetch(new Request(upstream.baseUrl + path, { headers, ...options }));
  const body = JSON.stringify({ advertiser: 'Langkah Rimba', limit: 100 });
  const searchPage = (await (await requestLibrary('/v1/ads/search', { method: 'POST', body })).json()) as {
    items: ServedAd[];
  };
  const ads = searchPage.items.map((ad): ServedAd => ({ ...ad, appUrl: `https://app.example.com/ads/${ad.id}` }));
  const firstCheckTime = pictureTime - 7 * 86_400_000;
  const earlierAds = ads.filter(({ startedAt }) => Date.parse(String(startedAt)) <= firstCheckTime);
  const [endedAd, changedAd] = earlierAds;
  const service = serveAds(upstream, 0);
  service.interceptRequest = (path) =>
    path.startsWith('/media/')
      ? async (_, response) => void response.end(Buffer.from(await (await requestLibrary(path)).arrayBuffer()))
      : undefined;
  let currentTime = firstCheckTime;
  const app = await openApp({
    config: { ...readConfig({}), baseUrl: upstream.baseUrl, apiKey },
    log: createLogger('silent', () => {}),
    ...{ now: () => currentTime, monotonicNow: () => currentTime, random: () => 0 },
  });
  const signal = new AbortController().signal;
  const callTool = (name: string, args: object) =>
    app.catalog.callTool({ ...app.credentials, name, arguments: args, wantsHtml: true, signal });
  await callTool('watch_ads', { name: 'Langkah Rimba', filters: { advertiser: 'Langkah Rimba' }, maxCredits: 30 });
  service.ads = earlierAds;
  await callTool('check_watches', { maxCredits: 60 });
  currentTime = pictureTime;
  service.ads = ads.flatMap((ad) => {
    if (ad.id === endedAd?.id) return [];
    return ad.id === changedAd?.id ? { ...ad, headline: `${ad.headline}: 20%` } : ad;
  });
  const { content, structuredContent } = await callTool('check_watches', { maxCredits: 60 });
  const { contents } = await app.catalog.readResource({
    ...{ ...app.credentials, uri: String(structuredContent?.uri), signal },
    errorFactories: { notFound: Error, refused: Error } as never,
  });
  await app.close();
  await upstream.close();
  library.close();
  return { contents, text: content.map((block) => ('text' in block ? block.text : '')).join('') };
}

/** Draws a conversation with the first question of the README, its answer, its price and its ad board. */
async function drawConversation() {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const [, question = '', answer = '', tool = '', cost = ''] =
    /> \*\*(.+)\*\*\n>\n> (.+)\n>\n> <sub>`(\w+)` · (.+)<\/sub>/.exec(readme) ?? [];
  const args = { filters: { query: '"free shipping"', countries: ['US'], active: true, sort: 'daysRunning' } };
  const { page, board } = await hostPage.show(server.client, { tool, args, width: 760, height: 560 });
  await board.locator('.card img').nth(1).waitFor();
  await page.waitForTimeout(1500);
  const boardPicture = (await page.screenshot({ type: 'jpeg', quality: 90 })).toString('base64');
  const escapeHtml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const chatPage = await browser.newPage({ viewport: { width: 800, height: 400 } });
  await chatPage.setContent(`<!doctype html><meta charset="utf-8"><style>
    ${createPaletteStyles()}
    :root { color-scheme: light; }
    body { margin: 0; padding: 28px 40px; background: var(--paper); color: var(--ink); font: 16px/1.5 Inter, sans-serif; }
    .person { margin: 0 0 20px auto; padding: 12px 18px; width: fit-content; max-width: 78%; border-radius: 18px; background: var(--accent-soft); }
    .call { color: var(--soft); font-size: 14px; } code { color: var(--ink); }
    img { display: block; width: 720px; margin: 14px 0 18px; border: 1px solid var(--line); border-radius: 12px; }
    p { margin: 0; }
  </style>
  <p class="person">${escapeHtml(question)}</p>
  <p class="call"><code>${tool}</code> · Ad Library · demo data · ${cost}</p>
  <img src="data:image/jpeg;base64,${boardPicture}">
  <p>${escapeHtml(answer)}</p>`);
  const picture = await chatPage.screenshot({ fullPage: true, type: 'jpeg', quality: 85 });
  writeFileSync(new URL(conversationFile, picturesFolder), picture);
}
