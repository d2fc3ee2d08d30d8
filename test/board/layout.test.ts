import type { Locator } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { findViolations } from '../support/board/axe.ts';
import type { ShownBoard } from '../support/board/board-host.ts';
import { createAdId, createAds, now } from '../support/board/board-service.ts';
import {
  boardTest,
  closeBrowser,
  getButton,
  getCheckbox,
  waitForAdCount,
  waitForStatus,
} from '../support/board/board-test.ts';
import { inChromium } from '../support/board/in-chromium.ts';

afterAll(closeBrowser);

const formatDaysAgo = (days: number) => new Date(now - days * 86_400_000).toISOString();
const names = ['Quiet Heron Schlafmanufaktur GmbH & Co.', 'بيت النخيلات للتمور والهدايا الفاخرة', 'Stridemoor'];
const headlines = [
  'Donaudampfschifffahrtsgesellschaftskapitänsmütze',
  'صندوق تمور الموسم وصل: اطلبه اليوم قبل نفاد الكمية',
  'Walk',
];
/** Creates old and new ads, two texts shared by several ads, names in both writing directions, and missing pictures. */
const createMixedAds = (mediaUrl: string) =>
  createAds(44)(mediaUrl).map((ad, index) => ({
    ...ad,
    pageId: index < 12 ? `page-${index % 2}` : ad.pageId,
    page: { pageName: names[index < 12 ? index % 2 : index % 3] },
    headline: index < 12 ? ad.headline : `${headlines[index % 3]} ${index}`,
    startedAt: formatDaysAgo([296, 116][index] ?? 7),
    lastSeenAt: formatDaysAgo(0),
    endDate: null,
    ...(index % 5 === 4 && { media: [{ type: 'THUMB', nr: 0, url: 'https://pictures.example/1.jpg?oe=65000000' }] }),
  }));

/**
 * Returns the layout faults of a page as short sentences: overlapping texts, texts cut without an ellipsis, and texts
 * outside the window. Runs in the browser.
 */
const findLayoutFaults = (root: Locator): Promise<string[]> =>
  root.evaluate((html) => {
    const window = html.ownerDocument.defaultView;
    const faults: string[] = [];
    const texts: {
      element: typeof html;
      text: string;
      box: { left: number; right: number; top: number; bottom: number };
    }[] = [];
    const top = html.querySelector('dialog[open]') ?? html.querySelector('main');
    for (const element of top?.querySelectorAll('*') ?? []) {
      const style = window.getComputedStyle(element);
      const textNodes = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim() !== '');
      if (textNodes.length === 0 || style.visibility === 'hidden' || style.clipPath !== 'none') continue;
      const box = element.getBoundingClientRect();
      if (box.width === 0 || box.height === 0 || element.closest('footer, nav, option, svg')) continue;
      const text = textNodes[0].data.trim().slice(0, 40);
      const isLineClamped = (one: typeof element) => {
        const { textOverflow, webkitLineClamp } = window.getComputedStyle(one);
        return textOverflow === 'ellipsis' || webkitLineClamp !== 'none';
      };
      const holders = [element, element.parentElement, element.parentElement?.parentElement].filter(Boolean);
      for (const holder of holders)
        if (window.getComputedStyle(holder).overflowX === 'hidden' && !isLineClamped(holder))
          if (holder.scrollWidth > holder.clientWidth + 1) faults.push(`cut: ${text}`);
      const scroller = element.closest('.compared, .strip')?.getBoundingClientRect();
      if (!scroller && box.right > html.clientWidth + 1) faults.push(`beyond the edge: ${text}`);
      for (const node of textNodes) {
        const range = html.ownerDocument.createRange();
        range.selectNodeContents(node);
        const boxes = holders.some(isLineClamped) ? [box] : range.getClientRects();
        for (const { left, right, top, bottom } of boxes)
          if (!scroller || (left < scroller.right && top < scroller.bottom))
            texts.push({
              element,
              text,
              box: { left, right, top, bottom: Math.min(bottom, scroller?.bottom ?? bottom) },
            });
      }
    }
    for (const [at, one] of texts.entries())
      for (const other of texts.slice(at + 1)) {
        const width = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
        const height = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
        const isPart = one.element.contains(other.element) || other.element.contains(one.element);
        if (width > 2 && height > 4 && !isPart) faults.push(`on each other: ${one.text} | ${other.text}`);
      }
    return [...new Set(faults)].slice(0, 10);
  });

const isSmallText = ({ board }: ShownBoard) =>
  board.locator('button:visible:not(.open), select:visible, .pick:visible').evaluateAll((all) =>
    all.flatMap((one) => {
      const box = one.getBoundingClientRect();
      return Math.min(box.width, box.height) < 44 ? [one.outerHTML] : [];
    }),
  );

inChromium('The layout of the ad board', () => {
  const boards = boardTest(createMixedAds);
  const gathered = { tool: 'gather_ads', args: { maxAds: 50, maxCredits: 50 } };

  test.each([
    ['en', 'light', 1100, 820],
    ['de-DE', 'dark', 760, 500],
    ['ar-EG', 'light', 360, 500],
    ['ar-EG', 'dark', 1100, 820],
    ['de-DE', 'dark', 360, 500],
  ] as const)(
    'no elements of the ad board overlap or are cut off (locale %s, %s theme, window of %d by %d pixels)',
    async (locale, theme, width, height) => {
      const inline = height === 500 && { displayMode: 'inline', availableDisplayModes: ['inline', 'fullscreen'] };
      const shown = await boards.show({ ...gathered, width, height, context: { locale, theme, ...inline } });
      const { board, page } = shown;
      await board.locator('.card img').first().waitFor();
      const html = board.locator('html');
      const hasNoFaults = async (view: string) => {
        await expect.poll(() => findLayoutFaults(html), { message: view }).toEqual([]);
        if (locale !== 'de-DE') expect(await findViolations(html), view).toEqual([]);
        if (width === 360) expect(await isSmallText(shown), view).toEqual([]);
      };
      await hasNoFaults('cards');
      if (inline) {
        const run = await board.locator('.card .run').nth(1).boundingBox();
        expect((run?.y ?? 0) + (run?.height ?? 999)).toBeLessThanOrEqual(height);
        await board.locator('#filters').click();
      }
      await hasNoFaults('filters and charts');
      await board.getByLabel('Timeline').click();
      await board.getByLabel('Sort').selectOption('Days running');
      const bars = await board
        .locator('.row .track')
        .evaluateAll((tracks) =>
          tracks.map((track) => track.firstElementChild.getBoundingClientRect().width / track.clientWidth),
        );
      // The time axis starts with the oldest ad, which is still running, so its bar has the full width.
      expect(bars[0]).toBeCloseTo(1, 2);
      expect((bars[1] ?? 0) * 296).toBeCloseTo(116, 0);
      expect(await board.locator('#axis span').count()).toBeGreaterThan(1);
      expect((await board.locator('.row').first().boundingBox())?.height).toBeLessThan(120);
      await hasNoFaults('timeline');
      await board.locator('#list input').first().check();
      await board.locator('#list input').nth(1).check();
      await getButton(shown, 'Compare').click();
      await board.locator('#compare mark').first().waitFor();
      await hasNoFaults('compare');
      await page.keyboard.press('Escape');
      await board.locator('#list .open').first().click();
      await board.locator('#drawer .copy').first().waitFor();
      await hasNoFaults('drawer');
    },
  );

  test('the ad board shows neither charts nor filters if it has only two ads', async () => {
    const two = await boards.show({ tool: 'search_ads', args: { limit: 2 }, width: 760, height: 500 });
    await waitForAdCount(two, '2 of 44 ads');
    expect(await two.board.locator('#charts, #chips, #filters, #finding').count()).toBe(0);
    const hasNoFaults = async ({ board }: ShownBoard) => {
      const html = board.locator('html');
      expect([await findLayoutFaults(html), await findViolations(html)]).toEqual([[], []]);
    };
    await hasNoFaults(two);
    const filters = { query: 'zzz', countries: ['DE'], daysRunningFrom: 30 };
    const emptyBoard = await boards.show({ tool: 'search_ads', args: { filters } });
    await waitForStatus(emptyBoard, 'Nothing was found: “zzz” in Germany, days running from 30.');
    await hasNoFaults(emptyBoard);
    const inEuros = await boards.show({ tool: 'search_ads', args: { filters: { query: 'zzz', currency: 'EUR' } } });
    await waitForStatus(inEuros, 'Nothing was found: “zzz”, currency EUR.');
    const boardWithError = await boards.show({ tool: 'search_ads', args: { filters: { colour: 'red' } } });
    await boardWithError.board.getByRole('alert').locator('summary').click();
    await hasNoFaults(boardWithError);
  });

  test('clicking the key finding of the ad board (a sentence above the ads) opens the ads that the sentence describes', async () => {
    const shown = await boards.show(gathered);
    const { board, page } = shown;
    await getButton(
      shown,
      /^.+ \(page page-[01]\) repeats one message in 6 of its 6 ads here; the longest ran (296|116) days\.$/,
    ).click();
    await waitForAdCount(shown, String.raw`1 of \d+ messages, 6 of 44 ads`);
    expect(await board.locator('.card .number').allTextContents()).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^\d+$/),
        expect.stringMatching(/^\d+\.2$/),
        expect.stringMatching(/^\d+\.6$/),
      ]),
    );
    await board.locator('#list .open').nth(2).click();
    await board.getByText(/^Ad [\d.]+ · 3 of 6$/).waitFor();
    const strip = board.getByRole('list', { name: '6 variants' }).getByRole('button');
    expect(await strip.count()).toBe(6);
    await strip.first().click();
    await board.getByText(/^Ad [\d.]+ · 1 of 6$/).waitFor();
    await getButton(shown, 'Copy text').click();
    await page.keyboard.press('Escape');
    await waitForStatus(shown, 'The text was copied.');
  });

  test('a user can compare two ads word by word using only the keyboard', async () => {
    const shown = await boards.show(gathered);
    const { board, page } = shown;
    for (const offer of [20, 23, 26]) await getCheckbox(shown, `Walk ${offer}`).check();
    await getButton(shown, 'Compare').focus();
    await page.keyboard.press('Enter');
    const row = board.locator('#compare tr', { hasText: 'Copy' });
    await row.getByText('Its second line.').first().waitFor();
    expect(await row.locator('mark').allTextContents()).toEqual(['20', '23', '26']);
    const widths = await board.locator('#compare .frame').evaluateAll((all) => all.map((one) => one.clientWidth));
    expect(new Set(widths).size).toBe(1);
    await board.getByRole('dialog').getByRole('button', { name: 'Ask' }).click();
    await expect
      .poll(async () => JSON.stringify(await shown.messages('ui/message')))
      .toMatch(/Compare ads \d+, \d+ and \d+ of the board\./);
    await page.keyboard.press('Escape');
    expect(await board.locator(':focus').textContent()).toBe('Compare');
    await getCheckbox(shown, 'Walk 20').uncheck();
    await getCheckbox(shown, 'Walk 23').uncheck();
    expect(await getButton(shown, 'Compare').count()).toBe(0);
  });

  test('the details of an ad on the board show what changed between the stored versions of the ad', async () => {
    const server = await boards.server();
    const gather = () => server.call('gather_ads', { ...gathered.args, fresh: true });
    await gather();
    const [ad] = createMixedAds('').slice(30);
    await boards.service.add([{ ...ad, media: [], headline: '<b>Run', ctaType: 'SIGN_UP' }]);
    await gather();
    const shown = await boards.show({ tool: 'search_ads', args: { filters: { query: 'offer 30' }, fresh: true } });
    await getButton(shown, '<b>Run').click();
    const changes = shown.board.locator('.changes li');
    await changes.first().waitFor();
    expect((await changes.allTextContents()).map((text) => text.replace(/^.*? · /, ''))).toEqual([
      `Headline${headlines[0]} 30 <b>Run`,
      'CTA typeSHOP_NOW SIGN_UP',
    ]);
    expect(createAdId(30)).toBe(ad?.id);
  });
});
