/**
 * Measures how long the owner of one API key waits for responses while other keys make many expensive calls. For each
 * free tool, these hostile keys constantly make its most expensive calls, e.g. endless statements, reports, sheets of
 * pictures and long request bodies. Each hostile key has its own process and keeps 16 calls in flight. The measured key
 * alternates between `whoami`, a search and an SQL statement. The baseline is the same measurement without hostile
 * keys. Run it with `npm run bench:neighbour -- --seconds 60 --neighbours 1,3,5`.
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Agent, request } from 'undici';
import { toolCall, validHeaders } from '../test/support/http.ts';
import { startHttpCommand } from '../test/support/process.ts';
import { startChild } from './child.ts';
import { addRow, computeQuantile } from './row.ts';
import type { ServedDemo } from './served-demo.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    neighbours: { type: 'string', default: '1,3,5' },
    /** If both options are set, this process makes the expensive calls of one hostile API key. */
    origin: { type: 'string' },
    key: { type: 'string' },
  },
});
const callsAtOnce = 16;
/**
 * Limits for response times by the number of hostile API keys: the maximum in milliseconds, and the maximum ratio to
 * the time without hostile keys. For other numbers of keys, there is no limit.
 */
const limits: Record<string, { ms: number; ratio: number }> = {
  1: { ms: 500, ratio: 5 },
  3: { ms: 1000, ratio: Number.POSITIVE_INFINITY },
};

// Every child process adds an exit listener. Disable Node's warning about more than ten listeners.
process.setMaxListeners(0);
const dispatcher = new Agent();
let lastId = 0;

/** Sends an MCP message with an API key and returns the response as text. */
async function ask(origin: string, key: string, message: object): Promise<string> {
  const body = JSON.stringify({ ...message, id: ++lastId });
  const answer = await request(`${origin}/mcp`, { method: 'POST', headers: validHeaders(key), body, dispatcher });
  return answer.body.text();
}

const numbers = (most: number | string) =>
  `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${most}) SELECT`;
const wideCells = Array.from({ length: 33 }, (_, at) => `replace(hex(zeroblob(150)), '0', '&') AS c${at}`);
const lineBreaks = "replace(hex(zeroblob(950000)), '0', char(10))";
const gather = (filters: object) => toolCall('gather_ads', { filters, maxAds: 2000, maxCredits: 1000 });

/** Returns, for each free tool, the calls that need the most processor time or memory. */
function worst(adIds: readonly string[]): object[] {
  const report = (title: string, content: object) => {
    const sections = Array.from({ length: 20 }, (_, nr) => ({ heading: `${nr}`, ...content }));
    return toolCall('write_report', { title, sections });
  };
  const everyAd = 'SELECT * FROM ads';
  return [
    toolCall('label_ads', { labels: adIds.map((adId) => ({ adId, label: 'hook', value: 'x'.repeat(200) })) }),
    report('wide tables', { sql: `${numbers(200)} ${wideCells} FROM n` }),
    report('cards', { adIds: adIds.slice(0, 12) }),
    toolCall('query_ads', { sql: `${numbers('1e15')} count(*) FROM n` }),
    toolCall('query_ads', { sql: 'SELECT count(*) FROM ads a, ads b, ads c WHERE a.text < b.text || c.text' }),
    toolCall('export_ads', { format: 'csv', sql: `SELECT ${lineBreaks} FROM ads LIMIT 7` }),
    ...['jsonl', 'xlsx', 'parquet'].map((format) => toolCall('export_ads', { format, sql: everyAd })),
    toolCall('view_ads', { adIds: adIds.slice(12, 24) }),
    { jsonrpc: '2.0', method: 'resources/list' },
    toolCall('search_ads', { filters: { query: 'x'.repeat(900_000) } }),
  ];
}

async function beHostile(origin: string, key: string): Promise<void> {
  await ask(origin, key, gather({}));
  const list = await ask(origin, key, toolCall('query_ads', { sql: 'SELECT id FROM ads LIMIT 200', limit: 200 }));
  const { rows } = JSON.parse(list).result.structuredContent as { rows: [string][] };
  const calls = worst(rows.map(([id]) => id));
  process.send?.('ready');
  await once(process, 'message');
  const repeat = async (_: unknown, nr: number) => {
    for (;;) await ask(origin, key, calls[nr % calls.length] ?? {}).catch(() => sleep(10));
  };
  await Promise.all(Array.from({ length: callsAtOnce }, repeat));
}

interface Measured {
  times: Record<string, number[]>;
  refused: number;
}

/** Measures the response times of one API key while `neighbours` hostile API keys make expensive calls. */
async function measure(neighbours: number): Promise<Measured> {
  const library = await startChild<ServedDemo>('served-demo.ts', String(neighbours + 1));
  const { baseUrl, callers } = library.ready;
  const settings = ['--base-url', baseUrl, '--media-hosts', new URL(baseUrl).host];
  const { origin, close } = await startHttpCommand(settings);
  const [{ key }, ...others] = callers as [ServedDemo['callers'][0], ...ServedDemo['callers']];
  const filters = { countries: ['DE'] };
  await ask(origin, key, gather(filters));
  const processes = await Promise.all(
    others.map((other) => startChild('neighbour.ts', '--origin', origin, '--key', other.key)),
  );
  const calls = {
    whoami: toolCall('whoami'),
    search: toolCall('search_ads', { filters, limit: 10, fresh: true }),
    statement: toolCall('query_ads', { sql: 'SELECT ctaType, count(*) FROM ads GROUP BY 1' }),
  };
  for (const call of Object.values(calls)) await ask(origin, key, call);
  for (const { process: child } of processes) child.send('begin');
  const measured: Measured = { times: {}, refused: 0 };
  for (const until = performance.now() + 1000 * Number(values.seconds); performance.now() < until; )
    for (const [name, call] of Object.entries(calls)) {
      const sent = performance.now();
      const text = await ask(origin, key, call);
      measured.times[name] = [...(measured.times[name] ?? []), performance.now() - sent];
      if (text.includes('"isError":true') || !text.includes('"structuredContent"')) measured.refused++;
    }
  for (const { process: child } of [...processes, library]) {
    child.kill();
    await once(child, 'exit');
  }
  const { code, stderr } = await close();
  if (code !== 0) throw new Error(`The server ended with ${code}: ${stderr.slice(-500)}`);
  return measured;
}

const slowest = ({ times }: Measured) => computeQuantile(Object.values(times).flat(), 0.95);
const ms = (time: number) => `${time.toFixed(0)} ms`;

function report(name: string, { times, refused }: Measured): void {
  const each = Object.entries(times).map(
    ([call, all]) => `${call} ${ms(computeQuantile(all, 0.5))}, ${ms(computeQuantile(all, 0.95))} of ${all.length}`,
  );
  process.stdout.write(`${name}: median and 95th percentile of ${each.join('; ')}; ${refused} refused\n`);
}

if (values.origin && values.key) await beHostile(values.origin, values.key);
else {
  const alone = await measure(0);
  report('alone', alone);
  for (const neighbours of values.neighbours.split(',')) {
    const beside = await measure(Number(neighbours));
    const what = `calls with one key while ${neighbours} hostile ${neighbours === '1' ? 'key floods' : 'keys flood'} the server, 95th percentile`;
    report(`${neighbours} neighbours`, beside);
    const [taken, ratio, most] = [slowest(beside), slowest(beside) / slowest(alone), limits[neighbours]];
    const row = {
      measurement: what,
      measuredText: `${ms(taken)}, ${beside.refused} refused`,
      baselineText: `${ms(slowest(alone))} alone`,
      ratio,
    };
    if (most === undefined) addRow(row);
    else {
      const times = most.ratio < Number.POSITIVE_INFINITY ? ` and ${most.ratio.toFixed(2)}` : '';
      const isWithinLimit = taken <= most.ms && ratio <= most.ratio && beside.refused === 0;
      addRow({ ...row, limitText: `at most ${most.ms} ms${times}, none refused`, isWithinLimit });
    }
  }
  await dispatcher.close();
}
