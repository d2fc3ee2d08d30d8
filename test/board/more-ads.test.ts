import { expect, test } from 'vitest';
import type { ShownBoard } from '../support/board/board-host.ts';
import { someAds } from '../support/board/board-service.ts';
import { boardTest } from '../support/board/board-test.ts';
import { inChromium } from '../support/board/in-chromium.ts';

const button = ({ board }: ShownBoard, name: string | RegExp) => board.getByRole('button', { name, exact: true });
const status = ({ board }: ShownBoard, text: string | RegExp) => board.getByRole('status').getByText(text).waitFor();
const reads = ({ board }: ShownBoard, title: string) =>
  board.locator('#title', { hasText: new RegExp(`^${title}$`) }).waitFor();
const paid = ({ calls }: ShownBoard) => calls.filter(({ name }) => name === 'search_ads');

inChromium('more ads of a search', () => {
  const boards = boardTest(someAds(30));

  test('take a second click, on a button that names the price', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 12 } });
    await reads(shown, '12 of 30 ads');
    await button(shown, 'More ads for about 2 credits …').click();
    await button(shown, 'Cancel').click();
    await button(shown, 'More ads for about 2 credits …').click();
    await button(shown, 'Search for about 2 credits').waitFor();
    expect(paid(shown)).toEqual([]);
    await button(shown, 'Search for about 2 credits').click();
    await reads(shown, '24 of 30 ads');
    await status(shown, /^2 credits charged, [\d,]+ left\.$/);
    expect(paid(shown)).toEqual([{ name: 'search_ads', arguments: { limit: 12, cursor: expect.any(String) } }]);
    await button(shown, /^More ads/).click();
    await button(shown, /^Search for/).click();
    await reads(shown, '30 ads');
    expect(await button(shown, /^More ads/).count()).toBe(0);
  });

  test('a page that is kept takes a second click as well, because it may be kept no longer', async () => {
    const shown = await boards.show(
      { tool: 'search_ads', args: { limit: 30, detail: 'full' } },
      { resultTokens: 2000 },
    );
    await button(shown, 'More ads for at most 3 credits …').click();
    await button(shown, 'Search for at most 3 credits').click();
    await status(shown, '0 credits charged');
    expect(paid(shown)).toHaveLength(1);
  });

  test('its price holds when the page has expired meanwhile', async () => {
    const shown = await boards.show(
      { tool: 'search_ads', args: { limit: 29, detail: 'full' } },
      { resultTokens: 2000, cacheSeconds: 0 },
    );
    await button(shown, 'More ads for about 3 credits …').click();
    await button(shown, 'Search for about 3 credits').click();
    await status(shown, '3 credits charged');
  });

  test('are free for an account that is not charged', async () => {
    const { key } = boards.service.library.keys.create({ unmetered: true });
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 6 } }, { apiKey: key });
    await button(shown, 'More ads, free …').click();
    await button(shown, 'Search, free').click();
    await reads(shown, '12 of 30 ads');
  });

  test('cost by the size that is asked for, whatever other calls have cost', async () => {
    const shown = await boards.show({ tool: 'gather_ads', args: { maxAds: 30, maxCredits: 50 } }, {});
    await reads(shown, '30 ads');
    const found = await boards.show({ tool: 'search_ads', args: {} });
    await button(found, 'More ads for about 2 credits …').waitFor();
  });

  test('a search that fails says why, and can be tried again', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 5 } }, { creditBudget: 1, cacheSeconds: 0 });
    await reads(shown, '5 of 30 ads');
    await button(shown, /^More ads/).click();
    await button(shown, /^Search for/).click();
    const problem = shown.board.getByRole('alert');
    await problem.getByText(/budget/i).waitFor();
    await button(shown, /^More ads/).waitFor();
    await button(shown, 'Try again').click();
    await button(shown, /^Search for/).waitFor();
    expect(paid(shown)).toHaveLength(1);
  });

  test('come without `fresh`, so that what is kept is not paid again', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 7, fresh: true } });
    await button(shown, /^More ads/).click();
    await button(shown, /^Search/).click();
    await reads(shown, '14 of 30 ads');
    expect(paid(shown)).toEqual([{ name: 'search_ads', arguments: { limit: 7, cursor: expect.any(String) } }]);
  });

  test('are not paid for by a key held down, nor by a double click', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 8 } });
    await button(shown, /^More ads/).focus();
    for (let press = 0; press < 5; press++) await shown.page.keyboard.down('Enter');
    await shown.page.keyboard.up('Enter');
    await button(shown, 'Cancel').waitFor();
    expect(await shown.board.locator(':focus').textContent()).toBe('Cancel');
    await shown.page.keyboard.press('Enter');
    expect(await shown.board.locator(':focus').textContent()).toMatch(/^More ads/);
    await button(shown, /^More ads/).dblclick();
    await button(shown, 'Cancel').waitFor();
    expect(paid(shown)).toEqual([]);
  });

  test('are asked for anew with each result', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 9 } });
    const { raw } = await (await boards.service.start()).call('search_ads', { limit: 10 });
    for (const title of ['10 of 30 ads', '10 of 30 ads']) {
      await button(shown, /^More ads/).click();
      await button(shown, 'Cancel').waitFor();
      await shown.notify('ui/notifications/tool-result', raw);
      await reads(shown, title);
      await button(shown, /^More ads/).waitFor();
    }
  });
});
