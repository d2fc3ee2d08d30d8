import { expect, test } from 'vitest';
import type { ShownBoard } from '../support/board/board-host.ts';
import { idOf, someAds } from '../support/board/board-service.ts';
import { boardTest } from '../support/board/board-test.ts';
import { inChromium } from '../support/board/in-chromium.ts';

const button = ({ board }: ShownBoard, name: string | RegExp) => board.getByRole('button', { name, exact: true });
const status = ({ board }: ShownBoard, text: string | RegExp) => board.getByRole('status').getByText(text).waitFor();
const reads = ({ board }: ShownBoard, title: string) =>
  board.locator('#title', { hasText: new RegExp(`^${title}$`) }).waitFor();
const withoutMeta = (result: object) => ({ ...result, _meta: undefined });

inChromium('what can be done on the board', () => {
  const boards = boardTest(someAds(30));

  test('selected ads go to the conversation by their ids alone', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 6 } });
    await reads(shown, '6 of 30 ads');
    await shown.board.getByLabel('Select: Offer 1').check();
    await shown.board.getByLabel('Select: Offer 4').check();
    await button(shown, 'Ask about them').click();
    await status(shown, '2 ads handed to the conversation.');
    const ids = `${idOf(1)}, ${idOf(4)}`;
    const [message] = await shown.messages('ui/message');
    expect(message?.params).toEqual({
      role: 'user',
      content: [{ type: 'text', text: `Tell me about these 2 ads from the board: ${ids}` }],
    });
    const contexts = await shown.messages('ui/update-model-context');
    expect(contexts.at(-1)?.params).toEqual({ content: [{ type: 'text', text: `Selected on the board: ${ids}` }] });
    await button(shown, 'Clear the selection').click();
    expect(await shown.board.locator('.selected').count()).toBe(0);
  });

  test('selected ads are saved to a collection of the member', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 6 } });
    await reads(shown, '6 of 30 ads');
    await shown.board.getByLabel('Select: Offer 1').check();
    await shown.board.getByLabel('Select: Offer 2').check();
    const { data } = await (await boards.service.start()).call('list_collections');
    const { name = '', id } = data.items[0] ?? {};
    for (const outcome of ['2 ads saved.', '2 ads saved, all of them there already.']) {
      await button(shown, 'Save …').click();
      await shown.board.getByRole('dialog').getByRole('button', { name }).click();
      await status(shown, outcome);
    }
    const saved = shown.calls.filter((call) => call.name === 'add_collection_item').map((call) => call.arguments);
    expect(saved.slice(0, 2)).toEqual([
      { collectionId: id, itemType: 'ads', itemId: idOf(1) },
      { collectionId: id, itemType: 'ads', itemId: idOf(2) },
    ]);
  });

  test('where the server only reads, nothing can be saved', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 6 } }, { readOnly: true });
    await reads(shown, '6 of 30 ads');
    await shown.board.getByLabel('Select: Offer 1').check();
    await button(shown, 'Ask about them').waitFor();
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
    await shown.board.getByLabel('Select: Offer 1').check();
    await button(shown, 'Ask about them').click();
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
    await shown.board.getByLabel('Select: Offer 3').check();
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
