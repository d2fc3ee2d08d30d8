import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import type { HostOptions, ShownBoard } from '../support/board/board-host.ts';
import { idOf, someAds } from '../support/board/board-service.ts';
import { boardTest } from '../support/board/board-test.ts';
import { inChromium } from '../support/board/in-chromium.ts';

const gathered: HostOptions = { tool: 'gather_ads', args: { maxAds: 90, maxCredits: 50 } };
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Waits for the title, which comes with the last ads. */
const reads = async ({ board }: ShownBoard, title: string) => {
  await board.locator('#title', { hasText: new RegExp(`^${title}$`) }).waitFor();
};
const chip = ({ board }: ShownBoard, name: string) => board.locator('.chip', { hasText: new RegExp(`^${name}\\d+$`) });
const titles = ({ board }: ShownBoard) => board.locator('#list .open').allTextContents();

inChromium('the board in a host', () => {
  const boards = boardTest(someAds(90));

  test('shakes hands, shows the ads of a gathering with their pictures, and grows to its room', async () => {
    const shown = await boards.show(gathered);
    await reads(shown, '90 ads');
    const [first, second] = await shown.messages();
    expect(first).toMatchObject({
      method: 'ui/initialize',
      params: { protocolVersion: '2026-01-26', appInfo: { name: 'ad-library-board' } },
    });
    expect((await shown.messages()).map(({ method }) => method)).toContain('ui/notifications/initialized');
    expect(second?.method).not.toBe('tools/call');
    await shown.board.locator('.card .filled').first().waitFor();
    await expect
      .poll(() => shown.messages('ui/notifications/size-changed'))
      .toContainEqual(expect.objectContaining({ params: { width: 1180, height: 820 } }));
    expect(await shown.board.locator('#subtitle').textContent()).toBe('90 read of 90 found · as of 20 Nov 2026');
    expect(await shown.board.locator('.card').first().textContent()).toContain('days');
  });

  test('answers a ping and a teardown, and refuses what it does not know', async () => {
    const shown = await boards.show(gathered);
    await reads(shown, '90 ads');
    expect(await shown.ask('ping')).toEqual({});
    expect(await shown.ask('ui/resource-teardown')).toEqual({});
    expect(await shown.ask('toString')).toMatchObject({ code: -32601 });
  });

  test.each(['text', 'structured'] as const)('shows the same where the output is %s', async (output) => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 5 } }, { output });
    await reads(shown, '5 of 90 ads');
    expect(await titles(shown)).toEqual(['Offer 0', 'Offer 1', 'Offer 2', 'Offer 3', 'Offer 4']);
  });

  test('shows the ads of view_ads and of a collection', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 3 } });
    await reads(shown, '3 of 90 ads');
    const server = await boards.service.start();
    await server.call('search_ads', { limit: 9 });
    const { data } = await server.call('list_collections');
    const collectionId = data.items[0]?.id;
    await server.call('add_collection_item', { collectionId, itemType: 'ads', itemId: idOf(8) });
    const listed = await boards.show({ tool: 'list_collection_items', args: { collectionId, itemType: 'ads' } });
    await reads(listed, '1 ad');
    const pages = await boards.show({ tool: 'list_collection_items', args: { collectionId, itemType: 'pages' } });
    await pages.board.getByText('This list holds pages').waitFor();
  });

  test('filters at once by chips with counts, and calls nobody for it', async () => {
    const shown = await boards.show(gathered);
    await reads(shown, '90 ads');
    const calls = shown.calls.filter(({ name }) => name !== 'board_pictures').length;
    await chip(shown, 'Running').click();
    await reads(shown, '45 of 90 ads');
    await chip(shown, 'Image').click();
    await reads(shown, '15 of 90 ads');
    await chip(shown, 'Video').click();
    await reads(shown, '30 of 90 ads');
    expect(await chip(shown, 'Running').getAttribute('aria-pressed')).toBe('true');
    await shown.board.getByRole('button', { name: /^All filters/ }).click();
    for (const facet of ['State', 'Format', 'Call to action', 'Advertiser', 'Country', 'Started'])
      await shown.board.getByRole('group', { name: facet, exact: true }).waitFor();
    await chip(shown, 'Stridemoor').click();
    await reads(shown, '15 of 90 ads');
    expect(await chip(shown, 'Germany').textContent()).toBe('Germany15');
    await shown.board.getByRole('button', { name: 'Clear' }).click();
    await reads(shown, '90 ads');
    expect(shown.calls.filter(({ name }) => name !== 'board_pictures')).toHaveLength(calls);
  });

  test('sorts, and shows runs on one axis', async () => {
    const shown = await boards.show(gathered);
    await reads(shown, '90 ads');
    expect((await titles(shown))[0]).toBe('Offer 88');
    await shown.board.getByLabel('Sort').selectOption('Copies of the ad');
    expect((await titles(shown))[0]).toBe('Offer 89');
    await shown.board.getByLabel('Sort').selectOption('As listed');
    expect((await titles(shown))[0]).toBe('Offer 0');
    await shown.board.getByRole('button', { name: 'Timeline' }).click();
    const bar = await shown.board.locator('.row .track i').first().boundingBox();
    const track = await shown.board.locator('.row .track').first().boundingBox();
    // Offer 0 is the last to start, and is still running: its bar ends where the axis does.
    expect((bar?.x ?? 0) + (bar?.width ?? 0)).toBeCloseTo((track?.x ?? 0) + (track?.width ?? 0), 0);
    expect(bar?.width ?? 0).toBeLessThan((track?.width ?? 0) / 4);
  });

  test('draws more cards as a reader comes near the end, all of them in the end', async () => {
    const shown = await boards.show(gathered);
    await reads(shown, '90 ads');
    await shown.page.mouse.move(500, 500);
    await expect
      .poll(async () => {
        await shown.page.mouse.wheel(0, 4000);
        return shown.board.locator('.card').count();
      })
      .toBe(90);
  });

  test('opens the whole ad in a drawer, by keyboard alone, and gives the focus back', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 6 } });
    await reads(shown, '6 of 90 ads');
    const { board, page } = shown;
    await board.getByRole('button', { name: 'Offer 2', exact: true }).focus();
    await page.keyboard.press('Enter');
    const drawer = board.getByRole('dialog', { name: 'Offer 2' });
    await drawer.waitFor();
    expect(await drawer.locator('.copy').first().textContent()).toBe('First line of offer 2.\nIts second line.');
    expect(await drawer.locator('.ad-cards b').allTextContents()).toEqual([1, 2, 3].map((card) => `Card ${card} of 2`));
    await drawer.locator('dl').scrollIntoViewIfNeeded();
    await drawer.locator('.ad-cards .filled').nth(2).waitFor();
    expect(await drawer.locator('dl').textContent()).toContain('Started13 Nov 2026');
    await page.keyboard.press('ArrowRight');
    await board.getByRole('dialog', { name: 'Offer 3' }).waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => board.getByRole('dialog').count()).toBe(0);
    const focused = await board.locator(':focus').textContent();
    expect(focused).toBe('Offer 2');
  });

  test('follows the theme and the colours of the host, and its changes', async () => {
    const variables = { '--color-background-primary': 'light-dark(rgb(250, 240, 230), rgb(1, 2, 3))' };
    const shown = await boards.show({ ...gathered, context: { theme: 'dark', styles: { variables } } });
    await reads(shown, '90 ads');
    const colour = () =>
      shown.board
        .locator('html')
        .evaluate((html) => html.ownerDocument.defaultView.getComputedStyle(html).backgroundColor);
    expect(await colour()).toBe('rgb(1, 2, 3)');
    await shown.notify('ui/notifications/host-context-changed', { theme: 'light' });
    await expect.poll(colour).toBe('rgb(250, 240, 230)');
  });

  test('takes the whole window where the host can give it', async () => {
    const shown = await boards.show({ ...gathered, context: { availableDisplayModes: ['inline', 'fullscreen'] } });
    await reads(shown, '90 ads');
    await shown.board.getByRole('button', { name: 'Expand' }).click();
    await shown.board.getByRole('button', { name: 'Close' }).waitFor();
    const asked = await shown.messages('ui/request-display-mode');
    expect(asked.map(({ params }) => params)).toEqual([{ mode: 'fullscreen' }]);
  });

  test.each([
    ['light', 1180, 'cards'],
    ['dark', 1180, 'timeline'],
    ['light', 360, 'cards'],
    ['dark', 360, 'timeline'],
  ] as const)('is accessible: %s, %d pixels, %s', async (theme, width, mode) => {
    const shown = await boards.show({ ...gathered, width, context: { theme } });
    await reads(shown, '90 ads');
    if (mode === 'timeline') await shown.board.getByRole('button', { name: 'Timeline' }).click();
    await shown.board.locator('#list input').first().check();
    const violations = () =>
      shown.board.locator('html').evaluate(async (_, source) => {
        const axeOf = new Function(`${source}; return axe`);
        const { violations: found } = await axeOf().run({ resultTypes: ['violations'] });
        return found.map(({ id, nodes }: { id: string; nodes: { html: string }[] }) => [id, nodes[0]?.html]);
      }, axe);
    expect(await violations()).toEqual([]);
    const overflow = await shown.board.locator('html').evaluate((html) => html.scrollWidth - html.clientWidth);
    expect(overflow).toBe(0);
    await shown.board.locator('#list .open').first().click();
    await shown.board.getByRole('dialog').waitFor();
    expect(await violations()).toEqual([]);
  });
});
