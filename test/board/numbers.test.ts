import * as fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import type { ShownBoard } from '../support/board/board-host.ts';
import { now, someAds } from '../support/board/board-service.ts';
import { boardTest, button, chip, closeBrowser, reads, status, textOf } from '../support/board/board-test.ts';
import { inChromium } from '../support/board/in-chromium.ts';
import { uuidOf } from '../support/uuid-of.ts';

afterAll(closeBrowser);

const heightOf = async (shown: ShownBoard) =>
  Number((await shown.messages('ui/notifications/size-changed')).at(-1)?.params.height);

/** Fails one of the calls for ads. */
const failing = (number: number) => {
  let calls = 0;
  return ({ name }: { name: string }) => {
    if (name === 'board_ads' && ++calls === number) throw new Error('Not now.');
  };
};

inChromium('what the board states of a part', () => {
  const boards = boardTest(someAds(90));

  test('a search that found more says so in its heading and over its charts, with filters as well', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 20 } });
    await reads(shown, '20 of 90 ads');
    expect(await textOf(shown, '#part')).toBe('Charts of the 20 ads shown, out of 90. The others may look different.');
    await chip(shown, 'Running').click();
    await reads(shown, '10 of 20 ads');
    expect(await textOf(shown, '#part')).toContain('the 10 ads shown, out of 90');
  });

  test('a gathering that is not complete says so', async () => {
    const args = { filters: { countries: ['DE'] }, maxAds: 10, maxCredits: 50 };
    const part = await boards.show({ tool: 'gather_ads', args });
    await reads(part, '10 of 45 ads');
    expect(await textOf(part, '#part')).toContain('of the 10 ads shown, out of 45');
    expect(await textOf(part, '#subtitle')).toContain('not complete');
  });

  test('where nobody says how many there are, the board says that there are more', async () => {
    const shown = await boards.show({
      tool: 'search_ads',
      args: { limit: 20 },
      passOn: (result) => JSON.parse(JSON.stringify(result).replaceAll('"totalHits":90', '"other":0')),
    });
    await reads(shown, '20 ads');
    expect(await textOf(shown, '#part')).toBe('Charts of the 20 ads shown. There are more, which may look different.');
  });

  test.each([
    ['ads', {}, '^45 ads in 1 page'],
    ['demo ads', { demo: true }, String.raw`^[\d,]+ demo ads in \d+ pages?`],
  ])('an estimate of %s takes one line, or two in a narrow window', async (_, config, size) => {
    const args = { filters: { countries: ['AT'] }, maxCredits: 0 };
    const shown = await boards.show({ tool: 'gather_ads', args }, config);
    const line = new RegExp(String.raw`${size}, (?:between \d+ and )?[\d,]+ credits?$`);
    await shown.board.locator('#title', { hasText: line }).waitFor();
    for (const [width, height] of [
      [1100, 50],
      [360, 65],
    ] as const) {
      await shown.page.setViewportSize({ width, height: 820 });
      const reported = () => shown.messages('ui/notifications/size-changed');
      await expect.poll(async () => (await reported()).at(-1)?.params.width).toBe(width);
      await expect.poll(() => heightOf(shown)).toBeLessThan(height);
    }
    expect(await shown.board.locator('body').innerText()).not.toContain('no ads');
    expect(shown.calls).toEqual([]);
  });

  test('an estimate of what is read in part is about the rest, and what is read is drawn', async () => {
    const filters = { countries: ['US'] };
    const estimated = { tool: 'gather_ads', args: { filters, maxCredits: 0 } };
    const { call } = await boards.server();
    await call('gather_ads', { filters, maxAds: 10, maxCredits: 50 });
    const rest = await boards.show(estimated);
    const line = /^35 of 45 ads in 1 page, (?:between \d+ and )?\d+ credits?$/;
    await rest.board.locator('#title', { hasText: line }).waitFor();
    await call('gather_ads', { filters, maxAds: 90, maxCredits: 50 });
    const held = await boards.show(estimated);
    await reads(held, '45 ads');
    await held.board.locator('.card').first().waitFor();
  });

  test.each([
    [false, 0],
    [true, 1],
  ])(
    'an error says in a sentence what is wrong, folds the rest, and offers to try again where that helps: %s',
    async (retryable, offers) => {
      const passOn = (result: Record<string, unknown>) => ({ ...result, _meta: { 'ad-library/error': { retryable } } });
      const search = { tool: 'search_ads', args: { filters: { colour: 'red' } } };
      const shown = await boards.show({ ...search, passOn }, { demo: true });
      const problem = shown.board.getByRole('alert');
      await problem.getByText("Unknown filter key 'colour'.", { exact: true }).waitFor();
      expect(await problem.locator('details p').textContent()).toMatch(
        /^The call is not valid.*\n.*Known keys: cursor/,
      );
      expect(await shown.board.locator('body').innerText()).not.toMatch(/DEMO DATA|0 ads|Known keys/);
      await expect.poll(() => heightOf(shown)).toBeLessThan(500);
      expect(await button(shown, 'Try again').count()).toBe(offers);
      if (!retryable) return;
      await button(shown, 'Try again').click();
      await status(shown, 'The conversation was asked to try again.');
      const [message] = await shown.messages('ui/message');
      expect(JSON.stringify(message?.params)).not.toMatch(/colour|red"/);
    },
  );

  test('ads that did not come are asked for again, and the heading says what is there until then', async () => {
    const gathered = { tool: 'gather_ads', args: { maxAds: 90, maxCredits: 50 } };
    const shown = await boards.show({ ...gathered, onCall: failing(1) });
    await shown.board.getByRole('alert').getByText('The ads could not be read. Not now.').waitFor();
    await button(shown, 'Try again').click();
    await reads(shown, '90 ads');
    expect(await textOf(shown, '#problem')).toBe('');
  });
});

inChromium('a gathering of thousands', () => {
  const boards = boardTest(someAds(2600));

  test('shows what came when a call fails, reads on from there, and is sorted, filtered and drawn as a whole', async () => {
    const args = { maxAds: 10_000, maxCredits: 5000 };
    const shown = await boards.show({ tool: 'gather_ads', args, onCall: failing(3) });
    const { board } = shown;
    await board.getByRole('alert').getByText('Not now.').waitFor();
    const [, here = ''] = /^([\d,]+) of 2,600 ads$/.exec((await textOf(shown, '#count')) ?? '') ?? [];
    expect(await textOf(shown, '#part')).toBe(
      `Charts of the ${here} ads shown, out of 2,600. The others may look different.`,
    );
    const read = Number(here.replace(',', ''));
    expect(await textOf(shown, '#subtitle')).toContain(`${(2600 - read).toLocaleString('en')} more to come`);
    const before = shown.calls.length;
    await button(shown, 'Try again').click();
    await reads(shown, '2,600 ads');
    const later = shown.calls.slice(before).filter(({ name }) => name === 'board_ads');
    expect(new Set(later.flatMap(({ arguments: { ids } }) => ids)).size).toBe(2600 - read);

    const first = () => textOf(shown, '#list .open');
    expect(await first()).toBe('Offer 2598');
    expect(await textOf(shown, '#charts figure:nth-child(2) .ends')).toBe('02,603');
    expect(await chip(shown, 'Running').textContent()).toBe('Running1,300');
    await board.getByLabel('Sort').selectOption('Copies of the ad');
    expect(await first()).toBe('Offer 2599');
    await board.locator('#list .open').first().click();
    await board.getByRole('dialog').getByText('Its second line.').waitFor();
  });
});

type Count = [name: string, ads: number];
interface Part {
  querySelector(selector: string): { textContent: string } | null;
}

interface Chart {
  note: string;
  /** What stands below it. */
  ends: string;
  bars: Count[];
}

/** The charts of the board by their titles, and the numbers of its filters for the state of ads. */
const drawnOn = ({ board }: ShownBoard): Promise<{ charts: Record<string, Chart>; states: Count[] }> =>
  board.locator('main').evaluate((main) => {
    const number = (text = '') => Number(text.replaceAll(',', ''));
    const textIn = (part: Part, selector: string) => part.querySelector(selector)?.textContent ?? '';
    const charts = [...main.querySelectorAll('#charts figure')].map((figure) => {
      const columns = [...figure.querySelectorAll('rect > title')].map(({ textContent }) => textContent.split(': '));
      const shares = [...figure.querySelectorAll('.shares li')].map((row) => [textIn(row, '.name'), textIn(row, 'b')]);
      const bars = [...columns, ...shares].map(([name = '', ads]): Count => [name, number(ads)]);
      const chart = { note: textIn(figure, 'figcaption span'), ends: textIn(figure, '.ends'), bars };
      return [figure.querySelector('figcaption')?.firstChild?.textContent ?? '', chart] as const;
    });
    const states = [...main.querySelectorAll('[aria-label="State"] .chip[aria-pressed]')];
    return {
      charts: Object.fromEntries(charts),
      states: states.map((chip): Count => [textIn(chip, 'span'), number(textIn(chip, 'small'))]),
    };
  });

const sum = (counts: readonly Count[]) => counts.reduce((all, [, ads]) => all + ads, 0);

/** Holds each bar to the ads of the values in it; no ad is in two, or in none. */
function expectBars({ bars }: Chart, counted: readonly Count[], isIn: (name: string, value: string) => boolean): void {
  for (const [name, ads] of bars)
    expect([name, ads]).toEqual([name, sum(counted.filter(([value]) => isIn(name, value)))]);
  expect(sum(bars)).toBe(sum(counted));
}

const isOfDays = (name: string, days: string) => {
  const [first = 0, last = first] = (name.match(/\d+/g) ?? []).map(Number);
  return Number(days) >= first && Number(days) <= last;
};
const isOfMonth = (name: string, at: string) => {
  const month = new Date(`1 ${name.slice(0, 8)} UTC`).toISOString().slice(0, 7);
  return name.endsWith('earlier') ? at <= month : name.endsWith('later') ? at >= month : at === month;
};

const day = fc.integer({ min: -1500, max: 40 }).map((days) => new Date(now + days * 86_400_000).toISOString());
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null, freq: 6 });
const someAd = fc.record({
  startedAt: maybe(day),
  lastSeenAt: maybe(day),
  endDate: fc.option(day, { nil: null, freq: 1 }),
  displayFormat: maybe(fc.constantFrom('IMAGE', 'VIDEO', 'CAROUSEL', 'DCO', 'DPA', 'PAGE_LIKE')),
  ctaType: maybe(fc.constantFrom('SHOP_NOW', 'LEARN_MORE', 'SIGN_UP')),
});
const formats = new Intl.NumberFormat('en');

inChromium('the numbers of the board', () => {
  const boards = boardTest(() => []);
  let pages = 0;

  test('are those that SQL counts', async () => {
    const check = async (ads: readonly object[]) => {
      const page = `page ${++pages}`;
      const own = (_: object, index: number) => ({ id: uuidOf(`${page} ${index}`), pageId: page });
      await boards.service.add(ads.map((ad, index) => ({ ...ad, ...own(ad, index) })));
      const args = { filters: { pageId: [page] }, maxAds: 100, maxCredits: 100 };
      const shown = await boards.show({ tool: 'gather_ads', args });
      await reads(shown, `${ads.length} ads`);
      const { charts, states } = await drawnOn(shown);

      const { data } = await (await boards.server()).call('query_ads', {
        sql: `WITH own AS (SELECT *, CASE active WHEN 1 THEN 'Running' WHEN 0 THEN 'Ended' ELSE 'State unknown' END AS state
            FROM ads WHERE pageId = '${page}')
          SELECT 'state', state, count(*) FROM own GROUP BY 2
          UNION ALL SELECT 'days', daysRunning, count(*) FROM own WHERE daysRunning IS NOT NULL GROUP BY 2
          UNION ALL SELECT 'median', '', median(daysRunning) FROM own
          UNION ALL SELECT 'month', startedMonth, count(*) FROM own WHERE startedMonth IS NOT NULL GROUP BY 2
          UNION ALL SELECT 'Format', displayFormat, count(*) FROM own WHERE displayFormat IS NOT NULL GROUP BY 2
          UNION ALL SELECT 'Call to action', ctaType, count(*) FROM own WHERE ctaType IS NOT NULL GROUP BY 2`,
        limit: 1000,
      });
      const counted = (wanted: string) =>
        (data.rows as [string, unknown, number][]).flatMap(([kind, value, count]): Count[] =>
          kind === wanted ? [[String(value), count]] : [],
        );

      // What all ads have filters nothing.
      const known = counted('state');
      expect(states.toSorted()).toEqual(known.length === 1 ? [] : known.toSorted());

      const [days, months] = [counted('days'), counted('month')];
      const { 'Days running': runs, 'Launches by month': launches } = charts;
      const unknownRuns = ads.length - sum(days);
      expect([runs, launches].map((chart) => chart !== undefined)).toEqual(
        [days, months].map(({ length }) => length > 0),
      );
      if (runs) {
        expectBars(runs, days, isOfDays);
        expect(runs.note).toBe(`median ${formats.format(counted('median')[0]?.[1] ?? 0)}`);
        expect(runs.ends).toMatch(unknownRuns > 0 ? new RegExp(`^0${unknownRuns} unknown`) : /^(?!.*unknown)/);
      }
      if (launches) {
        expectBars(launches, months, isOfMonth);
        const unknown = ads.length - sum(months);
        expect(launches.note).toMatch(unknown > 0 ? new RegExp(`^${unknown} unknown$`) : /^peak/);
      }
      for (const title of ['Format', 'Call to action']) {
        const values = counted(title).map(([, ads]) => ads);
        if (values.length === 0) expect(charts[title]).toBeUndefined();
        else {
          const bars = charts[title]?.bars ?? [];
          const { Others: others = 0, 'Not stated': none = 0, ...named } = Object.fromEntries(bars);
          const largest = values.toSorted((a, b) => b - a).slice(0, Object.keys(named).length);
          expect(Object.values(named)).toEqual(largest);
          expect([sum(bars), none + sum(counted(title))]).toEqual([ads.length, ads.length]);
          expect(others).toBe(ads.length - none - sum(largest.map((ads) => ['', ads])));
        }
      }
    };
    const someAds = fc.array(someAd, { minLength: 8, maxLength: 40 });
    await fc.assert(fc.asyncProperty(someAds, check), { numRuns: 4, endOnFailure: true });
  });
});
