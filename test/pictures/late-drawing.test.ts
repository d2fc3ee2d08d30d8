import { afterAll, expect, test } from 'vitest';
import type { Chart } from '../../src/charts/chart.ts';
import { startPictureHost } from '../support/picture-host.ts';
import { createJpeg, openTestPictures } from './sample-pictures.ts';

const host = await startPictureHost();
const { signal } = new AbortController();
afterAll(host.close);

const chart: Chart = {
  width: 100,
  height: 50,
  shapes: [{ kind: 'text', text: 'Serra', x: 5, y: 30, size: 12, anchor: 'start', color: 'ink' }],
};
const late = { reason: expect.stringContaining('drawing it took too long; the same call may draw it later') };

test('a tool call returns a reason instead of a chart if drawing the chart takes too long', async () => {
  const opened = openTestPictures([host.host], { decodeTimeoutMs: 0.01 });
  expect(await opened.forTenant('tenant').drawChart(chart, { signal, getRemainingMs: () => 60_000 })).toEqual(late);
  await opened.close();
});

test('view_ads returns separate pictures and a reason if the combined picture is not drawn in time', async () => {
  const opened = openTestPictures([host.host], { decodeTimeoutMs: 30_000 });
  const tile = { number: 1, pictureUrl: host.serve(await createJpeg()) };
  const sheet = await opened
    .forTenant('tenant')
    .drawSheet([tile], { signal, maxWaitMs: 60_000, getRemainingMs: () => 0 });
  expect(sheet).toEqual({
    ...late,
    tiles: [{ number: 1, jpeg: expect.anything(), perceptualHash: expect.any(String) }],
  });
  await opened.close();
});

test('a chart can be drawn after an earlier drawing timed out', async () => {
  const opened = openTestPictures([host.host], { decodeTimeoutMs: 30_000 });
  const pictures = opened.forTenant('tenant');
  expect(await pictures.drawChart(chart, { signal, getRemainingMs: () => 0 })).toEqual(late);
  expect(await pictures.drawChart(chart, { signal, getRemainingMs: () => 60_000 })).toEqual({
    jpeg: expect.any(Uint8Array),
    hasNumberedLabels: false,
  });
  await opened.close();
});

test('a call that is cancelled while its chart is drawn fails with the reason for the cancellation', async () => {
  const opened = openTestPictures([host.host], { decodeTimeoutMs: 30_000 });
  const abort = new AbortController();
  const drawing = opened.forTenant('tenant').drawChart(chart, { signal: abort.signal, getRemainingMs: () => 60_000 });
  abort.abort(new Error('cancelled'));
  await expect(drawing).rejects.toThrow('cancelled');
  await opened.close();
});
