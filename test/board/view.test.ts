import { expect, test } from 'vitest';
import { violationsOn } from '../support/board/axe.ts';
import type { HostOptions, ShownBoard } from '../support/board/board-host.ts';
import { idOf, someAds } from '../support/board/board-service.ts';
import { boardTest, button, pick, reads, status } from '../support/board/board-test.ts';
import { inChromium } from '../support/board/in-chromium.ts';

const gathered: HostOptions = { tool: 'gather_ads', args: { maxAds: 90, maxCredits: 50 } };

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
    expect(await shown.board.locator('#subtitle').textContent()).toBe('90 ads as of 20 Nov 2026');
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
    for (const facet of ['State', 'Format', 'Call to action', 'Advertiser', 'Country', 'Started'])
      await shown.board.getByRole('group', { name: facet, exact: true }).waitFor();
    await chip(shown, 'Stridemoor').click();
    await reads(shown, '15 of 90 ads');
    expect(await chip(shown, 'Germany').textContent()).toBe('Germany15');
    await shown.board.getByRole('button', { name: 'Clear' }).click();
    await reads(shown, '90 ads');
    expect(shown.calls.filter(({ name }) => name !== 'board_pictures')).toHaveLength(calls);
  });

  test('offers no filter that leaves nothing, and a way back where a choice that is taken away does', async () => {
    const shown = await boards.show(gathered);
    await reads(shown, '90 ads');
    await chip(shown, 'United States').click();
    expect(await chip(shown, 'Running').count()).toBe(0);
    await chip(shown, 'Germany').click();
    await chip(shown, 'Running').click();
    await chip(shown, 'Germany').click();
    await reads(shown, '0 of 90 ads');
    await button(shown, 'Clear filters').click();
    await reads(shown, '90 ads');
  });

  test('bars of the charts filter, and dates and numbers are written as the host’s reader does', async () => {
    const shown = await boards.show({ ...gathered, context: { locale: 'de-DE' } });
    await reads(shown, '90 ads');
    expect(await shown.board.locator('#subtitle').textContent()).toContain('20.11.2026');
    await shown.board.locator('.shares').getByRole('button', { name: 'Video' }).click();
    await reads(shown, '30 of 90 ads');
    await shown.board.locator('.shares').getByRole('button', { name: 'Video' }).click();
    await reads(shown, '90 ads');
    await shown.board.locator('.columns .launch.filters').last().click();
    await reads(shown, String.raw`\d+ of 90 ads`);
  });

  test('shows labels, and filters by their values', async () => {
    const server = await boards.server;
    await server.call('gather_ads', { maxAds: 90, maxCredits: 50 });
    const values = ['question', 'price', '"><script>window.top.broken = true</script>'];
    const labels = Array.from({ length: 30 }, (_, at) => ({ adId: idOf(at), label: 'hook', value: values[at % 3] }));
    const angle = { adId: idOf(0), label: 'angle' };
    await server.call('label_ads', { labels: [...labels, angle] });
    const shown = await boards.show(gathered);
    await reads(shown, '90 ads');
    const hooks = shown.board.getByRole('group', { name: 'hook', exact: true });
    expect(await hooks.locator('.chip').count()).toBe(3);
    await chip(shown, 'question').click();
    await reads(shown, '10 of 90 ads');
    expect(await shown.board.locator('.card .labels').first().textContent()).toBe('hook: question');
    await chip(shown, 'angle').click();
    await reads(shown, '1 of 90 ads');
    await shown.board.locator('#list .open').first().click();
    expect(await shown.board.locator('dialog .labels span').allTextContents()).toEqual(['hook: question', 'angle']);
    await server.call('label_ads', { labels: [...labels, angle], remove: true });
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
    const context = { displayMode: 'inline', availableDisplayModes: ['inline', 'fullscreen'] };
    const shown = await boards.show({ ...gathered, context });
    await reads(shown, '90 ads');
    const heights = async () =>
      (await shown.messages('ui/notifications/size-changed')).map(({ params }) => Number(params.height));
    const background = () =>
      shown.board
        .locator('html')
        .evaluate((html) => html.ownerDocument.defaultView.getComputedStyle(html).backgroundColor);
    // Where it stands between messages, it leaves room for them.
    expect(await background()).toBe('rgba(0, 0, 0, 0)');
    await expect.poll(async () => (await heights()).at(-1)).toBe(500);
    await shown.board.getByRole('button', { name: 'Expand' }).click();
    await shown.board.getByRole('button', { name: 'Close' }).waitFor();
    expect(await background()).not.toBe('rgba(0, 0, 0, 0)');
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
    const violations = () => violationsOn(shown.board.locator('html'));
    expect(await violations()).toEqual([]);
    const overflow = await shown.board.locator('html').evaluate((html) => html.scrollWidth - html.clientWidth);
    expect(overflow).toBe(0);
    const small = () =>
      shown.board.locator('button:visible:not(.open), select:visible, .pick:visible').evaluateAll((all) =>
        all.flatMap((one) => {
          const box = one.getBoundingClientRect();
          return Math.min(box.width, box.height) < 44 ? [one.outerHTML] : [];
        }),
      );
    if (width === 360) expect(await small()).toEqual([]);
    await shown.board.locator('#list .open').first().click();
    await shown.board.getByRole('dialog').waitFor();
    expect(await violations()).toEqual([]);
    if (width === 360) expect(await small()).toEqual([]);
  });
});

const withoutMeta = (result: object) => ({ ...result, _meta: undefined });

inChromium('what can be done on the board', () => {
  const boards = boardTest(someAds(30));

  test('a question about selected ads goes to the conversation by their numbers, and their ids beside it', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 6 } });
    await reads(shown, '6 of 30 ads');
    await pick(shown, 'Offer 1').check();
    await pick(shown, 'Offer 4').check();
    await button(shown, 'Ask').click();
    await status(shown, '2 ads handed to the conversation.');
    await shown.board.getByLabel('Your question').fill('Which is older?');
    await shown.page.keyboard.press('Enter');
    await expect
      .poll(async () => (await shown.messages('ui/message')).map(({ params }) => params))
      .toEqual(
        ['Tell me about ads 2 and 5 of the board.', 'Which is older?\n\nThis is about ads 2 and 5 of the board.'].map(
          (text) => ({ role: 'user', content: [{ type: 'text', text }] }),
        ),
      );
    const contexts = () => shown.messages('ui/update-model-context');
    const known = `On the board, ad 2 is ${idOf(1)}; ad 5 is ${idOf(4)}.`;
    const said = (text: string) => ({ content: [{ type: 'text', text: `${known} ${text}` }] });
    expect((await contexts()).at(-1)?.params).toEqual(said('Selected: ads 2 and 5.'));
    await button(shown, 'Clear the selection').click();
    await expect.poll(async () => (await contexts()).at(-1)?.params).toEqual(said('No ad is selected on the board.'));
    expect(await shown.board.locator('.selected').count()).toBe(0);
  });

  test('without a context for the model the ids go into the message; without messages and links nothing asks or opens', async () => {
    const bare = await boards.show({ tool: 'search_ads', args: { limit: 6 }, capabilities: { message: {} } });
    await reads(bare, '6 of 30 ads');
    await pick(bare, 'Offer 1').check();
    await button(bare, 'Ask').click();
    await expect.poll(() => bare.messages('ui/message')).toHaveLength(1);
    const text = `Tell me about ad 2 of the board. Ids: ad 2 is ${idOf(1)}.`;
    expect((await bare.messages('ui/message'))[0]?.params.content).toEqual([{ type: 'text', text }]);
    expect(await bare.messages('ui/update-model-context')).toEqual([]);
    const silent = await boards.show({ tool: 'search_ads', args: { limit: 6 } });
    await reads(silent, '6 of 30 ads');
    await silent.page.evaluate("window.hushed = 'ui/update-model-context'");
    await pick(silent, 'Offer 1').check();
    await button(silent, 'Ask').click();
    await button(silent, 'Ask')
      .click({ force: true, timeout: 500 })
      .catch(() => {});
    await expect.poll(() => silent.messages('ui/message'), { timeout: 9000 }).toHaveLength(1);
    expect((await silent.messages('ui/message'))[0]?.params.content).toEqual([{ type: 'text', text }]);
    const mute = await boards.show({ tool: 'search_ads', args: { limit: 6 }, capabilities: {} });
    await reads(mute, '6 of 30 ads');
    await pick(mute, 'Offer 1').check();
    await button(mute, 'Save …').waitFor();
    await button(mute, 'Offer 1').click();
    await mute.board.getByRole('dialog').getByText('Its second line.').waitFor();
    expect(await mute.board.getByLabel('Your question').locator('visible=true').count()).toBe(0);
    expect(await button(mute, /^Ask|^Open |^Expand/).count()).toBe(0);
  });

  test('selected ads are saved to a collection of the member, unless that is undone first', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 6 } });
    await reads(shown, '6 of 30 ads');
    await pick(shown, 'Offer 1').check();
    await pick(shown, 'Offer 2').check();
    const { data } = await (await boards.service.start()).call('list_collections');
    const { name = '', id } = data.items[0] ?? {};
    const dialog = shown.board.getByRole('dialog');
    const saved = () => shown.calls.filter((call) => call.name === 'add_collection_item').map((call) => call.arguments);
    for (const [answer, outcome] of [
      ['Undo', 'Nothing was saved.'],
      ['Save now', '2 ads saved to Saved ads.'],
      ['Save now', '2 ads saved to Saved ads, all of them there already.'],
    ] as const) {
      await button(shown, 'Save …').click();
      await dialog.getByRole('button', { name }).waitFor();
      expect(await dialog.getByRole('button', { name: 'Saved pages' }).count()).toBe(0);
      await dialog.getByRole('button', { name }).click();
      await dialog.getByText('The board cannot take them out again').waitFor();
      await dialog.getByRole('button', { name: answer }).click();
      await status(shown, outcome);
      if (answer === 'Undo') expect(saved()).toEqual([]);
    }
    const ads = [idOf(1), idOf(2)].map((itemId) => ({ collectionId: id, itemType: 'ads', itemId }));
    expect(saved()).toEqual([...ads, ...ads]);
  });

  test('where the server only reads, nothing can be saved', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 6 } }, { readOnly: true });
    await reads(shown, '6 of 30 ads');
    await pick(shown, 'Offer 1').check();
    await button(shown, 'Ask').waitFor();
    expect(await button(shown, 'Save …').count()).toBe(0);
  });

  test('a landing page opens through the host, and its host is shown first', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 6 } });
    await reads(shown, '6 of 30 ads');
    await button(shown, 'Offer 3').click();
    await button(shown, 'Open shop.example ↗').click();
    await expect.poll(() => shown.messages('ui/open-link')).toHaveLength(1);
    const [{ params } = { params: {} }] = await shown.messages('ui/open-link');
    expect(params).toEqual({ url: 'https://shop.example/offer/3' });
  });

  test('what a host refuses is said in a word', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 6 } });
    await reads(shown, '6 of 30 ads');
    await shown.page.evaluate('window.refusing = { "ui/message": "Not now.", "ui/open-link": "Not allowed." }');
    await pick(shown, 'Offer 1').check();
    await button(shown, 'Ask').click();
    await status(shown, 'The conversation did not take the message: Not now.');
  });

  test('a call that was cancelled says so', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 6 } });
    await reads(shown, '6 of 30 ads');
    await shown.notify('ui/notifications/tool-cancelled', { reason: 'x' });
    await status(shown, 'The call was cancelled.');
  });

  test('where a host drops what a result says to the board, its data do', async () => {
    const shown = await boards.show({
      tool: 'search_ads',
      args: { limit: 6 },
      passOn: (result) => ('items' in Object(result.structuredContent) ? withoutMeta(result) : result),
    });
    await reads(shown, '6 of 30 ads');
    expect(shown.calls[0]).toMatchObject({ name: 'board_ads', arguments: { ids: [0, 1, 2, 3, 4, 5].map(idOf) } });
  });

  test('ads that the server keeps no longer are shown as the result lists them', async () => {
    const lost = idOf(3).replace('0', 'f');
    const shown = await boards.show({
      tool: 'search_ads',
      args: { limit: 6 },
      passOn: (result) => JSON.parse(JSON.stringify(result).replaceAll(idOf(3), lost)),
    });
    await reads(shown, '6 of 30 ads');
    expect(shown.calls[0]?.arguments.ids).toContain(lost);
    await pick(shown, 'Offer 3').check();
    expect(await shown.board.locator('.card', { hasText: 'Offer 3' }).textContent()).toContain(
      'First line of offer 3.',
    );
  });

  const withoutCalls = "window.refusing = { 'tools/call': 'Not now.' }";
  test.each([
    [
      'drops it from every result',
      { passOn: withoutMeta },
      /^The ads could not be read\. The host did not pass on the ads/,
    ],
    ['makes no calls', { passOn: withoutMeta, script: withoutCalls }, /Not now\.$/],
    ['makes no calls, and drops nothing', { script: withoutCalls }, /Not now\.$/],
  ])('where a host %s, the board shows what the result lists, or says why not', async (_, host, problem) => {
    const listed = await boards.show({ tool: 'search_ads', args: { limit: 6 }, ...host });
    await reads(listed, '6 of 30 ads');
    await expect.poll(() => listed.board.getByRole('status').textContent()).toBe('');
    await listed.board.locator('.card', { hasText: 'First line of offer 3.' }).locator('.track i').waitFor();
    expect(await button(listed, /^More ads/).count()).toBe(0);
    const bare = await boards.show({ tool: 'gather_ads', args: { maxAds: 6, maxCredits: 20 }, ...host });
    await bare.board.getByRole('alert').getByText(problem).waitFor();
    await button(bare, 'Try again').waitFor();
  });
});

inChromium('messages of many ads', () => {
  const expired = 'https://pictures.example/1.jpg?oe=65000000';
  const boards = boardTest((mediaUrl) =>
    someAds(60)(mediaUrl).map((ad, index) => ({
      ...ad,
      pageId: `page-${index % 4}`,
      ...(index % 4 === 1 && { cards: undefined, media: [{ type: 'THUMB', nr: 0, url: expired }] }),
    })),
  );
  const filters = { countries: ['US', 'DE'], pageId: [0, 1, 2, 3].map((page) => `page-${page}`), daysRunningFrom: 0 };

  test('have one card, opened to its ads, and what is asked and counted is about messages too', async () => {
    const shown = await boards.show({ ...gathered, args: { ...gathered.args, filters } });
    await reads(shown, '4 messages, 60 ads');
    const { board, page } = shown;
    expect(await board.locator('#title').textContent()).toBe(
      'Quiet Heron Sleep, Stridemoor and Copperquill in the United States and Germany',
    );
    expect(await board.locator('#about').textContent()).toBe('days running from 0 · as of 20 Nov 2026');
    const cards = board.locator('.card');
    expect(await cards.locator('.variants').allTextContents()).toEqual(Array(4).fill('×15 variants'));
    await chip(shown, 'Running').click();
    await reads(shown, '2 of 4 messages, 30 of 60 ads');
    await pick(shown, 'Offer 56').check();
    const context = async () => JSON.stringify((await shown.messages('ui/update-model-context')).at(-1)?.params);
    await expect.poll(context).toMatch(/ad \d is [\w-]{36}, one of 15 ads of variant [\w-]{36}\. Selected: ad \d\./);
    await cards.first().locator('.variants').focus();
    await page.keyboard.press('Enter');
    await reads(shown, '1 of 4 messages, 15 of 60 ads');
    expect(await cards.count()).toBe(15);
    expect(await board.locator(':focus').textContent()).toBe('‹ All 4 messages');
    await page.keyboard.press('Enter');
    await reads(shown, '2 of 4 messages, 30 of 60 ads');
    expect(await board.locator(':focus').getAttribute('class')).toBe('open');
    await chip(shown, 'Running').click();
    expect(await board.locator('.card.selected').count()).toBe(1);
    await board.locator('.card.selected input').uncheck();
    expect(await board.locator('#selection').isHidden()).toBe(true);
    await button(shown, 'Ads').click();
    await expect.poll(() => cards.count()).toBe(60);
    expect(await board.locator('.variants:visible').count()).toBe(0);
  });

  test('say why a picture is missing, on the card and in the drawer', async () => {
    const shown = await boards.show(gathered);
    const reason = 'No picture: its address expired on 12 Sept 2023.';
    const card = shown.board.locator('.card', { hasText: reason });
    await card.locator('.open').click();
    await shown.board.getByRole('dialog').getByText(reason).waitFor();
  });

  test.each([360, 760, 1100])(
    'months on the axes are named, and none is cut or covered, %d pixels wide',
    async (width) => {
      const shown = await boards.show({ ...gathered, width });
      await reads(shown, '4 messages, 60 ads');
      await button(shown, 'Timeline').click();
      for (const marks of ['#axis span', '.months span']) {
        const ticks = shown.board.locator(marks);
        expect(await ticks.first().textContent()).toMatch(/^\w{3,4} \d{4}$/);
        const edges = await ticks.evaluateAll((all) => all.map((tick) => tick.getBoundingClientRect()));
        for (const [index, { left, right }] of edges.entries()) {
          expect(left).toBeGreaterThanOrEqual(edges[index - 1]?.right ?? 0);
          expect(right).toBeLessThanOrEqual(width);
        }
      }
    },
  );

  test('a call that is never answered is told of, and can be made again', async () => {
    const impatient = 'const later = setTimeout; setTimeout = (run, ms) => later(run, ms === 120000 ? 1500 : ms);';
    const silent = () => new Promise<never>(() => {});
    const shown = await boards.show({ ...gathered, script: impatient, onCall: silent });
    await shown.board.getByRole('alert').getByText('The host has not answered for two minutes.').waitFor();
    await button(shown, 'Try again').waitFor();
  });
});

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
