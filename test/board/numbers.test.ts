import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ShownBoard } from '../support/board/board-host.ts';
import { now, someAds } from '../support/board/board-service.ts';
import { boardTest, reads } from '../support/board/board-test.ts';
import { inChromium } from '../support/board/in-chromium.ts';
import { uuidOf } from '../support/uuid-of.ts';

const textOf = ({ board }: ShownBoard, selector: string) => board.locator(selector).textContent();
const heights = async (shown: ShownBoard) =>
  (await shown.messages('ui/notifications/size-changed')).map(({ params }) => Number(params.height));

inChromium('what the board states of a part', { timeout: 60_000 }, () => {
  const boards = boardTest(someAds(90));

  test('a search that found more says so in its heading and over its charts, with filters as well', async () => {
    const shown = await boards.show({ tool: 'search_ads', args: { limit: 20 } });
    await reads(shown, '20 of 90 ads');
    expect(await textOf(shown, '#part')).toBe('Charts of the 20 ads shown, out of 90. The others may look different.');
    await shown.board.locator('.chip', { hasText: /^Running/ }).click();
    await reads(shown, '10 of 20 ads');
    expect(await textOf(shown, '#part')).toContain('the 10 ads shown, out of 90');
  });

  test('a gathering that is not complete says so, and one that is makes no such remark', async () => {
    const part = await boards.show({
      tool: 'gather_ads',
      args: { filters: { countries: ['DE'] }, maxAds: 10, maxCredits: 50 },
    });
    await reads(part, '10 of 45 ads');
    expect(await textOf(part, '#part')).toContain('of the 10 ads shown, out of 45');
    expect(await textOf(part, '#subtitle')).toContain('not complete');
    const all = await boards.show({ tool: 'gather_ads', args: { maxAds: 90, maxCredits: 50 } });
    await reads(all, '90 ads');
    expect(await textOf(all, '#part')).toBe('');
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

  test.each([360, 1100])('an estimate takes one line, %d pixels wide', async (width) => {
    for (const config of [undefined, { demo: true }]) {
      const filters = { countries: ['AT'] };
      const shown = await boards.show({ tool: 'gather_ads', args: { filters, maxCredits: 0 }, width }, config);
      const price = '(?:at most|about) [\\d,]+ credits?$';
      const size = new RegExp(config ? `^[\\d,]+ demo ads in \\d+ pages?, ${price}` : `^45 ads in 1 page, ${price}`);
      await shown.board.locator('#title', { hasText: size }).waitFor();
      await expect.poll(async () => (await heights(shown)).at(-1)).toBeLessThan(50);
      expect(await shown.board.locator('body').innerText()).not.toContain('no ads');
      expect(shown.calls).toEqual([]);
    }
  });

  test('an estimate of what is read in part is about the rest, and what is read is drawn', async () => {
    const filters = { countries: ['US'] };
    const estimated = { tool: 'gather_ads', args: { filters, maxCredits: 0 } };
    const part = await boards.show({ tool: 'gather_ads', args: { filters, maxAds: 10, maxCredits: 50 } });
    await reads(part, '10 of 45 ads');
    const rest = await boards.show(estimated);
    await rest.board
      .locator('#title', { hasText: /^35 of 45 ads in 1 page, (?:at most|about) \d+ credits?$/ })
      .waitFor();
    const all = await boards.show({ tool: 'gather_ads', args: { filters, maxAds: 90, maxCredits: 50 } });
    await reads(all, '45 ads');
    const held = await boards.show(estimated);
    await reads(held, '45 ads');
    await held.board.locator('.card').first().waitFor();
  });

  test('an error shows all that it explains, without the line of demo data, and asks the conversation again', async () => {
    const args = { filters: { colour: 'red' } };
    const { text } = await (await boards.service.start({ demo: true })).call('search_ads', args);
    const [notice = '', ...explanation] = text.split('\n');
    expect(notice).toMatch(/^DEMO DATA/);
    expect(explanation.length).toBeGreaterThan(2);
    const shown = await boards.show({ tool: 'search_ads', args }, { demo: true });
    const problem = shown.board.getByRole('alert');
    await problem.waitFor();
    expect(await problem.locator('p').first().textContent()).toBe(explanation.join('\n'));
    expect(await shown.board.locator('body').innerText()).not.toMatch(/DEMO DATA|0 ads/);
    expect((await heights(shown)).at(-1)).toBeLessThan(500);
    await problem.getByRole('button', { name: 'Try again' }).click();
    await shown.board.getByRole('status').getByText('The conversation was asked to try again.').waitFor();
    const [message] = await shown.messages('ui/message');
    expect(JSON.stringify(message?.params)).not.toMatch(/colour|red"/);
  });

  test('ads that did not come are asked for again, and the heading says what is there until then', async () => {
    let calls = 0;
    const failing = (result: Record<string, unknown>) => {
      if (JSON.stringify(result._meta ?? {}).includes('"left"')) calls++;
      if (calls === 1) throw new Error('Not now.');
      return result;
    };
    const shown = await boards.show({ tool: 'gather_ads', args: { maxAds: 90, maxCredits: 50 }, passOn: failing });
    await shown.board.getByRole('alert').getByText('The ads could not be read. Not now.').waitFor();
    await shown.board.getByRole('button', { name: 'Try again' }).click();
    await reads(shown, '90 ads');
    expect(await textOf(shown, '#problem')).toBe('');
  });
});

inChromium(
  'a gathering of thousands',
  () => {
    const boards = boardTest(someAds(2600));
    const gathered = { tool: 'gather_ads', args: { maxAds: 10_000, maxCredits: 5000 } };

    test('is sorted, filtered and drawn as a whole', async () => {
      const shown = await boards.show(gathered);
      await reads(shown, '2,600 ads');
      expect(await shown.board.locator('#list .open').first().textContent()).toBe('Offer 2598');
      expect(await textOf(shown, '#charts figure:nth-child(2) .ends')).toBe('02,603');
      expect(await shown.board.locator('.chip', { hasText: /^Running/ }).textContent()).toBe('Running1,300');
      await shown.board.getByLabel('Sort').selectOption('Copies of the ad');
      expect(await shown.board.locator('#list .open').first().textContent()).toBe('Offer 2599');
      await shown.board.locator('#list .open').first().click();
      await shown.board.getByRole('dialog').getByText('Its second line.').waitFor();
    });

    test('shows what came when a call fails, and reads on from there', async () => {
      let calls = 0;
      const shown = await boards.show({
        ...gathered,
        passOn: (result) => {
          if (JSON.stringify(result._meta ?? {}).includes('"left"') && ++calls === 3) throw new Error('Not now.');
          return result;
        },
      });
      await shown.board.getByRole('alert').getByText('Not now.').waitFor();
      const [, here = ''] = /^([\d,]+) of 2,600 ads$/.exec((await textOf(shown, '#count')) ?? '') ?? [];
      expect(await textOf(shown, '#part')).toBe(
        `Charts of the ${here} ads shown, out of 2,600. The others may look different.`,
      );
      const read = Number(here.replace(',', ''));
      expect(await textOf(shown, '#subtitle')).toContain(`${(2600 - read).toLocaleString('en')} more to come`);
      const before = shown.calls.length;
      await shown.board.getByRole('button', { name: 'Try again' }).click();
      await reads(shown, '2,600 ads');
      const asked = shown.calls
        .slice(before)
        .flatMap(({ name, arguments: { ids } }) => (name === 'board_ads' ? [ids as string[]] : []));
      expect(new Set(asked.flat()).size).toBe(2600 - read);
    });
  },
  60_000,
);

/** What the charts and the filters of the board say, by their names. */
interface Drawn {
  notes: string[];
  /** What stands below a chart. */
  ends: string[];
  columns: Record<string, number>[];
  shares: Record<string, number>[];
  states: Record<string, number>;
}

const drawnOn = async ({ board }: ShownBoard): Promise<Drawn> => {
  return board.locator('main').evaluate((main) => {
    const number = (text: string | null | undefined) => Number((text ?? '').replaceAll(',', ''));
    const figures = [...main.querySelectorAll('#charts figure')];
    const pairs = (of: [string, number][]) => Object.fromEntries(of);
    return {
      notes: figures.map((figure) => figure.querySelector('figcaption')?.textContent ?? ''),
      ends: figures.map((figure) => figure.querySelector('.ends')?.textContent ?? ''),
      columns: figures.map((figure) =>
        pairs(
          [...figure.querySelectorAll('rect > title')].map((at) => {
            const [name = '', ads] = (at.textContent ?? '').split(': ');
            return [name, number(ads)];
          }),
        ),
      ),
      shares: figures.map((figure) =>
        pairs(
          [...figure.querySelectorAll('.shares li')].map((row) => [
            row.querySelector('.name')?.textContent ?? '',
            number(row.querySelector('b')?.textContent),
          ]),
        ),
      ),
      states: pairs(
        [...main.querySelectorAll('[aria-label="State"] .chip[data-key^="state "]')].map((chip) => [
          chip.querySelector('span')?.textContent ?? '',
          number(chip.querySelector('small')?.textContent),
        ]),
      ),
    };
  });
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

inChromium('the numbers of the board', () => {
  const boards = boardTest(() => []);
  let run = 0;
  const rowsOf = async (sql: string) =>
    (await (await boards.server).call('query_ads', { sql, limit: 1000 })).data.rows as [never, number][];
  const shownNumber = (value: number) => new Intl.NumberFormat('en').format(value);

  test('are those that SQL counts', { timeout: 240_000 }, async () => {
    const check = async (ads: readonly object[]) => {
      const page = `page ${++run}`;
      const records = ads.map((ad, index) => ({
        id: uuidOf(`${page} ${index}`),
        pageId: page,
        page: { pageName: page },
        ...ad,
      }));
      await boards.service.library.import(
        (async function* () {
          yield records.map((ad) => `${JSON.stringify(ad)}\n`).join('');
        })(),
      );
      const args = { filters: { pageId: [page] }, maxAds: 100, maxCredits: 100 };
      const shown = await boards.show({ tool: 'gather_ads', args });
      await reads(shown, `${ads.length} ads`);
      const drawn = await drawnOn(shown);
      const from = `FROM ads WHERE pageId = '${page}'`;
      const noteOf = (name: string) => drawn.notes.find((note) => note.startsWith(name)) ?? '';

      const states = await rowsOf(
        `SELECT CASE active WHEN 1 THEN 'Running' WHEN 0 THEN 'Ended' ELSE 'State unknown' END, count(*) ${from} GROUP BY 1`,
      );
      // What all ads have filters nothing.
      expect(drawn.states).toEqual(states.length === 1 ? {} : Object.fromEntries(states));

      const [[median, known] = [null, 0]] = await rowsOf(`SELECT median(daysRunning), count(daysRunning) ${from}`);
      expect(noteOf('Days running')).toBe(known === 0 ? '' : `Days runningmedian ${shownNumber(Number(median))}`);
      const isUnknown = known > 0 && known < ads.length;
      expect(drawn.ends.filter((text) => text.includes('unknown'))).toEqual(
        isUnknown ? [expect.stringContaining(`0${ads.length - known} unknown`)] : [],
      );
      const runs = await rowsOf(`SELECT daysRunning, count(*) ${from} AND daysRunning IS NOT NULL GROUP BY 1`);
      const columns = drawn.columns.find((_, index) => drawn.notes[index]?.startsWith('Days')) ?? {};
      for (const [name, count] of Object.entries(columns)) {
        const [first = 0, last = first] = (name.match(/\d+/g) ?? []).map(Number);
        const within = runs.filter(([days]) => Number(days) >= first && Number(days) <= last);
        expect([name, count]).toEqual([name, within.reduce((sum, [, of]) => sum + of, 0)]);
      }
      expect(Object.values(columns).reduce((sum, count) => sum + count, 0)).toBe(known);

      const started = await rowsOf(`SELECT startedMonth, count(*) ${from} AND startedMonth IS NOT NULL GROUP BY 1`);
      const months = Object.entries(drawn.columns.find((_, index) => drawn.notes[index]?.startsWith('Launches')) ?? {});
      for (const [name, count] of months) {
        const month = new Date(`1 ${name.slice(0, 8)} UTC`).toISOString().slice(0, 7);
        const isIn = (at: string) =>
          name.endsWith('earlier') ? at <= month : name.endsWith('later') ? at >= month : at === month;
        const within = started.filter(([at]) => isIn(at));
        expect([name, count]).toEqual([name, within.reduce((sum, [, of]) => sum + of, 0)]);
      }
      const launched = started.reduce((sum, [, of]) => sum + of, 0);
      expect(months.reduce((sum, [, count]) => sum + count, 0)).toBe(launched);
      if (launched > 0 && launched < ads.length)
        expect(noteOf('Launches')).toBe(`Launches by month${ads.length - launched} unknown`);

      for (const [name, column] of [
        ['Format', 'displayFormat'],
        ['Call to action', 'ctaType'],
      ]) {
        const values = await rowsOf(`SELECT ${column}, count(*) ${from} GROUP BY 1`);
        const shares = drawn.shares.find((_, index) => drawn.notes[index] === name);
        const stated = values.filter(([value]) => value !== null).map(([, of]) => of);
        if (stated.length === 0) expect(shares).toBeUndefined();
        else {
          const { Others: others = 0, 'Not stated': none = 0, ...named } = shares ?? {};
          const sum = (of: readonly number[]) => of.reduce((all, each) => all + each, 0);
          expect(none).toBe(ads.length - sum(stated));
          const largest = stated.toSorted((a, b) => b - a).slice(0, Object.keys(named).length);
          expect(Object.values(named)).toEqual(largest);
          expect(others).toBe(sum(stated) - sum(largest));
        }
      }
    };
    await fc.assert(fc.asyncProperty(fc.array(someAd, { minLength: 8, maxLength: 40 }), check), {
      numRuns: 6,
      endOnFailure: true,
    });
  });
});
