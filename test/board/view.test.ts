import type { Locator } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import type { HostOptions, ShownBoard } from '../support/board/board-host.ts';
import { createAdId, createAds } from '../support/board/board-service.ts';
import {
  boardTest,
  closeBrowser,
  getButton,
  getCheckbox,
  getChip,
  readText,
  waitForAdCount,
  waitForStatus,
} from '../support/board/board-test.ts';
import { inChromium } from '../support/board/in-chromium.ts';

afterAll(closeBrowser);

const gathered: HostOptions = { tool: 'gather_ads', args: { maxAds: 90, maxCredits: 50 } };
const readTitles = ({ board }: ShownBoard) => board.locator('#list .open').allTextContents();
const readStyle = ({ board }: ShownBoard, property: string) =>
  board.locator('html').evaluate((html, name) => html.ownerDocument.defaultView.getComputedStyle(html)[name], property);

inChromium('The ad board in an MCP host', () => {
  const boards = boardTest(createAds(90));

  test('the ad board connects to its host and shows all ads with their pictures', async () => {
    const shown = await boards.show(gathered);
    await waitForAdCount(shown, '90 ads');
    const [first, second] = await shown.messages();
    expect(first).toMatchObject({
      method: 'ui/initialize',
      params: { protocolVersion: '2026-01-26', appInfo: { name: 'ad-library-board' } },
    });
    expect((await shown.messages()).map(({ method }) => method)).toContain('ui/notifications/initialized');
    expect(second?.method).not.toBe('tools/call');
    await shown.board.locator('.card img').first().waitFor();
    await expect
      .poll(() => shown.messages('ui/notifications/size-changed'))
      .toContainEqual(expect.objectContaining({ params: { width: 1180, height: 820 } }));
    expect(await readText(shown, '#subtitle')).toBe('90 ads as of 20 Nov 2026');
    expect(await readText(shown, '#part')).toBe('');
    expect(await readText(shown, '.card')).toContain('days');

    expect(await shown.ask('ping')).toEqual({});
    expect(await shown.ask('ui/resource-teardown')).toEqual({});
    expect(await shown.ask('toString')).toMatchObject({ code: -32601 });
    await shown.notify('ui/notifications/tool-cancelled', { reason: 'x' });
    await waitForStatus(shown, 'The call was cancelled.');
  });

  test("the ad board shows the ads of a collection under the collection's name", async () => {
    const server = await boards.server();
    await server.call('search_ads', { limit: 9 });
    const [{ id: collectionId, name = '' } = { id: '' }] = (await server.call('list_collections')).data.items;
    await server.call('add_collection_item', { collectionId, itemType: 'ads', itemId: createAdId(8) });
    const listed = await boards.show({ tool: 'list_collection_items', args: { collectionId, itemType: 'ads' } });
    await waitForAdCount(listed, '1 ad');
    await listed.board.locator('#title', { hasText: name }).waitFor();
    const pages = await boards.show({ tool: 'list_collection_items', args: { collectionId, itemType: 'pages' } });
    await pages.board.getByText('This list holds pages').waitFor();
  });

  test('if the server no longer stores the ads, the ad board says so and does not claim that no ads were found', async () => {
    const shown = await boards.show(
      {
        tool: 'search_ads',
        args: { filters: { query: 'offer' }, limit: 3 },
        modifyResult: (result) => JSON.parse(JSON.stringify(result).replace(/"ids":\[[^\]]*\]/, '"ids":["removed"]')),
      },
      { output: 'text' },
    );
    await waitForStatus(shown, 'The server no longer stores these ads. Ask your assistant to read them again.');
  });

  test('the ad board of an empty collection says that the collection contains no ads, and not that no ads were found', async () => {
    const account = { apiKey: boards.service.library.keys.create({ credits: 100 }).key };
    const server = await boards.server(account);
    const [{ id: collectionId } = { id: '' }] = (await server.call('list_collections')).data.items;
    const args = { collectionId, itemType: 'ads' };
    const shown = await boards.show({ tool: 'list_collection_items', args }, account);
    await waitForStatus(shown, 'The collection contains no ads.');
  });

  test.each([
    ['two search words', { split: [{ query: 'offer' }, { query: 'line' }] }, '“offer” or “line”'],
    ['running and ended ads', { split: [{ active: true }, { active: false }] }, 'Ads'],
    ['filters as JSON text', { filters: '{"query":"offer"}' }, '“offer”'],
    ['running ads, as text', { filters: { active: 'true' } }, 'Running ads'],
  ])('the title of the ad board describes the search (search: %s)', async (_, args, title) => {
    const shown = await boards.show({ tool: 'gather_ads', args: { ...args, maxCredits: 50 } });
    await waitForAdCount(shown, '.* ads');
    expect(await readText(shown, '#title')).toBe(title);
  });

  test('the ad board treats an argument that is null as missing, as the server does', async () => {
    const args = { filters: { query: 'zeppelin' }, collectionId: null, split: null, maxCredits: 50 };
    const shown = await boards.show({ tool: 'gather_ads', args });
    await waitForStatus(shown, 'Nothing was found: “zeppelin”.');
    expect(shown.calls.map(({ name }) => name)).toEqual(['board_ads']);
  });

  test('the title of the ad board is "Ads" and not "All ads" for a call with a cursor and without filters', async () => {
    const server = await boards.server();
    const { data } = await server.call('search_ads', { filters: { query: 'offer' }, limit: 10 });
    const shown = await boards.show({ tool: 'search_ads', args: { cursor: data.cursor } });
    await waitForAdCount(shown, '.* ads');
    expect(await readText(shown, '#title')).toBe('Ads');
  });

  test('clicking a filter or a chart bar on the ad board filters the ads without a tool call', async () => {
    const shown = await boards.show({ ...gathered, context: { locale: 'de-DE' } });
    await waitForAdCount(shown, '90 ads');
    expect(await readText(shown, '#subtitle')).toContain('20.11.2026');
    const listCalledTools = () => shown.calls.filter(({ name }) => name !== 'board_pictures').length;
    const calls = listCalledTools();
    const steps: [click: Locator, ads: string][] = [
      [getChip(shown, 'Running'), '45 of 90 ads'],
      [getChip(shown, 'Image'), '15 of 90 ads'],
      [getChip(shown, 'Video'), '30 of 90 ads'],
      [getButton(shown, 'Clear'), '90 ads'],
      [getChip(shown, 'United States'), '45 of 90 ads'],
      // Two filters may match no ad. The board then offers to clear them.
      [getChip(shown, 'Germany'), '90 ads'],
      [getChip(shown, 'Running'), '45 of 90 ads'],
      [getChip(shown, 'Germany'), '0 of 90 ads'],
      [getButton(shown, 'Clear filters'), '90 ads'],
      [shown.board.locator('.shares').getByRole('button', { name: 'Video' }), '30 of 90 ads'],
      [shown.board.locator('.shares').getByRole('button', { name: 'Video' }), '90 ads'],
    ];
    for (const [click, ads] of steps) {
      await click.click();
      await waitForAdCount(shown, ads);
      if (click === steps[4]?.[0]) expect(await getChip(shown, 'Running').count()).toBe(0);
    }
    expect(listCalledTools()).toBe(calls);
  });

  test('the ad board shows the labels of ads and can filter the ads by label', async () => {
    const server = await boards.server();
    await server.call('gather_ads', gathered.args);
    const values = ['question', 'price', '"><script>window.top.broken = true</script>'];
    const hooks = Array.from({ length: 30 }, (_, at) => ({
      adId: createAdId(at),
      label: 'hook',
      value: values[at % 3],
    }));
    const labels = [...hooks, { adId: createAdId(0), label: 'angle' }];
    await server.call('label_ads', { labels });
    const shown = await boards.show(gathered);
    await waitForAdCount(shown, '90 ads');
    const group = shown.board.getByRole('group', { name: 'hook', exact: true });
    expect(await group.locator('.chip').count()).toBe(3);
    await getChip(shown, 'question').click();
    await waitForAdCount(shown, '10 of 90 ads');
    expect(await readText(shown, '.card .labels')).toBe('hook: question');
    await getChip(shown, 'angle').click();
    await waitForAdCount(shown, '1 of 90 ads');
    await shown.board.locator('#list .open').first().click();
    expect(await shown.board.locator('dialog .labels span').allTextContents()).toEqual(['hook: question', 'angle']);
    await server.call('label_ads', { labels, remove: true });
  });

  test('the ad board sorts ads and renders more ad cards when the user scrolls', async () => {
    const shown = await boards.show(gathered);
    const { board, page } = shown;
    await waitForAdCount(shown, '90 ads');
    expect((await readTitles(shown))[0]).toBe('Offer 88');
    await board.getByLabel('Sort').selectOption('Copies of the ad');
    expect((await readTitles(shown))[0]).toBe('Offer 89');
    await board.getByLabel('Sort').selectOption('As listed');
    expect((await readTitles(shown))[0]).toBe('Offer 0');
    await page.mouse.move(500, 500);
    await expect
      .poll(async () => {
        await page.mouse.wheel(0, 4000);
        return board.locator('.card').count();
      })
      .toBe(90);
  });

  test('a user can open and close an ad using only the keyboard', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 6 } });
    await waitForAdCount(shown, '6 of 90 ads');
    const { board, page } = shown;
    await getButton(shown, 'Offer 2').focus();
    await page.keyboard.press('Enter');
    const drawer = board.getByRole('dialog', { name: 'Offer 2' });
    await drawer.waitFor();
    expect(await drawer.locator('.copy').first().textContent()).toBe('First line of offer 2.\nIts second line.');
    expect(await drawer.locator('.ad-cards b').allTextContents()).toEqual([1, 2, 3].map((card) => `Card ${card} of 2`));
    await drawer.locator('dl').scrollIntoViewIfNeeded();
    await drawer.locator('.ad-cards img').nth(2).waitFor();
    expect(await drawer.locator('dl').textContent()).toContain('Started13 Nov 2026');
    await page.keyboard.press('ArrowRight');
    await board.getByRole('dialog', { name: 'Offer 3' }).waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => board.getByRole('dialog').count()).toBe(0);
    expect(await readText(shown, ':focus')).toBe('Offer 2');
  });

  test("the ad board follows the host's theme and fills the window in full screen", async () => {
    const variables = { '--color-background-primary': 'light-dark(rgb(250, 240, 230), rgb(1, 2, 3))' };
    const modes = { displayMode: 'inline', availableDisplayModes: ['inline', 'fullscreen'] };
    const shown = await boards.show({ ...gathered, context: { theme: 'dark', styles: { variables }, ...modes } });
    await waitForAdCount(shown, '90 ads');
    // Inline, the board has a transparent background and is 500 pixels high.
    expect(await readStyle(shown, 'backgroundColor')).toBe('rgba(0, 0, 0, 0)');
    const readHeights = async () =>
      (await shown.messages('ui/notifications/size-changed')).map(({ params }) => params.height);
    await expect.poll(async () => (await readHeights()).at(-1)).toBe(500);
    await getButton(shown, 'Expand').click();
    await getButton(shown, 'Close').waitFor();
    const modeRequests = await shown.messages('ui/request-display-mode');
    expect(modeRequests.map(({ params }) => params)).toEqual([{ mode: 'fullscreen' }]);
    expect(await readStyle(shown, 'backgroundColor')).toBe('rgb(1, 2, 3)');
    await shown.notify('ui/notifications/host-context-changed', { theme: 'light' });
    await expect.poll(() => readStyle(shown, 'backgroundColor')).toBe('rgb(250, 240, 230)');
  });

  test('the ad board shows an error and a retry button if a call gets no response', async () => {
    const script = `const later = setTimeout;
      let isFirst = true;
      setTimeout = (run, ms) => {
        const isPatience = ms === 120000 && isFirst;
        if (isPatience) isFirst = false;
        return later(run, isPatience ? 100 : ms);
      };`;
    let calls = 0;
    const interceptCall = () => (++calls === 1 ? new Promise(() => {}) : undefined);
    const shown = await boards.show({ ...gathered, script, beforeCall: interceptCall });
    await shown.board.getByRole('alert').getByText('The host has not answered for two minutes.').waitFor();
    await getButton(shown, 'Try again').click();
    await waitForAdCount(shown, '90 ads');
    expect(await readText(shown, '#problem')).toBe('');
  });
});

inChromium('Text variants on the ad board', () => {
  const expired = 'https://pictures.example/1.jpg?oe=65000000';
  const boards = boardTest((mediaUrl) =>
    createAds(60)(mediaUrl).map((ad, index) => ({
      ...ad,
      pageId: `page-${index % 4}`,
      ...(index % 4 === 1 && { cards: undefined, media: [{ type: 'THUMB', nr: 0, url: expired }] }),
    })),
  );
  const filters = { countries: ['US', 'DE'], pageId: [0, 1, 2, 3].map((page) => `page-${page}`), daysRunningFrom: 0 };

  test('ads with the same text share one card on the ad board', async () => {
    const shown = await boards.show({ ...gathered, args: { ...gathered.args, filters } });
    await waitForAdCount(shown, '4 messages, 60 ads');
    const { board, page } = shown;
    expect(await readText(shown, '#title')).toBe('4 advertisers in the United States and Germany');
    expect(await readText(shown, '#about')).toBe('days running from 0 · as of 20 Nov 2026');
    const cards = board.locator('.card');
    expect(await cards.locator('.variants').allTextContents()).toEqual(Array(4).fill('×15 variants'));
    await getChip(shown, 'Running').click();
    await waitForAdCount(shown, '2 of 4 messages, 30 of 60 ads');
    await getCheckbox(shown, 'Offer 56').check();
    const getHostContext = async () => JSON.stringify((await shown.messages('ui/update-model-context')).at(-1)?.params);
    await expect
      .poll(getHostContext)
      .toMatch(/ad \d is [\w-]{36}, one of 15 ads of variant [\w-]{36}\. Selected: ad \d\./);
    await cards.first().locator('.variants').focus();
    await page.keyboard.press('Enter');
    await waitForAdCount(shown, '1 of 4 messages, 15 of 60 ads');
    expect(await cards.count()).toBe(15);
    expect(await readText(shown, ':focus')).toBe('‹ All 4 messages');
    await page.keyboard.press('Enter');
    await waitForAdCount(shown, '2 of 4 messages, 30 of 60 ads');
    expect(await board.locator(':focus').getAttribute('class')).toBe('open');
    await getChip(shown, 'Running').click();
    expect(await board.locator('.card.selected').count()).toBe(1);
    await board.locator('.card.selected input').uncheck();
    expect(await board.locator('#selection').isHidden()).toBe(true);

    const reason = 'No picture: its address expired on 12 Sept 2023';
    await board.locator('.card', { hasText: reason }).locator('.open').click();
    await board.getByRole('dialog').getByText(reason).first().waitFor();
    await page.keyboard.press('Escape');
    await getButton(shown, 'Ads').click();
    await expect.poll(() => cards.count()).toBeGreaterThan(4);
    expect(await board.locator('.variants:visible').count()).toBe(0);
  });
});

inChromium('The ad board with two advertiser pages of the same name', () => {
  const pageIds = ['4c4230ea-cf3a-4122-a147-6e56a2d015ca', '77'];
  const boards = boardTest((mediaUrl) =>
    createAds(30)(mediaUrl).map((ad, index) => ({
      ...ad,
      pageId: index < 10 ? pageIds[index % 2] : 'other',
      page: { pageName: index < 10 ? 'Boreal' : 'Stridemoor' },
    })),
  );

  test('the ad board treats two advertiser pages with the same name separately and shows their page ids', async () => {
    const filters = { pageId: pageIds };
    const shown = await boards.show({ tool: 'gather_ads', args: { filters, maxAds: 30, maxCredits: 50 } });
    await waitForAdCount(shown, '.*10 ads');
    expect(await readText(shown, '#title')).toBe('Boreal (page …a2d015ca) and Boreal (page 77)');
    const searched = await boards.show(gathered);
    await waitForAdCount(searched, '.*30 ads');
    await getButton(searched, 'Ads').click();
    const group = searched.board.getByRole('group', { name: 'Advertiser', exact: true });
    expect(await group.locator('.chip').allTextContents()).toEqual([
      'Stridemoor20',
      'Borealpage …a2d015ca5',
      'Borealpage 775',
    ]);
    await group.getByRole('button', { name: 'page 77' }).click();
    await waitForAdCount(searched, '.*5 of 30 ads');
    await group.getByRole('button', { name: 'page 77' }).click();
    await searched.board.getByLabel('Sort').selectOption('Advertiser');
    const readPage = async (index: number) => {
      await searched.board.locator('#list .open').nth(index).click();
      const facts = await searched.board.getByRole('dialog').locator('dl').textContent();
      await searched.page.keyboard.press('Escape');
      return facts?.match(/Page id(.*)$/)?.[1];
    };
    expect([await readPage(0), await readPage(4), await readPage(5)]).toEqual([
      '4c4230ea-cf3a-4122-a147-6e56a2d015ca',
      '4c4230ea-cf3a-4122-a147-6e56a2d015ca',
      '77',
    ]);
  });
});

inChromium('The ad board with few ads of each text', () => {
  const boards = boardTest((mediaUrl) =>
    createAds(12)(mediaUrl).map((ad, index) => ({ ...ad, pageId: `page-${index % 3}` })),
  );

  test('the user can clear the filters of an inline ad board that shows only a few ads', async () => {
    const context = { displayMode: 'inline', availableDisplayModes: ['inline', 'fullscreen'] };
    const shown = await boards.show({ ...gathered, width: 360, height: 500, context });
    await waitForAdCount(shown, '3 messages, 12 ads');
    await getButton(shown, 'Filters').click();
    await getChip(shown, 'Running').click();
    await waitForAdCount(shown, '3 messages, 6 of 12 ads');
    await getButton(shown, 'Filters · 1').click();
    await shown.board.locator('.variants').first().click();
    await waitForAdCount(shown, '1 of 3 messages, 2 of 12 ads');
    await getButton(shown, 'Filters · 1').click();
    await getButton(shown, 'Clear').click();
    await waitForAdCount(shown, '1 of 3 messages, 4 of 12 ads');
    expect(await getButton(shown, /^Filters/).count()).toBe(0);
  });
});

inChromium('The ad board with ads of several ad libraries', () => {
  const libraries = ['meta', 'google', 'linkedin'];
  const boards = boardTest((mediaUrl) =>
    createAds(30)(mediaUrl).map((ad, index) => ({ ...ad, adLibrary: libraries[index % 3] })),
  );

  test('the filter for ad libraries on the ad board shows only the ads of the selected library', async () => {
    const shown = await boards.show({ tool: 'gather_ads', args: { maxAds: 30, maxCredits: 50 } });
    await waitForAdCount(shown, '30 ads');
    await getChip(shown, 'LinkedIn').click();
    await waitForAdCount(shown, '10 of 30 ads');
    expect(await readTitles(shown)).toContain('Offer 2');
    expect(await readTitles(shown)).not.toContain('Offer 0');
    await getChip(shown, 'Google').click();
    await waitForAdCount(shown, '20 of 30 ads');
  });
});
