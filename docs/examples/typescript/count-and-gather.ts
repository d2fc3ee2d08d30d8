/**
 * Counts ads by format, reads them once into the dataset, and asks it, all under a limit on credits.
 *
 *   npm install @modelcontextprotocol/sdk
 *   AD_LIBRARY_API_KEY=svc_live_… npx tsx count-and-gather.ts http://127.0.0.1:3000/mcp
 *
 * It needs a server over HTTP: `node dist/main.js http`, or `node dist/main.js http --demo`, which needs no key.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';

const filters = { countries: ['DE'] };
const maxCredits = 50;

const byFormat = `
  SELECT displayFormat, count(*) AS ads, count(DISTINCT variant) AS messages, median(daysRunning) AS medianDays
  FROM ads JOIN ad_countries USING (id) WHERE country = 'DE' GROUP BY 1 ORDER BY 2 DESC`;

/** What this program reads of results; docs/results.md lists all fields. */
interface Counted {
  total: number;
  counts: { filters: { displayFormat: string[] }; total: number }[];
}
interface Gathered {
  found: number;
  read: number;
  complete: boolean;
  stopped: string;
  estimate?: Estimate;
}
interface Estimate {
  pages: number | null;
  credits: number | null;
  atMost?: number;
}
interface Queried {
  columns: string[];
  rows: unknown[][];
  coverage?: { partial?: unknown[] };
}

const [url = 'http://127.0.0.1:3000/mcp'] = process.argv.slice(2);
const key = process.env.AD_LIBRARY_API_KEY;
const client = new Client({ name: 'count-and-gather', version: '1.0.0' });

/** The result of a tool as data. The text of an error says what happened and what to do next. */
async function call<Data>(name: string, args: Record<string, unknown>): Promise<Data> {
  const result = (await client.callTool({ name, arguments: args })) as CallToolResult;
  const [first] = result.content;
  if (result.isError) throw new Error(`${name}: ${first?.type === 'text' ? first.text : ''}`);
  return result.structuredContent as Data;
}

async function research(): Promise<void> {
  const counted = await call<Counted>('count_ads', { filters, by: 'displayFormat', maxCredits });
  console.log(`${counted.total} ads in all:`);
  for (const part of counted.counts) console.log(`  ${part.filters.displayFormat[0]}: ${part.total}`);

  const { estimate } = await call<Gathered>('gather_ads', { filters, maxCredits: 0 });
  console.log(`Reading them takes ${estimate?.pages} calls and ${priceOf(estimate)}; the limit is ${maxCredits}.`);

  let gathered = await call<Gathered>('gather_ads', { filters, maxCredits });
  // It continues where it stopped, and pays nothing twice.
  while (gathered.stopped === 'deadline') gathered = await call<Gathered>('gather_ads', { filters, maxCredits });
  console.log(`Read ${gathered.read} of ${gathered.found}, complete: ${gathered.complete}.`);

  const { columns, rows, coverage } = await call<Queried>('query_ads', { sql: byFormat }); // free, as often as you like
  for (const row of [columns, ...rows]) console.log(`  ${row.join(' | ')}`);
  const partial = coverage?.partial; // gatherings that stopped before their end
  console.log(partial ? `Not read to the end: ${JSON.stringify(partial)}` : 'The figures rest on all ads that match.');
}

function priceOf({ credits, atMost }: Partial<Estimate> = {}): string {
  if (credits != null) return `about ${credits} credits`;
  // Until more prices were seen.
  return atMost === undefined ? 'a price not known yet' : `at most ${atMost} credits`;
}

try {
  const requestInit = { headers: key ? { Authorization: `Bearer ${key}` } : {} };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  await research();
} catch (error) {
  const noServer = error instanceof TypeError && error.message === 'fetch failed';
  console.error(noServer ? `No server at ${url}: start one with \`node dist/main.js http --demo\`.` : String(error));
  process.exitCode = 1;
} finally {
  await client.close();
}
