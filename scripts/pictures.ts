/** `npm run pictures` makes the pictures in `docs/pictures`: the board and a sheet, from demo data of one day. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { type HostOptions, showBoard } from '../test/support/board/board-host.ts';
import { launchChromium } from '../test/support/board/launch-chromium.ts';
import { startServer } from '../test/support/server.ts';
import { smallPng } from './small-png.ts';

const folder = new URL('../docs/pictures/', import.meta.url);
const day = Date.UTC(2026, 10, 20, 12);
const filters = { countries: ['US'], query: '"free shipping"' };
const gathered = { tool: 'gather_ads', args: { filters, maxAds: 200, maxCredits: 50 } } satisfies HostOptions;

mkdirSync(folder, { recursive: true });
const [server, browser] = await Promise.all([
  startServer({ config: { demo: true }, now: () => day }),
  launchChromium(),
]);

async function screenshot(name: string, options: Omit<HostOptions, 'tool'>, mode: 'cards' | 'timeline') {
  const { page, board, close } = await showBoard(browser, server.client, { ...gathered, ...options });
  await board.locator('.card .filled').nth(3).waitFor();
  if (mode === 'timeline') await board.getByRole('button', { name: 'Timeline' }).click();
  else await board.locator('.card input').nth(1).check();
  await page.waitForLoadState('networkidle');
  await page.waitForTimeout(800);
  writeFileSync(new URL(name, folder), await smallPng(await page.screenshot()));
  await close();
}

await screenshot('board-light.png', { width: 1000, height: 760 }, 'cards');
await screenshot('board-dark.png', { width: 1000, height: 760, context: { theme: 'dark' } }, 'timeline');
await screenshot('board-narrow.png', { width: 360, height: 740 }, 'cards');

// Of each language the ad that has run longest.
const sql = `SELECT id, max(daysRunning) AS days FROM ads GROUP BY language ORDER BY days DESC`;
await server.call('gather_ads', { maxAds: 2000, maxCredits: 200 });
const { data } = await server.call('query_ads', { sql, limit: 12 });
const { raw } = await server.call('view_ads', { adIds: (data.rows as string[][]).map(([id]) => id) });
const image = raw.content.find(({ type }) => type === 'image');
if (image?.type === 'image') writeFileSync(new URL('sheet.jpg', folder), Buffer.from(image.data, 'base64'));
await browser.close();
await server.close();
