/** `npm run pictures` makes the pictures in `docs/pictures`: the board, a sheet and a report, from demo data of one day. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { type HostOptions, openStage } from '../test/support/board/board-host.ts';
import { launchChromium } from '../test/support/board/launch-chromium.ts';
import { startServer } from '../test/support/server.ts';

const folder = new URL('../docs/pictures/', import.meta.url);
const day = Date.UTC(2026, 10, 20, 12);
const filters = { countries: ['US'], query: '"free shipping"' };
const gathered = { tool: 'gather_ads', args: { filters, maxAds: 200, maxCredits: 50 } } satisfies HostOptions;

mkdirSync(folder, { recursive: true });
const [server, browser] = await Promise.all([
  startServer({ config: { demo: true }, now: () => day }),
  launchChromium(),
]);
const stage = await openStage(browser);

async function screenshot(name: string, options: Omit<HostOptions, 'tool'>, mode: 'cards' | 'timeline') {
  const { page, board } = await stage.show(server.client, { ...gathered, ...options });
  await board.locator('.card img').nth(1).waitFor();
  if (mode === 'timeline') await board.getByRole('button', { name: 'Timeline' }).click();
  else await board.locator('.card input').nth(1).check();
  await page.waitForLoadState('networkidle');
  await page.waitForTimeout(800);
  writeFileSync(new URL(name, folder), await page.screenshot());
}

await screenshot('board-light.png', { width: 1100, height: 900 }, 'cards');
await screenshot('board-dark.png', { width: 1100, height: 900, context: { theme: 'dark' } }, 'timeline');
await screenshot('board-narrow.png', { width: 360, height: 900 }, 'cards');

// Of each language the ad that has run longest.
const sql = `SELECT id, max(daysRunning) AS days FROM ads GROUP BY language ORDER BY days DESC`;
await server.call('gather_ads', { maxAds: 2000, maxCredits: 200 });
const { data } = await server.call('query_ads', { sql, limit: 12 });
const { raw } = await server.call('view_ads', { adIds: (data.rows as string[][]).map(([id]) => id) });
const image = raw.content.find(({ type }) => type === 'image');
if (image?.type === 'image') writeFileSync(new URL('sheet.jpg', folder), Buffer.from(image.data, 'base64'));

const longest = 'SELECT id FROM ads WHERE active = 1 GROUP BY pageName ORDER BY max(daysRunning) DESC LIMIT 8';
const { data: found } = await server.call('query_ads', { sql: longest });
const { data: report } = await server.call('write_report', {
  title: 'What keeps running: a report on demo ads',
  sections: [
    {
      heading: 'In short',
      text: 'This is what write_report makes of demo data: text, charts, tables and ads in one file to hand on.\n\nEvery advertiser and ad in it is generated.',
    },
    {
      heading: 'New ads by month',
      sql: 'SELECT startedMonth AS month, count(*) AS ads, sum(active) AS running FROM ads GROUP BY 1 ORDER BY 1',
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
    { heading: 'The longest running', adIds: (found.rows as string[][]).map(([id]) => id) },
  ],
});
const { contents } = await server.client.readResource({ uri: report.uri as string });
const html = contents[0] && 'text' in contents[0] ? contents[0].text : '';
writeFileSync(new URL('report.html', folder), html);
const page = await browser.newPage({ viewport: { width: 1100, height: 1250 } });
await page.setContent(html);
writeFileSync(new URL('report.png', folder), await page.screenshot());
await browser.close();
await server.close();
