import { existsSync, lstatSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { toolNames } from '../../src/app.ts';
import { callToolAndPrintResult, type ParsedCallCommand } from '../../src/cli/call.ts';
import { parseCommandLine } from '../../src/cli/parse.ts';
import { readConfig, SettingsError } from '../../src/config/read-config.ts';
import { createLogger } from '../../src/logging/log.ts';
import { createAd, serveAds } from '../support/ad-service.ts';
import { waitUntil } from '../support/deadline.ts';
import { delays, respondWithError, startUpstream } from '../support/faulty-upstream.ts';
import { createGate } from '../support/gate.ts';
import { startPictureHost } from '../support/picture-host.ts';
import { runCommand, startCommand } from '../support/process.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const folder = createTemporaryFolder();
let pathCount = 0;
/** Returns a new path in the temporary folder, which no other test uses. */
const createPath = (ending = '') => join(folder, `${++pathCount}${ending}`);

type Environment = Record<string, string>;

/**
 * Runs the `call` command in this process, with these arguments and environment variables. Returns its output and its
 * exit code.
 */
async function call(args: string[], env: Environment = {}) {
  const printed = { stdout: '', stderr: '' };
  const writeStderr = (text: string) => {
    printed.stderr += text;
  };
  const job = parseCommandLine(['call', ...args], '1', writeStderr) as ParsedCallCommand;
  const runCall = async () => {
    const config = readConfig(env, job.flags, { toolNames, commandName: 'call' });
    return callToolAndPrintResult(job, {
      config,
      log: createLogger('silent', writeStderr),
      stdin: Readable.from([]),
      exportFolder: folder,
      writeToStdout: async (text) => {
        printed.stdout += text;
      },
      printStatus: (_level, message) => writeStderr(`ad-library-mcp: ${message}\n`),
      stopRequested: new Promise(() => {}),
      drainMs: 1000,
    });
  };
  const code = await runCall().catch((error) => {
    if (!(error instanceof SettingsError)) throw error;
    writeStderr(error.problems.join('\n'));
    return 2;
  });
  return { code, ...printed };
}
const demo = (...words: string[]) => call([...words, '--demo']);

/**
 * Starts a service with `adCount` ads. In the result, `env` has the environment variables with which the `call` command
 * uses this service.
 */
async function startService(adCount: number) {
  const upstream = await startUpstream();
  onTestFinished(upstream.close);
  const env = { AD_LIBRARY_API_KEY: 'svc_live_CANARY_0123456789', AD_LIBRARY_BASE_URL: upstream.baseUrl };
  return {
    upstream,
    env,
    service: serveAds(upstream, adCount),
    call: (words: string[], variables: Environment = {}) => call(words, { ...env, ...variables }),
    start: (words: string[]) => startCommand(['call', ...words], env),
    readData: async (words: string[]) => JSON.parse((await call([...words, '--json'], env)).stdout),
  };
}

test('the call command prints a tool result and exits with 0, 1 or 2, depending on the outcome', async () => {
  const env = { AD_LIBRARY_API_KEY: 'svc_live_one', AD_LIBRARY_BASE_URL: 'http://127.0.0.1:1' };
  const [textRun, dataRun, failedRun, wrongRun] = await Promise.all([
    runCommand(['call', 'search_ads', '{"limit": 2}', '--demo']),
    runCommand(['call', 'search_ads', '-', '--json', '--demo'], { input: '{"limit": 1}' }),
    runCommand(['call', 'whoami'], { env }),
    runCommand(['call', '\u001b[2J'], { env }),
  ]);
  expect(textRun).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringMatching(/^DEMO DATA: .*\n2 ads, 2,380 found/),
  });
  expect(JSON.parse(dataRun.stdout).items).toHaveLength(1);
  expect(failedRun).toMatchObject({ code: 1, stderr: '' });
  expect(wrongRun).toMatchObject({ code: 2, stdout: '' });
  expect(wrongRun.stderr).toMatch(/^ad-library-mcp: there is no tool [^\n\P{ASCII}]+\n$/u);
});

describe('The call command', () => {
  test.each(['text', 'structured'])(
    'the call command with --output %s prints the full text, and the --json option prints the full data',
    async (output) => {
      const { call, readData } = await startService(30);
      const search = ['search_ads', '{"limit": 2}', '--output', output];
      expect(await call(search)).toMatchObject({
        code: 0,
        stderr: '',
        stdout: expect.stringMatching(/^2 ads, 30 found/),
      });
      expect((await call([...search, '--json'])).stdout).toMatch(/^\{.*\}\n$/);
      expect(await readData(search)).toMatchObject({ totalHits: 30, receipt: { charged: 1 } });
    },
  );

  test('the call command prints the error and exits with code 1 if the tool fails', async () => {
    const { upstream, call, env } = await startService(1);
    upstream.respondWith(respondWithError(403));
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
    [['search_ads', ''], 'the arguments are empty'],
    [['search_ads', '-'], 'the arguments are empty'],
    [['whoami', '--tools', 'get_ad'], 'whoami is not available with these settings'],
    [['add_collection_item', '--read-only'], 'add_collection_item is not available'],
    [['label_ads', '{}'], 'label_ads needs data that is stored between calls, and demo data is not stored'],
    [['watch_ads', '--files', folder], 'demo data is not stored'],
    [['search_ads', '--out', join(folder, 'x')], '--out: the result of search_ads contains no picture and no file'],
    [['query_ads', '--out', folder], 'is a folder'],
    [['query_ads', '--out', '-'], '--out: name a file. Standard output already has the text'],
    [['query_ads', '--out', join(folder, 'none', 'x')], 'is not a folder that can be written'],
    [['query_ads', '--out', ''], '--out:  cannot be written'],
    [['query_ads', '--out', `${join(folder, 'none')}/`], 'none/ cannot be written'],
    [['query_ads', '--out', join(folder, 'x'.repeat(300))], 'cannot be written: ENAMETOOLONG'],
  ])('the call command rejects the arguments %j with exit code 2', async (args, problem) => {
    expect(await demo(...args)).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(problem) });
  });

  test('the call command rejects arguments on standard input that are not UTF-8', async () => {
    const { child, ended } = startCommand(['call', 'search_ads', '-', '--demo']);
    child.stdin?.end(Buffer.from('{"filters": {"query": "Müller"}}', 'latin1'));
    expect(await ended).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining('is not UTF-8 text') });
  });

  test.each(['watch_ads', 'check_watches', 'label_ads'])(
    'the call command without a data folder rejects the tool %s and names the AD_LIBRARY_FILES setting',
    async (tool) => {
      const stderr = expect.stringContaining('AD_LIBRARY_FILES (or --files) must name a folder');
      expect(await call([tool])).toEqual({ code: 2, stdout: '', stderr });
    },
  );

  test('the call command with --out replaces an existing file only if --force is also set', async () => {
    const sql = 'SELECT 1 AS n, 2 AS m';
    const [csvPath, pngPath, unusedPath] = [createPath('.csv'), createPath('.png'), createPath()];
    const exportWords = ['export_ads', JSON.stringify({ sql }), '--out', csvPath];
    expect(await demo(...exportWords)).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(csvPath, 'utf8')).toContain('1,2');
    writeFileSync(csvPath, 'mine');
    const refusal = await demo(...exportWords);
    expect(refusal).toMatchObject({ code: 2, stdout: '' });
    expect(refusal.stderr).toContain('exists already; --force replaces it');
    expect(readFileSync(csvPath, 'utf8')).toBe('mine');
    const folderFlags = ['--files', createPath(), '--base-url', 'http://127.0.0.1:1'];
    expect((await demo(...exportWords, '--force', ...folderFlags)).code).toBe(0);
    expect(readFileSync(csvPath, 'utf8')).toContain('1,2');
    const namedExport = await demo('export_ads', JSON.stringify({ sql, name: 'beside me' }));
    expect([namedExport.code, namedExport.stderr]).toEqual([0, '']);
    expect(readFileSync(join(folder, 'beside me.csv'), 'utf8')).toContain('1,2');
    const chart = JSON.stringify({ sql: "SELECT 'a' AS name, 2 AS number", chart: 'bar' });
    expect((await demo('query_ads', chart, '--out', pngPath)).code).toBe(0);
    expect(readFileSync(pngPath).subarray(0, 3).toString('hex')).toMatch(/^(89504e|ffd8ff)$/);
    const { code, stderr } = await demo('query_ads', JSON.stringify({ sql }), '--out', unusedPath);
    expect([code, existsSync(unusedPath)]).toEqual([2, false]);
    expect(stderr).toContain('contains no picture and no file');
  });

  test('the call command with --out and --force writes through a link to a file that does not exist', async () => {
    const [linkPath, targetPath] = [createPath('.csv'), createPath('.csv')];
    symlinkSync(targetPath, linkPath);
    const exportWords = ['export_ads', JSON.stringify({ sql: 'SELECT 1 AS n, 2 AS m' }), '--out', linkPath];
    expect((await demo(...exportWords)).stderr).toContain('exists already; --force replaces it');
    expect(await demo(...exportWords, '--force')).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(targetPath, 'utf8')).toContain('1,2');
    expect(lstatSync(linkPath).isSymbolicLink()).toBe(true);
  });

  test('the call command stores ads, labels, cached results and spending if a data folder is set', async () => {
    const { call, readData, service } = await startService(30);
    const folderFlags = ['--files', createPath()];
    const queryRows = async (sql: string) =>
      (await readData(['query_ads', JSON.stringify({ sql }), ...folderFlags])).rows;
    expect((await call(['gather_ads', '{"maxCredits": 5}', ...folderFlags])).code).toBe(0);
    expect(await queryRows('SELECT count(*) FROM ads')).toEqual([[30]]);
    const [[adId]] = await queryRows('SELECT id FROM ads');
    const labels = [{ adId, label: 'hook', value: 'question' }];
    expect((await call(['label_ads', JSON.stringify({ labels }), ...folderFlags])).stdout).toContain(
      'Kept 1 label of 1 ad.',
    );
    expect(await queryRows('SELECT adId, value FROM labels')).toEqual([[adId, 'question']]);
    const search = ['search_ads', '{"limit": 3}', ...folderFlags];
    const charges = [];
    for (const flags of [[], [], ['--cache-seconds', '0']])
      charges.push((await readData([...search, ...flags])).receipt.charged);
    expect(charges).toEqual([1, 0, 1]);
    const { thisServer } = await readData(['get_credits', ...folderFlags]);
    expect(thisServer.prices).toMatchObject({ search_ads: expect.anything() });
    expect(thisServer).toMatchObject({ charged: service.chargedCredits, day: new Date().toISOString().slice(0, 10) });
  });

  test('all call commands of a day share one credit budget if a data folder is set', async () => {
    const { service, call } = await startService(100);
    const limits = ['--credit-budget', '3', '--files', createPath()];
    const search = (n: number, env?: Environment) =>
      call(['search_ads', JSON.stringify({ limit: 10, filters: { n } }), ...limits], env);
    const codes = [];
    for (const n of [0, 1, 2, 3]) codes.push((await search(n)).code);
    expect(codes).toEqual([0, 0, 0, 1]);
    expect((await search(4)).stdout).toMatch(/Budget of 3 credits for \d{4}-\d\d-\d\d \(UTC\): 3 spent/);
    expect(service.chargedCredits).toBe(3);
    expect((await search(0, { AD_LIBRARY_API_KEY: 'svc_live_OTHER_0123456789' })).code).toBe(0);
    // Without a data folder, the spending is not stored, so each call can spend the whole budget.
    expect((await call(['search_ads', '{"limit": 10}', '--credit-budget', '1'])).code).toBe(0);
  });
});

describe('The call command while a tool runs', () => {
  test('the call command exits on SIGTERM while it waits for standard input', async () => {
    const waitingProcess = startCommand(['call', 'whoami', '-']);
    const repeatedSignal = setInterval(() => waitingProcess.child.kill('SIGTERM'), 300);
    const { code, stdout } = await waitingProcess.ended;
    clearInterval(repeatedSignal);
    expect(stdout).toBe('');
    expect([1, null]).toContain(code);
  });

  test('the call command prints the partial result of gather_ads when it receives SIGTERM', async () => {
    const { service, start, upstream } = await startService(10_000);
    service.priceSearch = () => 1;
    // Delay the API responses, so that gather_ads is still running when the signal arrives.
    upstream.respondWith((...exchange) => void setTimeout(() => service.respond(...exchange), 100));
    const running = start(['gather_ads', '{"maxCredits": 200, "maxAds": 10000}', '--json']);
    await upstream.waitForRequests(3);
    running.child.kill('SIGTERM');
    const { code, stdout } = await running.ended;
    expect(code).toBe(0);
    const { read, ...gathering } = JSON.parse(stdout);
    expect(gathering).toMatchObject({ stopped: 'shutdown', gathering: expect.any(String) });
    expect(gathering.next).toContain(
      'Subtract the charge of this call from maxCredits. If nothing remains, or if the charge is unknown, ask the user.',
    );
    // gather_ads stops soon after the signal, although it could continue for ten seconds.
    expect(read).toBeLessThan(5000);
  });

  // Use a folder in /proc, which cannot be created. A recursive `mkdir` of Node would never return for such a folder.
  test.runIf(existsSync('/proc/self'))(
    'the call command exits with code 1 if its data folder cannot be created',
    async () => {
      const env = { AD_LIBRARY_API_KEY: 'svc_live_folder', AD_LIBRARY_BASE_URL: 'http://127.0.0.1:9' };
      expect((await runCommand(['call', 'watch_ads', '--files', '/proc/nope'], { env })).code).toBe(1);
    },
  );

  test('check_watches --html reports the changes of one watch (a saved search) even if another watch takes until the deadline', async () => {
    const { service, call } = await startService(3);
    const folder = createPath();
    const files = ['--files', folder, '--cache-seconds', '0'];
    const isSlow = ({ filters }: { filters: object }) => 'query' in filters;
    for (const watch of [
      { name: 'Quick', filters: {} },
      { name: 'Slow', filters: { query: 'tea' } },
    ])
      await call(['watch_ads', JSON.stringify({ ...watch, maxCredits: 20 }), ...files]);
    const check = ['check_watches', '{"maxCredits": 20}', ...files];
    await call(check);
    service.overrideResponse = (search) => (isSlow(search) ? delays.hangs : undefined);
    const media = [{ type: 'IMAGE', url: 'http://127.0.0.1:9/picture.jpeg', nr: 0 }];
    service.ads = [createAd(500, { headline: 'A new offer', media }), ...service.ads];
    const { code, stdout } = await call([...check, '--html', '--exit-code', '--timeout-ms', '1500']);
    expect(stdout).toContain('A new offer');
    expect(code).toBe(3);
  });

  test('check_watches reports the same changes again if its process was killed while it loaded pictures for the email', async () => {
    const { service, call, start } = await startService(3);
    const folder = createPath();
    const host = await startPictureHost();
    onTestFinished(host.close);
    const hosts = ['--media-hosts', `${host.host.host}:${host.host.port}`];
    const files = ['--files', folder, '--cache-seconds', '0', ...hosts];
    await call(['watch_ads', '{"name": "Offers", "filters": {}, "maxCredits": 20}', ...files]);
    const check = ['check_watches', '{"maxCredits": 20}', ...files];
    await call(check);
    const media = [{ type: 'IMAGE', url: host.serve(() => {}), nr: 0 }];
    service.ads = [createAd(500, { headline: 'A new offer', media }), ...service.ads];
    const killed = start([...check, '--html']);
    await waitUntil(() => host.requests.length > 0);
    killed.child.kill('SIGKILL');
    await killed.ended;
    expect(await call([...check, '--exit-code'])).toMatchObject({
      code: 3,
      stdout: expect.stringContaining('A new offer'),
    });
  });

  test('the call command with --exit-code exits with 3 if check_watches finds new ads and with 0 if it finds none', async () => {
    const { service, call } = await startService(3);
    const [folder, mailPath] = [createPath(), createPath('.html')];
    const files = ['--files', folder, '--cache-seconds', '0'];
    await call(['watch_ads', '{"name": "Offers", "filters": {}, "maxCredits": 20}', ...files]);
    const check = ['check_watches', '{"maxCredits": 20}', ...files];
    expect((await call([...check, '--exit-code'])).code).toBe(0);
    const [changedAd, ...otherAds] = service.ads;
    service.ads = [
      createAd(500, { headline: 'Brand <new>', appUrl: 'https://app.example/ads/500' }),
      ...otherAds,
    ].concat({
      ...changedAd,
      body: 'Said anew',
    } as (typeof otherAds)[number]);
    const { code, stdout } = await call([...check, '--html', '--out', mailPath, '--exit-code']);
    expect(code).toBe(3);
    expect(stdout).toContain('- "Advertiser unknown": "Brand ‹new>"');
    const html = readFileSync(mailPath, 'utf8');
    for (const text of ['Offers', 'Brand &lt;new>', 'https://app.example/ads/500', '→ &quot;Said anew&quot;'])
      expect(html).toContain(text);
    expect(html).not.toMatch(/<(?:script|a|link|form)|\s(?:href|src)="(?!data:)/);
    const secondCheck = await call([...check, '--html', '--exit-code']);
    expect(secondCheck).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`${join(folder, 'exports', 'check-')}`),
    });
    const problem = expect.stringContaining('--html works only with check_watches');
    expect(await call(['whoami', '--html'])).toMatchObject({ code: 2, stderr: problem });
  });

  test('credits that a process had reserved when it was killed count as spent', async () => {
    const { service, call, start } = await startService(100);
    const limits = ['--credit-budget', '3', '--files', createPath()];
    const search = (n: number) => ['search_ads', JSON.stringify({ limit: 10, filters: { n } }), ...limits];
    // The server reserves the price that it has seen before, so make one call first.
    await call(search(0));
    const requestGate = createGate();
    service.overrideResponse = () => requestGate.open;
    const killedProcess = start(search(1));
    await requestGate.opened;
    killedProcess.child.kill('SIGKILL');
    await killedProcess.ended;
    service.overrideResponse = () => undefined;
    expect((await call(search(2))).code).toBe(0);
    const refusal = await call(search(3));
    expect(refusal).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('1 counted for calls whose charge is unknown'),
    });
    expect(service.chargedCredits).toBe(2);
  });
});
