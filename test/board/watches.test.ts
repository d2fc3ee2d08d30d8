import { afterAll, expect, test } from 'vitest';
import { createAds } from '../support/board/board-service.ts';
import { boardTest, closeBrowser, readText } from '../support/board/board-test.ts';
import { inChromium } from '../support/board/in-chromium.ts';
import { deriveUuid } from '../support/derive-uuid.ts';

afterAll(closeBrowser);

/** With this setting, each check reads the ads from the service again. */
const withoutCache = { cacheSeconds: 0 };
/** Drops `_meta` from the result of `check_watches`, as hosts such as ChatGPT on the web do. */
const dropMeta = (result: Record<string, unknown>) => {
  const isCheck = Object.hasOwn((result.structuredContent as object | undefined) ?? {}, 'watches');
  return isCheck ? { ...result, _meta: undefined } : result;
};
const hosts = [
  ['passes', {}],
  ['drops', { modifyResult: dropMeta }],
] as const;

inChromium('The ad board of check_watches', () => {
  const boards = boardTest(createAds(30));

  test.each(hosts)(
    'the board shows the estimated price if check_watches only estimates the price (the host %s _meta)',
    async (_, host) => {
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

  test.each(hosts)(
    'the title of the board calls ads new or changed only if check_watches found them to be so (the host %s _meta)',
    async (hostBehavior, host) => {
      const server = await boards.server(withoutCache);
      const name = `Shoes ${hostBehavior}`;
      const createAd = (index: number, headline: string) => ({
        ...createAds(1)('')[0],
        ...{ id: deriveUuid(`${name} ${index}`), pageId: name, headline },
      });
      await boards.service.add([createAd(0, 'Shoes')]);
      await server.call('watch_ads', { name, filters: { pageId: [name] }, maxCredits: 30 });
      const readTitle = async () => {
        const args = { names: [name], maxCredits: 30 };
        const shown = await boards.show({ tool: 'check_watches', args, ...host }, withoutCache);
        await shown.board.locator('.card').first().waitFor();
        return readText(shown, '#title');
      };
      expect(await readTitle()).toBe(`Ads of the watch “${name}”`);
      expect(await readTitle()).toBe(`Ads of the watch “${name}”`);
      await boards.service.add([createAd(1, 'Boots')]);
      expect(await readTitle()).toBe('New ads of your watches');
      await boards.service.add([createAd(0, 'Sandals')]);
      expect(await readTitle()).toBe('Changed ads of your watches');
      await boards.service.add([createAd(0, 'Slippers'), createAd(2, 'Socks')]);
      expect(await readTitle()).toBe('New and changed ads of your watches');
    },
  );
});
