import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { AdService, adOf } from '../support/ad-service.ts';
import { json, paid, refusal, startUpstream } from '../support/faulty-upstream.ts';
import { run, start } from '../support/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
let names = 0;
/** Processes start late on a busy machine. */
const slow = { timeout: 20_000 };
const newPath = (ending = '') => join(folder, `${++names}${ending}`);
const call = (...args: string[]) => run(['call', ...args]);
const demo = (...args: string[]) => call(...args, '--demo');

/** A service, and the command with its address and a key. */
async function serviceOf(count: number) {
  const upstream = await startUpstream();
  onTestFinished(upstream.close);
  const service = new AdService(count);
  upstream.does(service.behaviour);
  const env = { AD_LIBRARY_API_KEY: 'svc_live_CANARY_0123456789', AD_LIBRARY_BASE_URL: upstream.baseUrl };
  return {
    upstream,
    service,
    env,
    call: (args: string[], options: object = {}) => run(['call', ...args], { env, ...options }),
    start: (args: string[]) => start(['call', ...args], env),
  };
}

describe('a call from a shell', () => {
  test('prints what a model reads, or the data, whatever the form of results is', async () => {
    expect((await demo('search_ads', '{"limit": 2}')).stdout).toMatch(/^DEMO DATA: .*\n2 ads, 2380 found/);
    const { call } = await serviceOf(30);
    const search = ['search_ads', '{"limit": 2}'];
    for (const output of ['text', 'structured']) {
      const text = await call([...search, '--output', output]);
      expect(text).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^2 ads, 30 found/) });
      const data = await call([...search, '--json', '--output', output]);
      expect(data.stdout).toMatch(/^\{.*\}\n$/);
      expect(JSON.parse(data.stdout)).toMatchObject({ totalHits: 30, receipt: { charged: 1 } });
    }
    const { stdout } = await call(['search_ads', '-', '--json'], { input: '{"limit": 1}' });
    expect(JSON.parse(stdout).items).toHaveLength(1);
  });

  test('is 1 where the result is an error, which is printed in its place', async () => {
    const { upstream, call, env } = await serviceOf(1);
    upstream.does(refusal(403));
    const text = await call(['get_page', '{"pageId": "p"}']);
    expect(text).toMatchObject({ code: 1, stderr: '' });
    expect(text.stdout).toContain('The service says no.');
    const data = await call(['get_page', '{"pageId": "p"}', '--json']);
    expect(data.code).toBe(1);
    expect(JSON.parse(data.stdout)).toMatchObject({ kind: 'forbidden', status: 403, retryable: false });
    expect(data.stderr).toContain('The service says no.');
    expect(text.stdout + data.stdout + data.stderr).not.toContain(env.AD_LIBRARY_API_KEY);
    expect((await run(['call', 'whoami', '--json'])).stdout).toContain('"no_api_key"');
  });

  test.each([
    [['serach_ads'], 'there is no tool "serach_ads": did you mean search_ads?'],
    [['\u001b[2J'], 'tools: search_ads, get_ad'],
    [['board_ads'], "it belongs to the board's page and cannot be called"],
    [['whoami', '{oops'], 'the arguments are not JSON'],
    [['whoami', '[]'], 'the arguments must be a JSON object'],
    [['whoami', '{}', '{}'], "too many arguments for 'call'"],
    [['whoami', '--jsno'], "unknown option '--jsno' (Did you mean --json?)"],
    [['whoami', '--tools', 'get_ad'], 'whoami is not among the tools that the settings leave'],
    [['add_collection_item', '--read-only'], 'add_collection_item is not among the tools'],
    [['label_ads', '{}'], 'label_ads keeps what it is given, and this process ends with the call'],
    [['search_ads', '--out', join(folder, 'x')], '--out: the result of search_ads holds no picture and no file'],
    [['query_ads', '--out', folder], 'is a folder'],
    [['query_ads', '--out', join(folder, 'none', 'x')], 'is no folder that can be written to'],
  ])('%j is wrong use', async (args, problem) => {
    const { code, stdout, stderr } = await demo(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(problem);
    expect(stderr).toMatch(/^ad-library-mcp: [^\n\P{ASCII}]+\n/u);
  });

  test('writes the picture or the file of a result, and replaces none unless it is told to', async () => {
    const sql = 'SELECT 1 AS n, 2 AS m';
    const [csv, png] = [newPath('.csv'), newPath('.png')];
    expect(await demo('export_ads', JSON.stringify({ sql }), '--out', csv)).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(csv, 'utf8')).toContain('1,2');
    writeFileSync(csv, 'mine');
    const refused = await demo('export_ads', JSON.stringify({ sql }), '--out', csv);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('is there already; --force replaces it');
    expect(readFileSync(csv, 'utf8')).toBe('mine');
    const kept = ['--files', newPath(), '--base-url', 'http://127.0.0.1:1'];
    expect((await demo('export_ads', JSON.stringify({ sql }), '--out', csv, '--force', ...kept)).code).toBe(0);
    expect(readFileSync(csv, 'utf8')).toContain('1,2');
    const chart = JSON.stringify({ sql: "SELECT 'a' AS name, 2 AS number", chart: 'bar' });
    expect((await demo('query_ads', chart, '--out', png)).code).toBe(0);
    expect(readFileSync(png).subarray(0, 3).toString('hex')).toMatch(/^(89504e|ffd8ff)$/);
    const none = newPath();
    const { code, stderr } = await demo('query_ads', JSON.stringify({ sql }), '--out', none);
    expect([code, existsSync(none)]).toEqual([2, false]);
    expect(stderr).toContain('holds no picture and no file');
  });

  test('keeps the dataset in the folder, where the next call finds it', async () => {
    const { call, service } = await serviceOf(30);
    const files = ['--files', newPath()];
    expect((await call(['gather_ads', '{"maxCredits": 5}', ...files])).code).toBe(0);
    const { stdout } = await call(['query_ads', '{"sql": "SELECT count(*) FROM ads"}', '--json', ...files]);
    expect(JSON.parse(stdout).rows).toEqual([[30]]);
    const [[adId]] = JSON.parse(
      (await call(['query_ads', '{"sql": "SELECT id FROM ads"}', '--json', ...files])).stdout,
    ).rows;
    const labels = [{ adId, label: 'hook', value: 'question' }];
    expect((await call(['label_ads', JSON.stringify({ labels }), ...files])).stdout).toContain('Kept 1 label of 1 ad.');
    const labelled = await call(['query_ads', '{"sql": "SELECT adId, value FROM labels"}', '--json', ...files]);
    expect(JSON.parse(labelled.stdout).rows).toEqual([[adId, 'question']]);
    const spent = JSON.parse((await call(['get_credits', '--json', ...files])).stdout).thisServer;
    expect(spent).toMatchObject({ charged: service.charged, day: new Date().toISOString().slice(0, 10) });
  });

  test('ends when it is asked to while it waits for its arguments', async () => {
    const waiting = start(['call', 'whoami', '-']);
    const again = setInterval(() => waiting.child.kill('SIGTERM'), 300);
    const { code, stdout } = await waiting.ended;
    clearInterval(again);
    expect(stdout).toBe('');
    expect([1, null]).toContain(code);
  });

  test('returns what it has when it is asked to end', async () => {
    const { service, start, upstream } = await serviceOf(500);
    service.price = () => 1;
    service.instead = ({ number }) =>
      number === 2
        ? (request, response) =>
            setTimeout(
              () => json({ items: [adOf(300)], hasMore: true, cursor: '301' }, { headers: paid(0) })(request, response),
              500,
            )
        : undefined;
    const running = start(['gather_ads', '{"maxCredits": 9, "maxAds": 500}', '--json']);
    await upstream.reached(3);
    running.child.kill('SIGTERM');
    const { code, stdout } = await running.ended;
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ stopped: 'shutdown', gathering: expect.any(String) });
  });
});

describe('watches from a shell', () => {
  test('need a folder that keeps them', async () => {
    for (const args of [['watch_ads'], ['check_watches', '{"maxCredits": 1}'], ['label_ads', '{"labels": []}']]) {
      const { code, stdout, stderr } = await run(['call', ...args]);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toContain('AD_LIBRARY_FILES (or --files) must name a folder');
    }
    expect((await demo('watch_ads', '--files', newPath())).stderr).toContain('demo data is not kept');
  });

  // Making folders there in one step never returns.
  test.runIf(existsSync('/proc/self'))('end where the folder cannot be made', async () => {
    const env = { AD_LIBRARY_API_KEY: 'svc_live_folder', AD_LIBRARY_BASE_URL: 'http://127.0.0.1:9' };
    const { code } = await run(['call', 'watch_ads', '--files', '/proc/nope'], { env });
    expect(code).toBe(1);
  });

  test('lose no news and pay nothing twice when a check is killed, and are read once by two at a time', async () => {
    const { service, call, start, upstream } = await serviceOf(20);
    const files = ['--files', newPath()];
    const check = ['check_watches', '{"maxCredits": 99}', '--json', ...files];
    for (const q of ['a', 'b', 'c'])
      await call(['watch_ads', JSON.stringify({ name: q, filters: { q }, maxCredits: 20 }), ...files]);
    expect((await call(check)).code).toBe(0);
    const [gone, ...others] = service.ads;
    service.ads = [adOf(500), ...others];
    const before = service.charged;
    service.instead = ({ filters }) => (filters.q === 'c' ? () => {} : undefined);
    const killed = start(check);
    await expect.poll(() => service.searches.filter(({ filters }) => filters.q === 'c').length, slow).toBe(2);
    killed.child.kill('SIGKILL');
    await killed.ended;
    // What is left is answered when both are there.
    const seen = upstream.requests.length;
    service.instead =
      () =>
      async (request, response, body = '') => {
        const whoamis = () => upstream.requests.slice(seen).filter(({ path }) => path.endsWith('/whoami'));
        await expect.poll(() => whoamis().length, slow).toBe(2);
        await new Promise((resolve) => setTimeout(resolve, 1000));
        service.instead = () => undefined;
        service.answer(body)(request, response, body);
      };
    const ran = await Promise.all([call(check), call(check)]);
    for (const { code, stdout } of ran) {
      expect(code).toBe(0);
      const news = { new: [adOf(500).id], changed: [], gone: [gone?.id], complete: true };
      expect(JSON.parse(stdout).watches).toMatchObject([news, news, news]);
    }
    expect(service.charged - before).toBe(6);
  });
});

describe('a budget with a folder', () => {
  const search = ['search_ads', '{"limit": 10}'];

  test('is for all calls of a day, for each key', async () => {
    const { service, call, env } = await serviceOf(100);
    const limits = ['--credit-budget', '3', '--files', newPath()];
    const codes: (number | null)[] = [];
    for (let time = 0; time < 4; time++)
      codes.push((await call([...search.slice(0, 1), `{"limit": 10, "filters": {"n": ${time}}}`, ...limits])).code);
    expect(codes).toEqual([0, 0, 0, 1]);
    const { stdout } = await call([...search, ...limits]);
    expect(stdout).toMatch(/Budget of 3 credits for \d{4}-\d\d-\d\d \(UTC\): 3 spent/);
    expect(service.charged).toBe(3);
    const other = { env: { ...env, AD_LIBRARY_API_KEY: 'svc_live_OTHER_0123456789' } };
    expect((await call([...search, ...limits], other)).code).toBe(0);
    // Without a folder, every call is a server of its own.
    expect((await call([...search, '--credit-budget', '1'])).code).toBe(0);
  });

  test('holds while processes call at once, and counts what was reserved by those that are killed', async () => {
    const { service, call, start, upstream } = await serviceOf(100);
    const limits = ['--credit-budget', '6', '--files', newPath()];
    // Then the price is known.
    await call([...search, ...limits]);
    const filters = (n: number) => `{"limit": 10, "filters": {"n": ${n}}}`;
    service.instead = () => () => {};
    const hanging = [1, 2].map((n) => start(['search_ads', filters(n), ...limits]));
    await upstream.reached(upstream.requests.length + 2);
    await expect.poll(() => service.searches.length, slow).toBe(3);
    for (const { child } of hanging) child.kill('SIGKILL');
    await Promise.all(hanging.map(({ ended }) => ended));
    service.instead = () => undefined;
    const ran = await Promise.all([3, 4, 5, 6, 7, 8].map((n) => call(['search_ads', filters(n), ...limits])));
    expect(ran.filter(({ code }) => code === 0)).toHaveLength(3);
    expect(service.charged).toBe(4);
    expect(ran.find(({ code }) => code === 1)?.stdout).toMatch(/2 counted for calls whose charge is unknown/);
  });
});
