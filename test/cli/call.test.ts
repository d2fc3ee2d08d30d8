import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { toolNames } from '../../src/app.ts';
import { type CallJob, callOnce } from '../../src/cli/call.ts';
import { readCommand } from '../../src/cli/parse.ts';
import { readConfig, SettingsError } from '../../src/config/read-config.ts';
import { createLog } from '../../src/logging/log.ts';
import { createAd, serveAds } from '../support/ad-service.ts';
import { errorResponse, startUpstream } from '../support/faulty-upstream.ts';
import { createGate } from '../support/gate.ts';
import { runCommand, startCommand } from '../support/process.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const folder = createTemporaryFolder();
let names = 0;
const newPath = (ending = '') => join(folder, `${++names}${ending}`);

type Environment = Record<string, string>;

/** The command in this process: it reads the same words and settings, and each call opens and closes a server of its own. */
async function call(words: string[], env: Environment = {}) {
  const printed = { stdout: '', stderr: '' };
  const say = (text: string) => {
    printed.stderr += text;
  };
  const job = readCommand(['call', ...words], '1') as CallJob;
  const toCall = async () => {
    const config = readConfig(env, job.flags, { tools: toolNames, command: 'call' });
    return callOnce(job, {
      config,
      log: createLog('silent', say),
      stdin: Readable.from([]),
      folder,
      print: async (text) => {
        printed.stdout += text;
      },
      say,
      stopRequested: new Promise(() => {}),
      drainMs: 1000,
    });
  };
  const code = await toCall().catch((error) => {
    if (!(error instanceof SettingsError)) throw error;
    say(error.problems.join('\n'));
    return 2;
  });
  return { code, ...printed };
}
const demo = (...words: string[]) => call([...words, '--demo']);

async function serviceOf(count: number) {
  const upstream = await startUpstream();
  onTestFinished(upstream.close);
  const env = { AD_LIBRARY_API_KEY: 'svc_live_CANARY_0123456789', AD_LIBRARY_BASE_URL: upstream.baseUrl };
  return {
    upstream,
    env,
    service: serveAds(upstream, count),
    call: (words: string[], more: Environment = {}) => call(words, { ...env, ...more }),
    start: (words: string[]) => startCommand(['call', ...words], env),
    dataOf: async (words: string[]) => JSON.parse((await call([...words, '--json'], env)).stdout),
  };
}

test('a process prints what a model reads, or the data, and ends with 0, 1 or 2', async () => {
  const env = { AD_LIBRARY_API_KEY: 'svc_live_one', AD_LIBRARY_BASE_URL: 'http://127.0.0.1:1' };
  const [text, data, failed, wrong] = await Promise.all([
    runCommand(['call', 'search_ads', '{"limit": 2}', '--demo']),
    runCommand(['call', 'search_ads', '-', '--json', '--demo'], { input: '{"limit": 1}' }),
    runCommand(['call', 'whoami'], { env }),
    runCommand(['call', '\u001b[2J'], { env }),
  ]);
  expect(text).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringMatching(/^DEMO DATA: .*\n2 ads, 2,380 found/),
  });
  expect(JSON.parse(data.stdout).items).toHaveLength(1);
  expect(failed).toMatchObject({ code: 1, stderr: '' });
  expect(wrong).toMatchObject({ code: 2, stdout: '' });
  expect(wrong.stderr).toMatch(/^ad-library-mcp: there is no tool [^\n\P{ASCII}]+\n$/u);
});

describe('a call from a shell', () => {
  test.each(['text', 'structured'])('has its text and its data where the form of results is %s', async (output) => {
    const { call, dataOf } = await serviceOf(30);
    const search = ['search_ads', '{"limit": 2}', '--output', output];
    expect(await call(search)).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^2 ads, 30 found/),
    });
    expect((await call([...search, '--json'])).stdout).toMatch(/^\{.*\}\n$/);
    expect(await dataOf(search)).toMatchObject({ totalHits: 30, receipt: { charged: 1 } });
  });

  test('is 1 where the result is an error, which is printed in its place', async () => {
    const { upstream, call, env } = await serviceOf(1);
    upstream.respondWith(errorResponse(403));
    const text = await call(['get_page', '{"pageId": "p"}']);
    expect(text).toMatchObject({ code: 1, stderr: '', stdout: expect.stringContaining('The service says no.') });
    const data = await call(['get_page', '{"pageId": "p"}', '--json']);
    expect(data).toMatchObject({ code: 1, stderr: expect.stringContaining('The service says no.') });
    expect(JSON.parse(data.stdout)).toMatchObject({ kind: 'forbidden', status: 403, retryable: false });
    expect(text.stdout + data.stdout + data.stderr).not.toContain(env.AD_LIBRARY_API_KEY);
  });

  test.each([
    [['serach_ads'], 'there is no tool "serach_ads"; did you mean search_ads?'],
    [['\u001b[2J'], 'the tools are search_ads, get_ad'],
    [['board_ads'], "board_ads belongs to the board's page and cannot be called"],
    [['whoami', '{oops'], 'the arguments are not JSON'],
    [['search_ads', '{limit:3}'], 'Write - to send one object to standard input'],
    [['search_ads', '{limit:3}'], '\'{\\"limit\\": 5}\' in PowerShell before version 7.3'],
    [['whoami', '[]'], 'the arguments must be a JSON object'],
    [['whoami', '--tools', 'get_ad'], 'whoami is not among the tools that the settings leave'],
    [['add_collection_item', '--read-only'], 'add_collection_item is not among the tools'],
    [['label_ads', '{}'], 'label_ads needs what is kept between calls, and demo data is not kept'],
    [['watch_ads', '--files', folder], 'demo data is not kept'],
    [['search_ads', '--out', join(folder, 'x')], '--out: the result of search_ads holds no picture and no file'],
    [['query_ads', '--out', folder], 'is a folder'],
    [['query_ads', '--out', '-'], '--out: name a file; standard output has the text'],
    [['query_ads', '--out', join(folder, 'none', 'x')], 'is no folder that can be written to'],
  ])('%j is wrong use', async (words, problem) => {
    expect(await demo(...words)).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(problem) });
  });

  test.each(['watch_ads', 'check_watches', 'label_ads'])('%s needs a folder that keeps what it makes', async (tool) => {
    const stderr = expect.stringContaining('AD_LIBRARY_FILES (or --files) must name a folder');
    expect(await call([tool])).toEqual({ code: 2, stdout: '', stderr });
  });

  test('writes the picture or the file of a result, and replaces none unless it is told to', async () => {
    const sql = 'SELECT 1 AS n, 2 AS m';
    const [csv, png, none] = [newPath('.csv'), newPath('.png'), newPath()];
    const exporting = ['export_ads', JSON.stringify({ sql }), '--out', csv];
    expect(await demo(...exporting)).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(csv, 'utf8')).toContain('1,2');
    writeFileSync(csv, 'mine');
    const refused = await demo(...exporting);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('is there already; --force replaces it');
    expect(readFileSync(csv, 'utf8')).toBe('mine');
    const kept = ['--files', newPath(), '--base-url', 'http://127.0.0.1:1'];
    expect((await demo(...exporting, '--force', ...kept)).code).toBe(0);
    expect(readFileSync(csv, 'utf8')).toContain('1,2');
    const started = await demo('export_ads', JSON.stringify({ sql, name: 'beside me' }));
    expect([started.code, started.stderr]).toEqual([0, '']);
    expect(readFileSync(join(folder, 'beside me.csv'), 'utf8')).toContain('1,2');
    const chart = JSON.stringify({ sql: "SELECT 'a' AS name, 2 AS number", chart: 'bar' });
    expect((await demo('query_ads', chart, '--out', png)).code).toBe(0);
    expect(readFileSync(png).subarray(0, 3).toString('hex')).toMatch(/^(89504e|ffd8ff)$/);
    const { code, stderr } = await demo('query_ads', JSON.stringify({ sql }), '--out', none);
    expect([code, existsSync(none)]).toEqual([2, false]);
    expect(stderr).toContain('holds no picture and no file');
  });

  test('keeps the dataset in the folder, where the next call finds it', async () => {
    const { call, dataOf, service } = await serviceOf(30);
    const files = ['--files', newPath()];
    const rowsOf = async (sql: string) => (await dataOf(['query_ads', JSON.stringify({ sql }), ...files])).rows;
    expect((await call(['gather_ads', '{"maxCredits": 5}', ...files])).code).toBe(0);
    expect(await rowsOf('SELECT count(*) FROM ads')).toEqual([[30]]);
    const [[adId]] = await rowsOf('SELECT id FROM ads');
    const labels = [{ adId, label: 'hook', value: 'question' }];
    expect((await call(['label_ads', JSON.stringify({ labels }), ...files])).stdout).toContain('Kept 1 label of 1 ad.');
    expect(await rowsOf('SELECT adId, value FROM labels')).toEqual([[adId, 'question']]);
    const search = ['search_ads', '{"limit": 3}', ...files];
    const charges = [];
    for (const flags of [[], [], ['--cache-seconds', '0']])
      charges.push((await dataOf([...search, ...flags])).receipt.charged);
    expect(charges).toEqual([1, 0, 1]);
    const { thisServer } = await dataOf(['get_credits', ...files]);
    expect(thisServer.prices).toMatchObject({ search_ads: expect.anything() });
    expect(thisServer).toMatchObject({ charged: service.chargedCredits, day: new Date().toISOString().slice(0, 10) });
  });

  test('has a budget for all calls of a day, for each key, where a folder keeps what they spend', async () => {
    const { service, call } = await serviceOf(100);
    const limits = ['--credit-budget', '3', '--files', newPath()];
    const search = (n: number, env?: Environment) =>
      call(['search_ads', JSON.stringify({ limit: 10, filters: { n } }), ...limits], env);
    const codes = [];
    for (const n of [0, 1, 2, 3]) codes.push((await search(n)).code);
    expect(codes).toEqual([0, 0, 0, 1]);
    expect((await search(4)).stdout).toMatch(/Budget of 3 credits for \d{4}-\d\d-\d\d \(UTC\): 3 spent/);
    expect(service.chargedCredits).toBe(3);
    expect((await search(0, { AD_LIBRARY_API_KEY: 'svc_live_OTHER_0123456789' })).code).toBe(0);
    // Without a folder, every call is a server of its own.
    expect((await call(['search_ads', '{"limit": 10}', '--credit-budget', '1'])).code).toBe(0);
  });
});

describe('a process that calls', () => {
  test('ends when it is asked to while it waits for its arguments', async () => {
    const waiting = startCommand(['call', 'whoami', '-']);
    const again = setInterval(() => waiting.child.kill('SIGTERM'), 300);
    const { code, stdout } = await waiting.ended;
    clearInterval(again);
    expect(stdout).toBe('');
    expect([1, null]).toContain(code);
  });

  test('returns what it has when it is asked to end', async () => {
    const { service, start, upstream } = await serviceOf(10_000);
    service.priceSearch = () => 1;
    // Whenever the signal is heard, there is more to read.
    upstream.respondWith((...exchange) => void setTimeout(() => service.respond(...exchange), 100));
    const running = start(['gather_ads', '{"maxCredits": 200, "maxAds": 10000}', '--json']);
    await upstream.waitForRequests(3);
    running.child.kill('SIGTERM');
    const { code, stdout } = await running.ended;
    expect(code).toBe(0);
    const { read, ...gathered } = JSON.parse(stdout);
    expect(gathered).toMatchObject({ stopped: 'shutdown', gathering: expect.any(String) });
    // It does not go on until it is cut off, ten seconds later.
    expect(read).toBeLessThan(5000);
  });

  // Making folders there in one step never returns.
  test.runIf(existsSync('/proc/self'))('ends where the folder cannot be made', async () => {
    const env = { AD_LIBRARY_API_KEY: 'svc_live_folder', AD_LIBRARY_BASE_URL: 'http://127.0.0.1:9' };
    expect((await runCommand(['call', 'watch_ads', '--files', '/proc/nope'], { env })).code).toBe(1);
  });

  test('writes what is new as a mail, and says by its exit code that there is something', async () => {
    const { service, call } = await serviceOf(3);
    const [folder, mail] = [newPath(), newPath('.html')];
    const files = ['--files', folder, '--cache-seconds', '0'];
    await call(['watch_ads', '{"name": "Offers", "filters": {}, "maxCredits": 20}', ...files]);
    const check = ['check_watches', '{"maxCredits": 20}', ...files];
    expect((await call([...check, '--exit-code'])).code).toBe(0);
    const [changed, ...others] = service.ads;
    service.ads = [createAd(500, { headline: 'Brand <new>', appUrl: 'https://app.example/ads/500' }), ...others].concat(
      {
        ...changed,
        body: 'Said anew',
      } as (typeof others)[number],
    );
    const { code, stdout } = await call([...check, '--html', '--out', mail, '--exit-code']);
    expect(code).toBe(3);
    expect(stdout).toContain('- "Advertiser unknown": "Brand ‹new>"');
    const html = readFileSync(mail, 'utf8');
    for (const words of ['Offers', 'Brand &lt;new>', 'https://app.example/ads/500', '→ &quot;Said anew&quot;'])
      expect(html).toContain(words);
    expect(html).not.toMatch(/<(?:script|a|link|form)|\s(?:href|src)="(?!data:)/);
    const again = await call([...check, '--html', '--exit-code']);
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining(`${join(folder, 'exports', 'check-')}`) });
    const wrong = expect.stringContaining('--html goes with check_watches alone');
    expect(await call(['whoami', '--html'])).toMatchObject({ code: 2, stderr: wrong });
  });

  test('and is killed while a paid call is in flight has spent what it had reserved', async () => {
    const { service, call, start } = await serviceOf(100);
    const limits = ['--credit-budget', '3', '--files', newPath()];
    const search = (n: number) => ['search_ads', JSON.stringify({ limit: 10, filters: { n } }), ...limits];
    // Then the price is known.
    await call(search(0));
    const hanging = createGate();
    service.overrideResponse = () => hanging.open;
    const killed = start(search(1));
    await hanging.opened;
    killed.child.kill('SIGKILL');
    await killed.ended;
    service.overrideResponse = () => undefined;
    expect((await call(search(2))).code).toBe(0);
    const refused = await call(search(3));
    expect(refused).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('1 counted for calls whose charge is unknown'),
    });
    expect(service.chargedCredits).toBe(2);
  });
});
