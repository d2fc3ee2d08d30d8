import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import type { ShownBoard } from '../support/board/board-host.ts';
import { createAdId, createAds } from '../support/board/board-service.ts';
import {
  boardTest,
  closeBrowser,
  getButton,
  getCheckbox,
  waitForAdCount,
  waitForStatus,
} from '../support/board/board-test.ts';
import { inChromium } from '../support/board/in-chromium.ts';
import { deriveUuid } from '../support/derive-uuid.ts';

afterAll(closeBrowser);

const searchOfSixAds = { tool: 'search_ads', args: { limit: 6 } };
/** Returns a script that changes the delays of all timers. The expression computes a new delay from `ms`, the delay. */
const changeTimerDelays = (delayExpression: string) =>
  `const later = setTimeout; setTimeout = (run, ms, ...args) => later(run, ${delayExpression}, ...args);`;
/**
 * Shortens the delays of the retries (2 to 16 s), so that all retries take less than a second. Keeps the time limit of
 * calls (120 s).
 */
const shortenRetryDelays = changeTimerDelays('ms < 60_000 ? ms / 100 : ms');
const removeMeta = (result: object) => ({ ...result, _meta: undefined });
const removeMetaOfItemResults = (result: Record<string, unknown>) =>
  'items' in Object(result.structuredContent) ? removeMeta(result) : result;
const listPaidCalls = ({ calls }: ShownBoard) => calls.filter(({ name }) => name === 'search_ads');

inChromium('Actions on the ad board', () => {
  const boards = boardTest(createAds(30));

  test('a question about ads selected on the ad board names the ads by number and sends their ids as context for the model', async () => {
    const shown = await boards.show(searchOfSixAds);
    await waitForAdCount(shown, '6 of 30 ads');
    await getCheckbox(shown, 'Offer 1').check();
    await getCheckbox(shown, 'Offer 4').check();
    await getButton(shown, 'Ask').click();
    await waitForStatus(shown, '2 ads handed to the conversation.');
    await shown.board.getByLabel('Your question').fill('Which is older?');
    await shown.page.keyboard.press('Enter');
    await expect
      .poll(async () => (await shown.messages('ui/message')).map(({ params }) => params))
      .toEqual(
        ['Tell me about ads 2 and 5 of the board.', 'Which is older?\n\nThis is about ads 2 and 5 of the board.'].map(
          (text) => ({ role: 'user', content: [{ type: 'text', text }] }),
        ),
      );
    const listModelContexts = () => shown.messages('ui/update-model-context');
    const knownIds = `On the board, ad 2 is ${createAdId(1)}; ad 5 is ${createAdId(4)}.`;
    const createModelContext = (text: string) => ({ content: [{ type: 'text', text: `${knownIds} ${text}` }] });
    expect((await listModelContexts()).at(-1)?.params).toEqual(createModelContext('Selected: ads 2 and 5.'));
    await getButton(shown, /^Clear the selection/).click();
    await expect
      .poll(async () => (await listModelContexts()).at(-1)?.params)
      .toEqual(createModelContext('No ad is selected on the board.'));
    expect(await shown.board.locator('.selected').count()).toBe(0);
  });

  test.each([
    ['takes no context for the model', { capabilities: { message: {} } }],
    ['never responds to the context', { script: changeTimerDelays('ms / 10') }],
  ])(
    'a question about ads selected on the ad board contains their ids if the ids cannot be sent as context (host: %s)',
    async (_, host) => {
      const shown = await boards.show({ ...searchOfSixAds, ...host });
      await waitForAdCount(shown, '6 of 30 ads');
      await shown.ignore('ui/update-model-context');
      await getCheckbox(shown, 'Offer 1').check();
      await getButton(shown, 'Ask').evaluate((ask) => {
        const { KeyboardEvent } = ask.ownerDocument.defaultView;
        ask.click();
        ask.previousElementSibling.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
      });
      await waitForStatus(shown, '1 ad handed to the conversation.');
      const text = `Tell me about ad 2 of the board. Ids: ad 2 is ${createAdId(1)}.`;
      const messages = await shown.messages('ui/message');
      expect(messages.map(({ params }) => params.content)).toEqual([[{ type: 'text', text }]]);
      const contexts = await shown.messages('ui/update-model-context');
      expect(contexts.length > 0).toBe('script' in host);
    },
  );

  test('the ad board hides questions, links and full screen if the host does not support them', async () => {
    const shown = await boards.show({ ...searchOfSixAds, capabilities: {} });
    await waitForAdCount(shown, '6 of 30 ads');
    await getCheckbox(shown, 'Offer 1').check();
    await getButton(shown, 'Save …').waitFor();
    await getButton(shown, 'Offer 1').click();
    await shown.board.getByRole('dialog').getByText('Its second line.').waitFor();
    expect(await shown.board.getByLabel('Your question').locator('visible=true').count()).toBe(0);
    expect(await getButton(shown, /^Ask|^Open |^Expand/).count()).toBe(0);
  });

  test('the ad board saves the selected ads to a collection if the user does not click Undo', async () => {
    // Slow down the timers, so that the undo period does not end early on a busy machine.
    const shown = await boards.show({ ...searchOfSixAds, script: changeTimerDelays('ms * 20') });
    await waitForAdCount(shown, '6 of 30 ads');
    await getCheckbox(shown, 'Offer 1').check();
    await getCheckbox(shown, 'Offer 2').check();
    const { data } = await (await boards.server()).call('list_collections');
    const { name = '', id } = data.items[0] ?? {};
    const dialog = shown.board.getByRole('dialog');
    const listSaves = () =>
      shown.calls.filter((call) => call.name === 'add_collection_item').map((call) => call.arguments);
    for (const [answer, outcome] of [
      ['Undo', 'Nothing was saved.'],
      ['Save now', '2 ads saved to Saved ads.'],
      ['Save now', '2 ads saved to Saved ads, all of them there already.'],
    ] as const) {
      await getButton(shown, 'Save …').click();
      await dialog.getByRole('button', { name }).waitFor();
      expect(await dialog.getByRole('button', { name: 'Saved pages' }).count()).toBe(0);
      await dialog.getByRole('button', { name }).click();
      await dialog.getByText('The board cannot take them out again').waitFor();
      await dialog.getByRole('button', { name: answer }).click();
      await waitForStatus(shown, outcome);
      if (answer === 'Undo') expect(listSaves()).toEqual([]);
    }
    const ads = [createAdId(1), createAdId(2)].map((itemId) => ({ collectionId: id, itemType: 'ads', itemId }));
    expect(listSaves()).toEqual([...ads, ...ads]);
  });

  test('the details and the comparison of ads on the ad board say if the server no longer stores the ads', async () => {
    let areAdsRemoved = true;
    const requestOtherAds = ({ arguments: args }: { arguments: Record<string, unknown> }) => {
      if (args.detail === 'full' && areAdsRemoved) args.ids = [deriveUuid('removed ad')];
    };
    const shown = await boards.show({ ...searchOfSixAds, beforeCall: requestOtherAds });
    await waitForAdCount(shown, '6 of 30 ads');
    const dialog = shown.board.getByRole('dialog');
    const alert = dialog.getByRole('alert').getByText('The server no longer stores the other details');
    await getButton(shown, 'Offer 1').click();
    await alert.waitFor();
    await shown.page.keyboard.press('Escape');
    await getCheckbox(shown, 'Offer 0').check();
    await getCheckbox(shown, 'Offer 3').check();
    await getButton(shown, 'Compare').click();
    await alert.waitFor();
    areAdsRemoved = false;
    await dialog.getByRole('button', { name: 'Try again' }).click();
    await dialog.getByText('Its second line.').first().waitFor();
    expect(await alert.count()).toBe(0);
  });

  test('a double click on a collection does not also click the button of the ad board that saves the ads at once', async () => {
    const addCollections = (result: Record<string, unknown>) => {
      const boardData = Object(result._meta)['ad-library/board'];
      const [collection] = boardData?.collections ?? [];
      if (collection)
        boardData.collections = [1, 2, 3].map((index) => ({ ...collection, name: `Collection ${index}` }));
      return result;
    };
    const script = changeTimerDelays('ms * 20');
    const shown = await boards.show({ ...searchOfSixAds, modifyResult: addCollections, script });
    await waitForAdCount(shown, '6 of 30 ads');
    await getCheckbox(shown, 'Offer 1').check();
    const chooseCollection = async (name: string) => {
      await getButton(shown, 'Save …').click();
      return shown.board.getByRole('dialog').getByRole('button', { name });
    };
    await (await chooseCollection('Collection 3')).click();
    const { x = 0, y = 0, width = 0 } = (await getButton(shown, 'Save now').boundingBox()) ?? {};
    await getButton(shown, 'Undo').click();
    await waitForStatus(shown, 'Nothing was saved.');
    await (await chooseCollection('Collection 3')).waitFor();
    await shown.page.mouse.dblclick(x + width / 2, y + 5);
    await shown.board.getByText('The board cannot take them out again').waitFor();
    expect(await getButton(shown, 'Undo').count()).toBe(1);
    expect(shown.calls.map(({ name }) => name)).not.toContain('add_collection_item');
    await getButton(shown, 'Undo').click();
  });

  test('the ad board opens a landing page through the host and shows a message if the host refuses to open it', async () => {
    const shown = await boards.show(searchOfSixAds, { readOnly: true });
    await waitForAdCount(shown, '6 of 30 ads');
    await shown.refuse('ui/message', 'Not now.');
    await getCheckbox(shown, 'Offer 1').check();
    await getButton(shown, 'Ask').click();
    await waitForStatus(shown, 'The conversation did not take the message: Not now.');
    expect(await getButton(shown, 'Save …').count()).toBe(0);
    await getButton(shown, 'Offer 3').click();
    await getButton(shown, 'Open shop.example ↗').click();
    await expect.poll(() => shown.messages('ui/open-link')).toHaveLength(1);
    expect((await shown.messages('ui/open-link'))[0]?.params).toEqual({ url: 'https://shop.example/offer/3' });
    await shown.refuse('ui/open-link', 'Not allowed.');
    await getButton(shown, 'Open shop.example ↗').click();
    await expect
      .poll(() => shown.board.locator('#status').textContent())
      .toBe('shop.example was not opened: Not allowed.');
  });

  test('the ad board still shows listed ads that the server no longer stores', async () => {
    const evictedId = createAdId(3).replace('0', 'f');
    const shown = await boards.show({
      ...searchOfSixAds,
      modifyResult: (result) => JSON.parse(JSON.stringify(result).replaceAll(createAdId(3), evictedId)),
    });
    await waitForAdCount(shown, '6 of 30 ads');
    expect(shown.calls[0]?.arguments.ids).toContain(evictedId);
    await getCheckbox(shown, 'Offer 3').check();
    const card = shown.board.locator('.card', { hasText: 'Offer 3' });
    expect(await card.textContent()).toContain('First line of offer 3.');
  });

  const interceptCall = () => {
    throw new Error('Not now.');
  };
  const notPassedOn = 'The ads could not be read. The host did not pass on the ads';
  test.each([
    ['removes the board data from search results only', { modifyResult: removeMetaOfItemResults }, ''],
    ['removes the board data from every result', { modifyResult: removeMeta }, notPassedOn],
    ['makes no calls', { modifyResult: removeMeta, beforeCall: interceptCall }, 'Not now.'],
    ['makes no calls but keeps the board data', { beforeCall: interceptCall }, 'Not now.'],
  ])(
    'the ad board shows the ads of a result, or else an error message, in a host that %s',
    async (_, host, problem) => {
      const listed = await boards.show({ ...searchOfSixAds, ...host });
      await waitForAdCount(listed, '6 of 30 ads');
      expect(listed.calls[0]).toMatchObject({
        name: 'board_ads',
        arguments: { ids: [0, 1, 2, 3, 4, 5].map(createAdId) },
      });
      if (problem === '') return;
      await expect.poll(() => listed.board.getByRole('status').textContent()).toBe('');
      await listed.board.locator('.card', { hasText: 'First line of offer 3.' }).locator('.track i').waitFor();
      expect(await getButton(listed, /^More ads/).count()).toBe(0);
      const boardWithoutAds = await boards.show({ tool: 'gather_ads', args: { maxAds: 6, maxCredits: 20 }, ...host });
      await boardWithoutAds.board.getByRole('alert').getByText(problem).waitFor();
      await getButton(boardWithoutAds, 'Try again').waitFor();
    },
  );

  const boardResult = (data: object) => ({ _meta: { 'ad-library/board': data } });
  const errorResult = (meta: object) => ({
    isError: true,
    content: [{ type: 'text', text: 'The call failed.' }],
    _meta: meta,
  });
  const temporaryError = errorResult({ 'ad-library/error': { retryable: true } });
  const permanentError = errorResult({ 'ad-library/error': { retryable: false } });
  const errorOfHost = errorResult({});
  const refuseCall = (): never => {
    throw new Error('The user did not allow this call.');
  };
  const returnLatePictures = (ids: string[]) =>
    boardResult({ pictures: ids.map((id) => ({ id, reason: 'no time', isLate: true })), left: [] });
  const returnNoPictures = (ids: string[]) => boardResult({ pictures: [], left: ids });

  type FailRequest = (ids: string[]) => Record<string, unknown>;
  const temporaryProblems: [string, FailRequest][] = [
    ['an error that may pass', () => temporaryError],
    ['late pictures', returnLatePictures],
    ['no pictures', returnNoPictures],
  ];

  /**
   * Shows six ads on a board whose first `failureCount` requests for pictures fail.
   * @param failRequest returns the result of a failing request
   */
  const showWithoutPictures = async (failRequest: FailRequest, script: string, failureCount = Infinity) => {
    const requestedIds: string[] = [];
    let responseCount = 0;
    const shown = await boards.show({
      ...searchOfSixAds,
      script,
      beforeCall: ({ name, arguments: { ids } }) => {
        if (name === 'board_pictures') requestedIds.push(...(ids as string[]));
      },
      modifyResult: (result) => {
        const { pictures } = Object(Object(result._meta)['ad-library/board']) as { pictures?: { id: string }[] };
        if (!pictures || ++responseCount > failureCount) return result;
        return failRequest(pictures.map(({ id }) => id));
      },
    });
    await waitForAdCount(shown, '6 of 30 ads');
    /** Returns a list with the number of requests for each picture. */
    const countRequests = () =>
      [...new Set(requestedIds)].map((id) => requestedIds.filter((requestedId) => requestedId === id).length);
    return { shown, countRequests, countResponses: () => responseCount };
  };

  test.each(temporaryProblems)(
    'the ad board requests missing pictures again while their ads stay visible (the first response: %s)',
    async (_, failRequest) => {
      const { shown, countRequests } = await showWithoutPictures(failRequest, shortenRetryDelays, 1);
      await shown.board.locator('.card img').nth(5).waitFor();
      expect(Math.max(...countRequests())).toBe(2);
    },
  );

  test.each<[string, FailRequest]>([['a refusal of the host', refuseCall], ...temporaryProblems])(
    'the ad board requests missing pictures again when their ads become visible again (the first response: %s)',
    async (_, failRequest) => {
      // With these longer delays, the board makes no retries while the test runs.
      const script = changeTimerDelays('ms * 20');
      const { shown, countRequests, countResponses } = await showWithoutPictures(failRequest, script, 1);
      await expect.poll(countResponses).toBeGreaterThan(0);
      await getButton(shown, 'Timeline').click();
      await getButton(shown, 'Cards').click();
      await shown.board.locator('.card img').nth(5).waitFor();
      expect(Math.max(...countRequests())).toBe(2);
    },
  );

  /** Shows a board on which all requests for pictures fail, and checks how often the board requests each picture. */
  const expectRequestCount = async (failRequest: FailRequest, expectedCount: number) => {
    const { countRequests } = await showWithoutPictures(failRequest, shortenRetryDelays);
    const expectedCounts = Array(6).fill(expectedCount);
    await expect.poll(countRequests).toEqual(expectedCounts);
    // On a machine that is not busy, another request would come after a third of a second.
    await delay(1000);
    expect(countRequests()).toEqual(expectedCounts);
  };

  test.each(temporaryProblems)(
    'the ad board requests missing pictures four more times while their ads stay visible (all responses: %s)',
    (_, failRequest) => expectRequestCount(failRequest, 5),
  );

  test.each<[string, FailRequest]>([
    ['the server says that a retry would fail', () => permanentError],
    ['the host returns an error', () => errorOfHost],
    ['the host refuses the request', refuseCall],
  ])('the ad board does not repeat a request for visible pictures if %s', (_, failRequest) =>
    expectRequestCount(failRequest, 1),
  );

  test('the ad board loads more ads only after the user has confirmed the price with a second click', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 12, fresh: true } });
    await waitForAdCount(shown, '12 of 30 ads');
    const more = getButton(shown, 'More ads for 2 credits …');
    await more.focus();
    for (let press = 0; press < 5; press++) await shown.page.keyboard.down('Enter');
    await shown.page.keyboard.up('Enter');
    await getButton(shown, 'Search for 2 credits').waitFor();
    expect(await shown.board.locator(':focus').textContent()).toBe('Cancel');
    await shown.page.keyboard.press('Enter');
    expect(await shown.board.locator(':focus').textContent()).toMatch(/^More ads/);
    await more.dblclick();
    await getButton(shown, 'Cancel').waitFor();
    expect(listPaidCalls(shown)).toEqual([]);
    await getButton(shown, 'Search for 2 credits').click();
    await waitForAdCount(shown, '24 of 30 ads');
    await waitForStatus(shown, /^2 credits charged, [\d,]+ left\.$/);
    // The call omits `fresh`, so that a cached page is not charged again.
    expect(listPaidCalls(shown)).toEqual([
      { name: 'search_ads', arguments: { limit: 12, cursor: expect.any(String) } },
    ]);
    await getButton(shown, /^More ads/).click();
    await getButton(shown, /^Search for/).click();
    await waitForAdCount(shown, '30 ads');
    expect(await getButton(shown, /^More ads/).count()).toBe(0);
  });

  test.each([
    ['a cached page', 30, {}, 'at most 3 credits', '0 credits charged'],
    ['a page that is no longer cached', 29, { cacheSeconds: 0 }, '3 credits', '3 credits charged'],
  ])(
    'the button that loads more ads on the ad board shows the price of %s',
    async (_, limit, cache, price, charged) => {
      const args = { limit, detail: 'full' };
      const shown = await boards.show({ tool: 'search_ads', args }, { resultTokens: 2000, ...cache });
      await getButton(shown, `More ads for ${price} …`).click();
      await getButton(shown, `Search for ${price}`).click();
      await waitForStatus(shown, charged);
      expect(listPaidCalls(shown)).toHaveLength(1);
    },
  );

  test('loading more ads on the ad board is free for an account without credit metering', async () => {
    const { key } = boards.service.library.keys.create({ unmetered: true });
    const shown = await boards.show(searchOfSixAds, { apiKey: key });
    await getButton(shown, 'More ads, free …').click();
    await getButton(shown, 'Search, free').click();
    await waitForAdCount(shown, '12 of 30 ads');
    const { raw } = await (await boards.server({ apiKey: key })).call('search_ads', { limit: 14 });
    for (const _ of [1, 2]) {
      await getButton(shown, /^More ads/).click();
      await getButton(shown, 'Cancel').waitFor();
      await shown.notify('ui/notifications/tool-result', raw);
      await waitForAdCount(shown, '14 of 30 ads');
      await getButton(shown, /^More ads/).waitFor();
    }
  });

  test('if loading more ads fails, the ad board shows no retry button for an error that a retry cannot fix', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 5 } }, { creditBudget: 1, cacheSeconds: 0 });
    await waitForAdCount(shown, '5 of 30 ads');
    await getButton(shown, /^More ads/).click();
    await getButton(shown, /^Search for/).click();
    const problem = shown.board.getByRole('alert');
    await problem
      .getByText(/budget/i)
      .first()
      .waitFor();
    // There is no button to try again, because a second attempt would exceed the budget as well.
    expect(await getButton(shown, 'Try again').count()).toBe(0);
    await getButton(shown, /^More ads/).click();
    await getButton(shown, /^Search for/).waitFor();
    expect(listPaidCalls(shown)).toHaveLength(1);
  });
});
