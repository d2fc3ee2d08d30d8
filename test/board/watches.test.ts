import { afterAll, expect, test } from 'vitest';
import { createAds } from '../support/board/board-service.ts';
import { boardTest, closeBrowser, readText, waitForAdCount, waitForStatus } from '../support/board/board-test.ts';
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
    'the ad board shows the estimated price if check_watches is called only for an estimate (the host %s _meta)',
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
    'the title of the ad board mentions new or changed ads only if check_watches reports some (the host %s _meta)',
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

  test('the ad board says for each watch (a saved search) what the check found and whether the board shows its ads', async () => {
    const server = await boards.server(withoutCache);
    const createAd = (watch: string, index: number) => ({
      ...createAds(1)('')[0],
      ...{ id: deriveUuid(`${watch} ${index}`), pageId: watch, headline: `${watch} ${index}` },
    });
    const watch = async (name: string, maxAds = 30) => {
      await boards.service.add([createAd(name, 0), createAd(name, 1)]);
      await server.call('watch_ads', { name, filters: { pageId: [name] }, maxAds, maxCredits: 30 });
    };
    const readNotes = async (names: string[], headline: string) => {
      const shown = await boards.show({ tool: 'check_watches', args: { names, maxCredits: 60 } }, withoutCache);
      await shown.board.locator('.open', { hasText: headline }).waitFor();
      const summary = shown.board.locator('#heading summary');
      if ((await summary.count()) > 0) await summary.click();
      return (await shown.board.locator('#heading :is(summary, .note p, p.note)').allTextContents()).toSorted();
    };
    await watch('Hats');
    await watch('Gloves');
    expect(await readNotes(['Hats', 'Gloves'], 'Hats')).toEqual([
      '“Gloves”: first check; 2 ads read. Its ads are not shown here.',
      '“Hats”: first check; 2 ads read.',
    ]);
    await boards.service.add([createAd('Gloves', 2)]);
    await watch('Scarves');
    await watch('Belts', 1);
    expect(await readNotes(['Hats', 'Gloves', 'Scarves', 'Belts'], 'Gloves 2')).toEqual([
      'Shows ads of 1 of 4 watches',
      '“Belts”: first check; 1 of 2 ads read, not complete. Its ads are not shown here.',
      '“Gloves”: 1 new since 20 Nov 2026; 3 ads read.',
      '“Hats”: nothing new or changed since 20 Nov 2026; 2 ads read. Its ads are not shown here.',
      '“Scarves”: first check; 2 ads read. Its ads are not shown here.',
    ]);
  });

  test('the ad board says that there are no watches (saved searches) if check_watches had nothing to check', async () => {
    const shown = await boards.show({ tool: 'check_watches', args: { maxCredits: 30 } });
    await waitForStatus(shown, 'There are no watches to check.');
  });

  test('the ad board marks new ads among changed ads, also in a narrow window', async () => {
    const server = await boards.server(withoutCache);
    const createAd = (index: number, headline: string) => ({
      ...createAds(1)('')[0],
      ...{ id: deriveUuid(`Shirts ${index}`), pageId: `Shirts ${index}`, countries: ['FI'], headline },
    });
    await boards.service.add([createAd(0, 'Shirt')]);
    await server.call('watch_ads', { name: 'Shirts', filters: { countries: ['FI'] }, maxCredits: 30 });
    const args = { names: ['Shirts'], maxCredits: 30 };
    await server.call('check_watches', args);
    await boards.service.add([createAd(0, 'Blouse'), createAd(1, 'Pullover')]);
    const shown = await boards.show({ tool: 'check_watches', args, width: 360, height: 500 }, withoutCache);
    await waitForAdCount(shown, '2 ads');
    const newMark = shown.board.locator('.about', { hasText: /^New/ });
    expect(await newMark.filter({ visible: true }).count()).toBe(1);
    expect(await shown.board.locator('.card', { has: newMark }).textContent()).toContain('Pullover');
  });

  test('the ad board says how many ads are new even if the result of check_watches lists only some of the new ads', async () => {
    const server = await boards.server(withoutCache);
    const createAd = (index: number) => ({
      ...createAds(1)('')[0],
      ...{ id: deriveUuid(`Caps ${index}`), pageId: `Caps ${index}`, countries: ['IS'] },
    });
    await boards.service.add([createAd(0)]);
    await server.call('watch_ads', { name: 'Caps', filters: { countries: ['IS'] }, maxCredits: 500 });
    const args = { names: ['Caps'], maxCredits: 500 };
    await server.call('check_watches', args);
    await boards.service.add(Array.from({ length: 610 }, (_, index) => createAd(index + 1)));
    const shown = await boards.show({ tool: 'check_watches', args }, withoutCache);
    await waitForAdCount(shown, '600 ads');
    expect(await readText(shown, '.note')).toBe(
      '“Caps”: 610 new since 20 Nov 2026; 611 ads read. 10 new or changed ads are not shown here.',
    );
    expect(await readText(shown, '#part')).toBe(
      'Charts of the 600 ads shown. There are more, which may look different.',
    );
  });
});
