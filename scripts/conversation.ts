/**
 * `npm run pictures`: a whole conversation in a host, drawn from the real parts: the first question of README with the
 * answer and the cost that `npm run docs` found, and the board of that call.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { paletteStyles } from '../src/looks/palette.ts';
import { openStage } from '../test/support/board/board-host.ts';
import { launchChromium } from '../test/support/board/launch-chromium.ts';
import { startServer } from '../test/support/server.ts';
import { screenshot } from './docs/published.ts';

const root = new URL('../', import.meta.url);
const readme = readFileSync(new URL('README.md', root), 'utf8');
const [, question = '', answer = '', tool = '', cost = ''] =
  /> \*\*(.+)\*\*\n>\n> (.+)\n>\n> <sub>`(\w+)` · (.+)<\/sub>/.exec(readme) ?? [];

const server = await startServer({ config: { demo: true }, now: () => Date.UTC(2026, 10, 20, 12) });
const browser = await launchChromium();
const stage = await openStage(browser);
const args = { filters: { query: '"free shipping"', countries: ['US'], active: true, sort: 'daysRunning' } };
const { page, board } = await stage.show(server.client, { tool, args, width: 760, height: 560 });
await board.locator('.card img').nth(1).waitFor();
await page.waitForTimeout(1500);
const shown = (await page.screenshot({ type: 'jpeg', quality: 90 })).toString('base64');

const asHtml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const chat = await browser.newPage({ viewport: { width: 800, height: 400 } });
await chat.setContent(`<!doctype html><meta charset="utf-8"><style>
  ${paletteStyles()}
  :root { color-scheme: light; }
  body { margin: 0; padding: 28px 40px; background: var(--paper); color: var(--ink); font: 16px/1.5 Inter, sans-serif; }
  .person { margin: 0 0 20px auto; padding: 12px 18px; width: fit-content; max-width: 78%; border-radius: 18px; background: var(--accent-soft); }
  .call { color: var(--soft); font-size: 14px; } code { color: var(--ink); }
  img { display: block; width: 720px; margin: 14px 0 18px; border: 1px solid var(--line); border-radius: 12px; }
  p { margin: 0; }
</style>
<p class="person">${asHtml(question)}</p>
<p class="call"><code>${tool}</code> · Ad Library · demo data · ${cost}</p>
<img src="data:image/jpeg;base64,${shown}">
<p>${asHtml(answer)}</p>`);
writeFileSync(
  new URL(`docs/pictures/${screenshot}`, root),
  await chat.screenshot({ fullPage: true, type: 'jpeg', quality: 85 }),
);
await browser.close();
await server.close();
