import { setMaxListeners } from 'node:events';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { until } from '../support/http.ts';
import { startPictureHost } from '../support/picture-host.ts';
import { jpegOf, scanBomb } from './sample-pictures.ts';
import { openTestPictures } from './test-pictures.ts';

const host = await startPictureHost();
const opened = openTestPictures([host.host], { maxFetchesPerTenant: 2, drawMs: 2000 });
const pictures = opened.of('tenant');
const { signal } = new AbortController();
setMaxListeners(0, signal);
const show = (address: string, options: { signal?: AbortSignal; side?: number } = {}) =>
  pictures.thumbnail(address, { side: 100, signal, ...options });

beforeEach(() => {
  host.requests.length = 0;
});
afterAll(async () => {
  await opened.close();
  await host.close();
});

test('while a picture is decoded, only so many others are fetched', async () => {
  const bomb = show(host.serve(scanBomb(20_000)));
  await until(() => host.requests.length === 1);
  // One that overtakes the first on its way to the decoder makes room for another.
  let done = 0;
  const all = Promise.all(
    Array.from({ length: 8 }, async (_, at) =>
      show(host.serve(await jpegOf({ width: 50 + at }))).finally(() => {
        done++;
      }),
    ),
  );
  expect(await bomb).toEqual({ reason: 'decoding it takes too long' });
  expect(host.requests.length - done).toBeLessThanOrEqual(2);
  for (const shown of await all) expect(shown).toHaveProperty('jpeg');
  expect(host.requests).toHaveLength(9);
});

test('a picture that is asked for several times at once is fetched once, and then cached', async () => {
  const address = host.serve(await jpegOf({ width: 77 }));
  const shown = await Promise.all(Array.from({ length: 20 }, () => show(address)));
  for (const each of shown) expect(each).toBe(shown[0]);
  expect(await show(address)).toBe(shown[0]);
  expect(host.requests).toHaveLength(1);
  expect(await show(address, { side: 40 })).toHaveProperty('jpeg');
});

test('whoever leaves takes the picture from nobody; once all have left, its request ends', async () => {
  const answers: (() => void)[] = [];
  const jpeg = await jpegOf({ width: 78 });
  const address = host.serve((response) => void answers.push(() => response.end(jpeg)));
  const ask = () => {
    const leaving = new AbortController();
    return { shown: show(address, { signal: leaving.signal }), leave: () => leaving.abort(new Error('left')) };
  };
  const [first, second] = [ask(), ask()];
  await until(() => answers.length === 1);
  first.leave();
  await expect(first.shown).rejects.toThrow('left');
  second.leave();
  await expect(second.shown).rejects.toThrow('left');
  await until(() => host.open() === 0);
  const [third, fourth] = [ask(), ask()];
  await until(() => answers.length === 2);
  third.leave();
  await expect(third.shown).rejects.toThrow('left');
  answers[1]?.();
  expect(await fourth.shown).toHaveProperty('jpeg');
});
