import fc from 'fast-check';
import type { Locator } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { formatConstant, formatCountry, formatMonth, formatNumber } from '../../src/ui/formats.ts';
import type { ShownBoard } from '../support/board/board-host.ts';
import { createAds, now } from '../support/board/board-service.ts';
import {
  boardTest,
  closeBrowser,
  getButton,
  getChip,
  readText,
  waitForAdCount,
  waitForStatus,
} from '../support/board/board-test.ts';
import { inChromium } from '../support/board/in-chromium.ts';
import { deriveUuid } from '../support/derive-uuid.ts';

afterAll(closeBrowser);

const readHeight = async (shown: ShownBoard) =>
  Number((await shown.messages('ui/notifications/size-changed')).at(-1)?.params.height);

inChromium('Dates on the ad board', () => {
  const withDates = boardTest(createAds(30));
  const withoutDates = boardTest((mediaUrl) =>
    createAds(10)(mediaUrl).map(({ startedAt: _, lastSeenAt: __, endDate: ___, ...ad }) => ad),
  );

  test('the timeline chart on the ad board has no month axis if none of the ads has a date', async () => {
    const shown = await withoutDates.show({ tool: 'search_ads', args: { limit: 10 } });
    await shown.board.getByLabel('Timeline').click();
    await shown.board.locator('.row').first().waitFor();
    expect(await shown.board.locator('#axis').count()).toBe(0);
    expect(await shown.board.locator('main').textContent()).not.toContain('1970');
  });

  test('the chart of ad launches on the ad board marks the current month as incomplete', async () => {
    const call = { tool: 'search_ads', args: { limit: 20 } };
    const readLaunches = ({ board }: ShownBoard) => board.locator('svg.launches').getAttribute('aria-label');
    const shown = await withDates.show({
      ...call,
      beforeCall: ({ name }) => {
        if (name === 'board_ads') throw new Error('The server is gone.');
      },
    });
    expect(await readLaunches(shown)).toMatch(/^Oct 2026: \d+, Nov 2026: \d+$/);
    expect(await readLaunches(await withDates.show(call))).toMatch(/^Oct 2026: \d+, Nov 2026, so far: \d+$/);
  });

  test('the ad board names Gregorian months and days if the locale of the host has another calendar', async () => {
    const shown = await withDates.show({ tool: 'search_ads', args: { limit: 20 }, context: { locale: 'fa-IR' } });
    await shown.board.locator('#charts').waitFor();
    const launches = await shown.board.locator('svg.launches').getAttribute('aria-label');
    expect(launches?.replace(/[\u2066-\u2069]/g, '')).toMatch(/^اکتبر ۲۰۲۶: .+, نوامبر ۲۰۲۶, so far: /);
    expect(await readText(shown, '#subtitle')).toContain('۲۰ نوامبر ۲۰۲۶');
  });
});

inChromium('The launches of an advertiser on the ad board', () => {
  const headlines = [
    ...['Red tea from the hills', 'Boots for long walks', 'A lamp that dims itself', 'Knives that stay sharp'],
    ...['Quiet fans for hot nights', 'Umbrellas in every colour', 'Soft towels', 'Pans without oil', 'Fresh bread'],
  ];
  const months = ['2026-06', ...Array<string>(6).fill('2026-08'), '2026-09', '2026-07'];
  const ads = months.map((month, index) => ({
    ...{ id: deriveUuid(`launch ${index}`), pageId: 'p', pageName: 'Serra', headline: headlines[index] },
    ...{ startedAt: `${month}-03T00:00:00Z`, lastSeenAt: '2026-11-20T01:00:00Z' },
  }));
  const boards = boardTest(() => ads);

  test('the ad board reports a rise or fall in ad launches for a search, but not for individually selected ads', async () => {
    const searched = await boards.show({ tool: 'search_ads', args: { limit: 20 } });
    await waitForAdCount(searched, '9 .*');
    expect(await readText(searched, '#finding')).toMatch(/^Launches of Serra (?:rose|fell) from /);
    const picked = await boards.show({ tool: 'view_ads', args: { adIds: ads.map(({ id }) => id) } });
    await waitForAdCount(picked, '9 .*');
    expect(await picked.board.locator('#finding').count()).toBe(0);
  });

  test('the ad board reports no rise or fall in ad launches for a watch (a saved search), whose filters may limit the dates', async () => {
    const server = await boards.server();
    await server.call('watch_ads', { name: 'Since July', filters: { startedAtFrom: '2026-07-01' }, maxCredits: 20 });
    const watched = await boards.show({ tool: 'check_watches', args: { maxCredits: 20 } });
    await waitForAdCount(watched, '8 .*');
    expect(await watched.board.locator('#finding').count()).toBe(0);
  });
});

inChromium('The ad board for an incomplete result', () => {
  const boards = boardTest(createAds(90));

  test.each([
    ['a search that found more', { tool: 'search_ads', args: { limit: 20 } }, 20, 90, 'as of'],
    [
      'a gathering that is not complete',
      { tool: 'gather_ads', args: { filters: { countries: ['DE'] }, maxAds: 10, maxCredits: 50 } },
      ...([10, 45, 'not complete'] as const),
    ],
  ] as const)(
    'the heading of the ad board shows how many of all matching ads are listed (result: %s)',
    async (_, call, ads, all, expectedText) => {
      const shown = await boards.show(call);
      await waitForAdCount(shown, `${ads} of ${all} ads`);
      const expectedNote = `Charts of the ${ads} ads shown, out of ${all}. The others may look different.`;
      expect(await readText(shown, '#part')).toBe(expectedNote);
      expect(await readText(shown, '#subtitle')).toContain(expectedText);
    },
  );

  test('the ad board warns about charts that leave out some matching ads only while the charts are visible', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 20 } });
    await getChip(shown, 'Learn more').click();
    await waitForAdCount(shown, '5 of 20 ads');
    expect(await shown.board.locator('#charts').count()).toBe(0);
    expect(await readText(shown, '#part')).toBe(
      'Filters apply to the 20 ads here, out of 90. The others may look different.',
    );
  });

  test('the ad board says that more ads exist even if the API does not report the total', async () => {
    const shown = await boards.show({
      tool: 'search_ads',
      args: { limit: 20 },
      modifyResult: (result) => JSON.parse(JSON.stringify(result).replaceAll('"totalHits":90', '"other":0')),
    });
    await waitForAdCount(shown, '20 ads');
    expect(await readText(shown, '#part')).toBe(
      'Charts of the 20 ads shown. There are more, which may look different.',
    );
  });

  test.each([
    ['ads of the service', {}, '^45 ads in 1 page'],
    ['demo ads', { demo: true }, String.raw`^[\d,]+ demo ads in \d+ pages?`],
  ])(
    'the ad board shows the cost estimate for %s on one line, or on two lines in a narrow window',
    async (_, config, size) => {
      const args = { filters: { countries: ['AT'] }, maxCredits: 0 };
      const shown = await boards.show({ tool: 'gather_ads', args }, config);
      const line = new RegExp(String.raw`${size}, (?:between \d+ and )?[\d,]+ credits?$`);
      await shown.board.locator('#title', { hasText: line }).waitFor();
      for (const [width, height] of [
        [1100, 50],
        [360, 65],
      ] as const) {
        await shown.page.setViewportSize({ width, height: 820 });
        const listReports = () => shown.messages('ui/notifications/size-changed');
        await expect.poll(async () => (await listReports()).at(-1)?.params.width).toBe(width);
        await expect.poll(() => readHeight(shown)).toBeLessThan(height);
      }
      expect(await shown.board.locator('body').innerText()).not.toContain('no ads');
      expect(shown.calls).toEqual([]);
    },
  );

  test('the ad board shows the cost of reading the remaining ads of a search that was read only in part', async () => {
    const filters = { countries: ['US'] };
    const estimated = { tool: 'gather_ads', args: { filters, maxCredits: 0 } };
    const { call } = await boards.server();
    await call('gather_ads', { filters, maxAds: 10, maxCredits: 50 });
    const boardOfRest = await boards.show(estimated);
    const line = /^35 of 45 ads in 1 page, (?:between \d+ and )?\d+ credits?$/;
    await boardOfRest.board.locator('#title', { hasText: line }).waitFor();
    await call('gather_ads', { filters, maxAds: 90, maxCredits: 50 });
    const boardOfGathering = await boards.show(estimated);
    await waitForAdCount(boardOfGathering, '45 ads');
    await boardOfGathering.board.locator('.card').first().waitFor();
  });

  test.each([
    [false, 0],
    [true, 1],
  ])(
    'the ad board explains an error in one sentence and shows a retry button if a retry can help (retryable: %s)',
    async (retryable, offers) => {
      const forwardCall = (result: Record<string, unknown>) => ({
        ...result,
        _meta: { 'ad-library/error': { retryable } },
      });
      const search = { tool: 'search_ads', args: { filters: { colour: 'red' } } };
      const shown = await boards.show({ ...search, modifyResult: forwardCall }, { demo: true });
      const problem = shown.board.getByRole('alert');
      await problem.getByText("Unknown filter key 'colour'.", { exact: true }).waitFor();
      expect(await problem.locator('details p').textContent()).toMatch(
        /^The call is not valid.*\n.*Known keys: cursor/,
      );
      expect(await shown.board.locator('body').innerText()).not.toMatch(/DEMO DATA|0 ads|Known keys/);
      await expect.poll(() => readHeight(shown)).toBeLessThan(500);
      expect(await getButton(shown, 'Try again').count()).toBe(offers);
      if (!retryable) return;
      await getButton(shown, 'Try again').click();
      await waitForStatus(shown, 'The conversation was asked to try again.');
      const [message] = await shown.messages('ui/message');
      expect(JSON.stringify(message?.params)).not.toMatch(/colour|red"/);
    },
  );
});

inChromium('The estimated spend on the ad board', () => {
  const spendByAd = [{ adSpendMin: 100 }, { adSpendMax: 500 }, { adSpendMin: 100, adSpendMax: 500 }, { adSpendMin: 0 }];
  const boards = boardTest((mediaUrl) => createAds(4)(mediaUrl).map((ad, index) => ({ ...ad, ...spendByAd[index] })));

  test('the ad board says which bound of the estimated spend it shows if the service reports only one', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 4 } });
    await waitForAdCount(shown, '4 ads');
    for (const [index, spend] of ['from 100', 'up to 500', '100–500', 'from 0'].entries()) {
      await getButton(shown, `Offer ${index}`).click();
      await shown.board.locator('dt', { hasText: 'Spend, estimated' }).waitFor();
      expect(await readText(shown, 'dt:text("Spend, estimated") + dd')).toBe(spend);
      await shown.page.keyboard.press('Escape');
    }
  });
});

inChromium('The ad board for a large gather_ads result', () => {
  const boards = boardTest(createAds(2600));

  test('the ad board keeps the loaded ads when a call fails, and a retry loads the remaining ads', async () => {
    const args = { maxAds: 10_000, maxCredits: 5000 };
    let calls = 0;
    const interceptCall = ({ name }: { name: string }) => {
      if (name === 'board_ads' && ++calls === 3) throw new Error('Not now.');
    };
    const shown = await boards.show({ tool: 'gather_ads', args, beforeCall: interceptCall });
    const { board } = shown;
    await board.getByRole('alert').getByText('Not now.').waitFor();
    const [, shownCount = ''] = /^([\d,]+) of 2,600 ads$/.exec((await readText(shown, '#count')) ?? '') ?? [];
    expect(await readText(shown, '#part')).toBe(
      `Charts of the ${shownCount} ads shown, out of 2,600. The others may look different.`,
    );
    const loadedAds = Number(shownCount.replace(',', ''));
    expect(await readText(shown, '#subtitle')).toContain(`${(2600 - loadedAds).toLocaleString('en')} more to come`);
    const before = shown.calls.length;
    await getButton(shown, 'Try again').click();
    await waitForAdCount(shown, '2,600 ads');
    const laterCalls = shown.calls.slice(before).filter(({ name }) => name === 'board_ads');
    expect(new Set(laterCalls.flatMap(({ arguments: { ids } }) => ids)).size).toBe(2600 - loadedAds);

    const first = () => readText(shown, '#list .open');
    expect([await first(), await readText(shown, '#list .number')]).toEqual(['Offer 2598', '1']);
    expect(await readText(shown, '#charts figure:nth-child(2) .ends')).toBe('02,603');
    expect(await getChip(shown, 'Running').textContent()).toBe('Running1,300');
    await board.getByLabel('Sort').selectOption('Copies of the ad');
    expect(await first()).toBe('Offer 2599');
    await board.locator('#list .open').first().click();
    await board.getByRole('dialog').getByText('Its second line.').waitFor();
  });

  test('an ad that the model knows by its number keeps this number when the ad board loads the remaining ads', async () => {
    let calls = 0;
    const interceptCall = ({ name }: { name: string }) => {
      if (name === 'board_ads' && ++calls === 3) throw new Error('Not now.');
    };
    const args = { maxAds: 10_000, maxCredits: 5000 };
    const shown = await boards.show({ tool: 'gather_ads', args, beforeCall: interceptCall });
    await getButton(shown, 'Try again').waitFor();
    await shown.board.locator('#list .pick').nth(1).click();
    const readModelContext = async () =>
      JSON.stringify((await shown.messages('ui/update-model-context')).at(-1)?.params ?? '');
    await expect.poll(readModelContext).toContain('Selected: ad 2.');
    await getButton(shown, 'Try again').click();
    await waitForAdCount(shown, '2,600 ads');
    await getButton(shown, 'Ask').click();
    await waitForStatus(shown, '1 ad handed to the conversation.');
    const [message] = await shown.messages('ui/message');
    expect(message?.params.content).toEqual([{ type: 'text', text: 'Tell me about ad 2 of the board.' }]);
  });
});

type Counts = Record<string, number>;

const readCounts = async (texts: Locator): Promise<Counts> => {
  const all = await texts.allTextContents();
  return Object.fromEntries(all.flatMap((name, at) => (at % 2 === 0 ? [[name, Number(all[at + 1])]] : [])));
};

async function readChips({ board }: ShownBoard, facet: string): Promise<Counts> {
  const group = board.getByRole('group', { name: facet, exact: true });
  const more = group.getByRole('button', { name: /: \d+ more$/ });
  if ((await more.count()) > 0) await more.click();
  return readCounts(group.locator('.chip[aria-pressed] :is(span, small)'));
}

const sumCounts = (counts: Counts) => Object.values(counts).reduce((all, ads) => all + ads, 0);

/** Verifies that each column of a chart counts the ads with its values, and that every ad is in exactly one column. */
async function expectColumns(figure: Locator, counted: Counts, isIn: (name: string, value: string) => boolean) {
  const label = (await figure.getByRole('img').getAttribute('aria-label')) ?? '';
  const columns = [...label.matchAll(/(.+?): (\d+)(?:, |$)/g)];
  for (const [, name = '', ads] of columns) {
    const matchingCounts = Object.entries(counted).filter(([value]) => isIn(name, value));
    expect([name, Number(ads)]).toEqual([name, sumCounts(Object.fromEntries(matchingCounts))]);
  }
  expect(columns.reduce((all, [, , ads]) => all + Number(ads), 0)).toBe(sumCounts(counted));
  const unknown = 70 - sumCounts(counted);
  expect(await figure.textContent()).toContain(`${unknown} unknown`);
}

const isOfDays = (name: string, days: string) => {
  const [first = 0, last = first] = (name.match(/\d+/g) ?? []).map(Number);
  return Number(days) >= first && Number(days) <= last;
};
const isOfMonth = (name: string, at: string) => {
  const month = new Date(`1 ${name.slice(0, 8)} UTC`).toISOString().slice(0, 7);
  return name.endsWith('earlier') ? at <= month : name.endsWith('later') ? at >= month : at === month;
};

const daysAgo = (days: number) => new Date(now - days * 86_400_000).toISOString();
const day = (min: number) => fc.integer({ min, max: 1500 }).map(daysAgo);
const optionally = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null, freq: 6 });
const adTexts = [
  'Stiefel und Schuhe',
  'مجموعة تمور الموسم',
  '今日優惠月牙餐盤',
  'Серебряные кольца',
  'Boots and shoes',
];
const someAd = fc.record({
  startedAt: optionally(day(-40)),
  lastSeenAt: optionally(day(0)),
  endDate: fc.option(day(-40), { nil: null, freq: 1 }),
  displayFormat: optionally(fc.constantFrom('IMAGE', 'VIDEO', 'CAROUSEL', 'DCO', 'DPA', 'PAGE_LIKE')),
  ctaType: optionally(fc.constantFrom('SHOP_NOW', 'LEARN_MORE', 'SIGN_UP')),
  countries: fc.subarray(['DE', 'US', 'SA', 'JP']),
  offerLink: optionally(
    fc.constantFrom('https://a.example/x?utm_source=1', 'https://a.example/x', 'https://b.example'),
  ),
  body: optionally(fc.constantFrom(...adTexts)),
  adSpendMin: optionally(fc.integer({ min: 1, max: 900 })),
  duplicates: optionally(fc.integer({ min: 1, max: 90 })),
});

inChromium('Numbers on the ad board', () => {
  const boards = boardTest(() => []);

  test.each([1, 2, 3])(
    'the numbers on the ad board equal the results of SQL queries over the same ads (random seed %d)',
    async (seed) => {
      const page = `page ${seed}`;
      const [randomAds = []] = fc.sample(fc.array(someAd, { minLength: 70, maxLength: 70 }), { seed, numRuns: 1 });
      const ownFields = (_: object, index: number) => ({
        id: deriveUuid(`${page} ${index}`),
        pageId: page,
        headline: `Ad ${index}`,
      });
      await boards.service.add(randomAds.map((ad, index) => ({ ...ad, ...ownFields(ad, index) })));
      const args = { filters: { pageId: [page] }, maxAds: 100, maxCredits: 100 };
      const shown = await boards.show({ tool: 'gather_ads', args });
      const { board } = shown;
      const server = await boards.server();
      const rows = async (select: string) => {
        const state = `CASE active WHEN 1 THEN 'Running' WHEN 0 THEN 'Ended' ELSE 'State unknown' END`;
        const ownAds = `WITH own AS (SELECT *, ${state} AS state FROM ads WHERE pageId = '${page}')`;
        return (await server.call('query_ads', { sql: `${ownAds} ${select}`, limit: 1000 })).data.rows as unknown[][];
      };
      const countRows = async (value: string, readName = (name: string) => name, from = 'own'): Promise<Counts> => {
        const counted = await rows(`SELECT ${value}, count(*) FROM ${from} WHERE ${value} IS NOT NULL GROUP BY 1`);
        return Object.fromEntries(counted.map(([name, ads]) => [readName(String(name)), Number(ads)]));
      };
      const [[messages, median] = []] = await rows(
        'SELECT count(DISTINCT coalesce(variant, id)), median(daysRunning) FROM own',
      );
      await waitForAdCount(shown, `${messages} messages, 70 ads`);

      const facets = {
        State: await countRows('state'),
        Format: await countRows('displayFormat', formatConstant),
        'Call to action': await countRows('ctaType', formatConstant),
        Country: await countRows('country', formatCountry, 'own JOIN ad_countries USING (id)'),
        'Landing page': await countRows('landing'),
        Started: await countRows('startedMonth', formatMonth),
      };
      for (const [facet, values] of Object.entries(facets))
        expect(await readChips(shown, facet), facet).toEqual(values);

      const readFigure = (title: string) => board.locator('figure', { has: board.getByText(title, { exact: false }) });
      await expectColumns(readFigure('Launches by month'), await countRows('startedMonth'), isOfMonth);
      await expectColumns(readFigure('Days running'), await countRows('daysRunning'), isOfDays);
      await readFigure('Days running')
        .getByText(`median ${formatNumber(Number(median))}`)
        .waitFor();
      for (const title of ['Format', 'Call to action'] as const) {
        const rows = await readCounts(readFigure(title).locator('.shares :is(.name, b)'));
        const { Others: others = 0, 'Not stated': none = 0, ...named } = rows;
        const values = Object.values(facets[title]).sort((a, b) => b - a);
        const largest = values.slice(0, Object.keys(named).length);
        expect([Object.values(named), none, sumCounts(rows)]).toEqual([largest, 70 - sumCounts(facets[title]), 70]);
        expect(others).toBe(sumCounts(facets[title]) - sumCounts(named));
      }

      await getChip(shown, 'Running').click();
      await board.locator('#count', { hasText: `, ${facets.State.Running} of 70 ads` }).waitFor();
      const running = await countRows('displayFormat', formatConstant, '(SELECT * FROM own WHERE active)');
      expect(await readChips(shown, 'Format')).toEqual(running);
      await getChip(shown, 'Running').click();

      await getButton(shown, 'Ads').click();
      await board.getByLabel('Sort').selectOption('Days running');
      await getButton(shown, 'Timeline').click();
      const sharesOf = await board.locator('.row').evaluateAll((all) =>
        all.map((row) => {
          const [bar, track] = ['.track i', '.track'].map((part) => row.querySelector(part)?.getBoundingClientRect());
          return [row.querySelector('.open')?.textContent, (bar?.width ?? 0) / (track?.width ?? 1)] as const;
        }),
      );
      const drawn = new Map(sharesOf);
      const ran = await rows('SELECT headline, daysRunning FROM own ORDER BY daysRunning DESC LIMIT 10');
      const share = ([headline]: unknown[] = []) => drawn.get(String(headline)) ?? 0;
      for (const row of ran)
        expect(share(row) / share(ran[0]), String(row[0])).toBeCloseTo(Number(row[1]) / Number(ran[0]?.[1]), 2);
    },
  );
});
