/**
 * Measures how long the owner of one API key waits for responses while other keys make many expensive calls. For each
 * free tool, these hostile keys constantly make its most expensive calls, e.g. endless statements, reports, sheets of
 * pictures and long request bodies. Each hostile key has its own process and keeps 16 calls in flight. The measured key
 * alternates between `whoami`, a search and an SQL statement. The baseline is the same measurement without hostile
 * keys. Run it with `npm run bench:neighbour -- --seconds 60 --neighbours 1,3,5`.
 */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Agent, request } from 'undici';
import { createToolCall, createValidHeaders } from '../test/support/http.ts';
import { startHttpCommand } from '../test/support/process.ts';
import { startChild } from './child.ts';
import { computeQuantile, printRow } from './row.ts';
import type { ServedDemo } from './served-demo.ts';

const { values: optionValues } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    neighbours: { type: 'string', default: '1,3,5' },
    /**
     * If `origin` and `key` are set, this process only sends the expensive calls of the hostile API key `key` to the
     * server at `origin`.
     */
    origin: { type: 'string' },
    key: { type: 'string' },
  },
});
const callsPerKey = 16;
/**
 * Limits for response times, keyed by the number of hostile API keys: a maximum in milliseconds, and a maximum ratio to
 * the response time without hostile keys. Other numbers of hostile keys have no limit.
 */
const responseTimeLimits: Record<string, { maxMs: number; maxRatio: number }> = {
  1: { maxMs: 500, maxRatio: 5 },
  3: { maxMs: 1000, maxRatio: Number.POSITIVE_INFINITY },
};

// Every child process adds an exit listener. Disable Node's warning about more than ten listeners.
process.setMaxListeners(0);
const dispatcher = new Agent();
let lastId = 0;

/** Sends an MCP message with an API key and returns the response as text. */
async function sendMessage(origin: string, apiKey: string, message: object): Promise<string> {
  const body = JSON.stringify({ ...message, id: ++lastId });
  const response = await request(`${origin}/mcp`, {
    method: 'POST',
    headers: createValidHeaders(apiKey),
    body,
    dispatcher,
  });
  return response.body.text();
}

const selectFromNumbers = (count: number | string) =>
  `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) SELECT`;
const wideColumns = Array.from({ length: 33 }, (_, index) => `replace(hex(zeroblob(150)), '0', '&') AS c${index}`);
const lineBreaksExpression = "replace(hex(zeroblob(950000)), '0', char(10))";
const buildGatherCall = (filters: object) => createToolCall('gather_ads', { filters, maxAds: 2000, maxCredits: 1000 });

/** Lists the calls of the free tools that need the most processor time or memory. */
function listExpensiveCalls(adIds: readonly string[]): object[] {
  const buildReportCall = (title: string, content: object) => {
    const sections = Array.from({ length: 20 }, (_, index) => ({ heading: `${index}`, ...content }));
    return createToolCall('write_report', { title, sections });
  };
  const allAdsSql = 'SELECT * FROM ads';
  return [
    createToolCall('label_ads', { labels: adIds.map((adId) => ({ adId, label: 'hook', value: 'x'.repeat(200) })) }),
    buildReportCall('wide tables', { sql: `${selectFromNumbers(200)} ${wideColumns} FROM n` }),
    buildReportCall('cards', { adIds: adIds.slice(0, 12) }),
    createToolCall('query_ads', { sql: `${selectFromNumbers('1e15')} count(*) FROM n` }),
    createToolCall('query_ads', { sql: 'SELECT count(*) FROM ads a, ads b, ads c WHERE a.text < b.text || c.text' }),
    createToolCall('export_ads', { format: 'csv', sql: `SELECT ${lineBreaksExpression} FROM ads LIMIT 7` }),
    ...['jsonl', 'xlsx', 'parquet'].map((format) => createToolCall('export_ads', { format, sql: allAdsSql })),
    createToolCall('view_ads', { adIds: adIds.slice(12, 24) }),
    { jsonrpc: '2.0', method: 'resources/list' },
    createToolCall('search_ads', { filters: { query: 'x'.repeat(900_000) } }),
  ];
}

async function floodServer(origin: string, apiKey: string): Promise<void> {
  await sendMessage(origin, apiKey, buildGatherCall({}));
  const idsResponse = await sendMessage(
    origin,
    apiKey,
    createToolCall('query_ads', { sql: 'SELECT id FROM ads LIMIT 200', limit: 200 }),
  );
  const { rows } = JSON.parse(idsResponse).result.structuredContent as { rows: [string][] };
  const expensiveCalls = listExpensiveCalls(rows.map(([id]) => id));
  process.send?.('ready');
  await once(process, 'message');
  const repeatCall = async (_: unknown, index: number) => {
    for (;;)
      await sendMessage(origin, apiKey, expensiveCalls[index % expensiveCalls.length] ?? {}).catch(() => delay(10));
  };
  await Promise.all(Array.from({ length: callsPerKey }, repeatCall));
}

interface Measurement {
  timesByCall: Record<string, number[]>;
  refusedCount: number;
}

/** Measures the response times of one API key while `neighbourCount` hostile API keys make expensive calls. */
async function measureWithNeighbours(neighbourCount: number): Promise<Measurement> {
  const library = await startChild<ServedDemo>('served-demo.ts', String(neighbourCount + 1));
  const { baseUrl, callers } = library.readyMessage;
  const serverArguments = ['--base-url', baseUrl, '--media-hosts', new URL(baseUrl).host];
  const { origin, close } = await startHttpCommand(serverArguments);
  const [{ apiKey }, ...hostileCallers] = callers as [ServedDemo['callers'][0], ...ServedDemo['callers']];
  const filters = { countries: ['DE'] };
  await sendMessage(origin, apiKey, buildGatherCall(filters));
  const hostileProcesses = await Promise.all(
    hostileCallers.map((caller) => startChild('neighbour.ts', '--origin', origin, '--key', caller.apiKey)),
  );
  const measuredCalls = {
    whoami: createToolCall('whoami'),
    search: createToolCall('search_ads', { filters, limit: 10, fresh: true }),
    statement: createToolCall('query_ads', { sql: 'SELECT ctaType, count(*) FROM ads GROUP BY 1' }),
  };
  for (const call of Object.values(measuredCalls)) await sendMessage(origin, apiKey, call);
  for (const { process: child } of hostileProcesses) child.send('begin');
  const measurement: Measurement = { timesByCall: {}, refusedCount: 0 };
  for (const endsAt = performance.now() + 1000 * Number(optionValues.seconds); performance.now() < endsAt; )
    for (const [name, call] of Object.entries(measuredCalls)) {
      const sentAt = performance.now();
      const text = await sendMessage(origin, apiKey, call);
      measurement.timesByCall[name] = [...(measurement.timesByCall[name] ?? []), performance.now() - sentAt];
      if (text.includes('"isError":true') || !text.includes('"structuredContent"')) measurement.refusedCount++;
    }
  for (const { process: child } of [...hostileProcesses, library]) {
    child.kill();
    await once(child, 'exit');
  }
  const { code, stderr } = await close();
  if (code !== 0) throw new Error(`The server ended with ${code}: ${stderr.slice(-500)}`);
  return measurement;
}

const computeSlowTime = ({ timesByCall }: Measurement) => computeQuantile(Object.values(timesByCall).flat(), 0.95);
const formatMs = (time: number) => `${time.toFixed(0)} ms`;

function printMeasurement(name: string, { timesByCall, refusedCount }: Measurement): void {
  const callTexts = Object.entries(timesByCall).map(
    ([call, times]) =>
      `${call} ${formatMs(computeQuantile(times, 0.5))}, ${formatMs(computeQuantile(times, 0.95))} of ${times.length}`,
  );
  process.stdout.write(`${name}: median and 95th percentile of ${callTexts.join('; ')}; ${refusedCount} refused\n`);
}

if (optionValues.origin && optionValues.key) await floodServer(optionValues.origin, optionValues.key);
else {
  const baseline = await measureWithNeighbours(0);
  printMeasurement('alone', baseline);
  for (const neighbourCount of optionValues.neighbours.split(',')) {
    const floodedMeasurement = await measureWithNeighbours(Number(neighbourCount));
    const title = `calls with one key while ${neighbourCount} hostile ${neighbourCount === '1' ? 'key floods' : 'keys flood'} the server, 95th percentile`;
    printMeasurement(`${neighbourCount} neighbours`, floodedMeasurement);
    const [slowMs, ratio, limit] = [
      computeSlowTime(floodedMeasurement),
      computeSlowTime(floodedMeasurement) / computeSlowTime(baseline),
      responseTimeLimits[neighbourCount],
    ];
    const row = {
      measurement: title,
      measuredText: `${formatMs(slowMs)}, ${floodedMeasurement.refusedCount} refused`,
      baselineText: `${formatMs(computeSlowTime(baseline))} alone`,
      ratio,
    };
    if (limit === undefined) printRow(row);
    else {
      const ratioText = limit.maxRatio < Number.POSITIVE_INFINITY ? ` and ${limit.maxRatio.toFixed(2)}` : '';
      const isWithinLimit = slowMs <= limit.maxMs && ratio <= limit.maxRatio && floodedMeasurement.refusedCount === 0;
      printRow({ ...row, limitText: `at most ${limit.maxMs} ms${ratioText}, none refused`, isWithinLimit });
    }
  }
  await dispatcher.close();
}
