import { monitorEventLoopDelay } from 'node:perf_hooks';
import { expect } from 'vitest';
import { createAd, serveAds } from '../../support/ad-service.ts';
import { deriveUuid } from '../../support/derive-uuid.ts';
import { httpTest as test } from '../../support/fixtures.ts';
import { createToolCall } from '../../support/http.ts';

const [busyKey, otherKey] = ['svc_live_busy', 'svc_live_other'];
const adIds = Array.from({ length: 200 }, (_, index) => deriveUuid(`${index}`));
const sections = (content: object) => Array.from({ length: 20 }, (_, nr) => ({ heading: `Part ${nr}`, ...content }));
const wideCells = Array.from({ length: 33 }, (_, at) => `replace(hex(zeroblob(150)), '0', '&') AS c${at}`);
const wideTable = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) SELECT ${wideCells} FROM n`;

const lineBreaks = "replace(hex(zeroblob(950000)), '0', char(10))";
const reportOf = (content: object) => createToolCall('write_report', { title: 'Heavy', sections: sections(content) });

/** Expensive calls, and how many of them one API key makes at once. */
const expensiveCalls = {
  'a report of 200 MB': { calls: 1, call: reportOf({ sql: wideTable }) },
  'sixteen reports of 240 cards': { calls: 16, call: reportOf({ adIds: adIds.slice(0, 12) }) },
  'a CSV of fourteen million line breaks': {
    calls: 1,
    call: createToolCall('export_ads', { format: 'csv', sql: `SELECT ${lineBreaks} FROM ads LIMIT 7` }),
  },
};

/** The longest allowed pause of the event loop. Longer than one step of the work, much shorter than the whole work. */
const maxBlockedMs = 1500;

test.for(Object.entries(expensiveCalls))(
  'an expensive request with one API key (%s) does not block requests with another API key',
  async ([_, { calls, call }], { serve, upstream }) => {
    const service = serveAds(upstream, 0);
    service.ads = adIds.map((_, index) => createAd(index, { body: 'Walk more. '.repeat(100) }));
    const { post } = await serve(service.respond);
    await post(busyKey, createToolCall('gather_ads', { filters: {}, maxAds: 200, maxCredits: 100 }));
    await post(otherKey);
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    let endedCalls = 0;
    const heavyCalls = Array.from({ length: calls }, () => post(busyKey, call).finally(() => endedCalls++));
    expect((await post(otherKey)).json).toMatchObject({ result: { structuredContent: { authenticated: true } } });
    expect(endedCalls).toBeLessThan(calls);
    await Promise.all(heavyCalls);
    delay.disable();
    expect(delay.max / 1e6).toBeLessThan(maxBlockedMs);
  },
);
