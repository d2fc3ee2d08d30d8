import { afterAll, expect, test } from 'vitest';
import { createAds } from '../support/board/board-service.ts';
import { boardTest, closeBrowser } from '../support/board/board-test.ts';
import { inChromium } from '../support/board/in-chromium.ts';

afterAll(closeBrowser);

/** With this setting, each check reads the ads from the service again. */
const withoutCache = { cacheSeconds: 0 };
/** Hosts such as ChatGPT on the web remove `_meta` from the result before they pass it to the board. */
const removeMeta = (result: object) => ({ ...result, _meta: undefined });

inChromium('The ad board of check_watches', () => {
  const boards = boardTest(createAds(30));

  test.each([{}, { modifyResult: removeMeta }])(
    'the board shows the estimated price if check_watches only estimates the price (host options: %o)',
    async (host) => {
      const server = await boards.server(withoutCache);
      await server.call('watch_ads', { name: 'All', filters: {}, maxCredits: 30 });
      await server.call('check_watches', { names: ['All'], maxCredits: 30 });
      const args = { names: ['All'], maxCredits: 0 };
      const shown = await boards.show({ tool: 'check_watches', args, ...host }, withoutCache);
      await shown.board
        .getByText('Check of your watches in 1 page, between 3 and 30 credits', { exact: true })
        .waitFor();
      expect(await shown.board.locator('body').innerText()).not.toMatch(/nothing|no ads/i);
    },
  );
});
