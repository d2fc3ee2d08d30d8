/**
 * Counts ads by format, gathers them into the dataset, and queries the dataset, within limits on credits.
 *
 *   npm install @modelcontextprotocol/sdk
 *   AD_LIBRARY_API_KEY=svc_live_… npx tsx count-and-gather.ts http://127.0.0.1:3000/mcp
 *
 * Start a server first: `node dist/main.js http`, or `node dist/main.js http --demo`, which needs no key.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';

const filters = { countries: ['DE'] };
// Each step has its own limit, because a service may not state the charge of the count.
const maxCountCredits = 10;
const maxGatherCredits = 40;

const byFormat = `
  SELECT displayFormat, count(*) AS ads, count(DISTINCT variant) AS messages, median(daysRunning) AS medianDays
  FROM ads JOIN ad_countries USING (id) WHERE country = 'DE' GROUP BY 1 ORDER BY 2 DESC`;

/** The fields of results that this program reads. docs/results.md lists all fields. */
interface CountResult {
  total: number;
  counts: { filters: { displayFormat: string[] }; total: number }[];
}
interface GatherResult {
  receipt: Receipt;
  found: number | null;
  read: number;
  complete: boolean;
  stopped: string;
}
interface QueryResult {
  columns: string[];
  rows: unknown[][];
}
/** The cost of a call. `charged` is null if the service did not state the charge. */
interface Receipt {
  charged: number | null;
}

const [url = 'http://127.0.0.1:3000/mcp'] = process.argv.slice(2);
const key = process.env.AD_LIBRARY_API_KEY;
const client = new Client({ name: 'count-and-gather', version: '1.0.0' });

/**
 * Calls a tool and returns its result as data.
 * @throws Error whose text says what happened and what to do next
 */
async function callTool<ResultData>(toolName: string, args: Record<string, unknown>): Promise<ResultData> {
  const result = (await client.callTool({ name: toolName, arguments: args })) as CallToolResult;
  const [firstBlock] = result.content;
  if (result.isError) throw new Error(`${toolName}: ${firstBlock?.type === 'text' ? firstBlock.text : ''}`);
  return result.structuredContent as ResultData;
}

async function research(): Promise<void> {
  const countArguments = { filters, by: 'displayFormat', maxCredits: maxCountCredits };
  const counts = await callTool<CountResult>('count_ads', countArguments);
  console.log(`${counts.total} ads in all:`);
  for (const part of counts.counts) console.log(`  ${part.filters.displayFormat[0]}: ${part.total}`);

  let remainingCredits = maxGatherCredits;
  const gather = () => callTool<GatherResult>('gather_ads', { filters, maxCredits: remainingCredits });
  let gathering = await gather();
  // The next call continues where the previous call stopped, and never pays twice for a page. `maxCredits` limits only
  // a single call, so pass the credits that remain. A call with an unknown charge may have spent all of them.
  while (gathering.stopped === 'deadline') {
    remainingCredits -= gathering.receipt.charged ?? remainingCredits;
    if (remainingCredits <= 0) break;
    gathering = await gather();
  }
  console.log(`Read ${gathering.read} of ${gathering.found}, complete: ${gathering.complete}.`);

  const { columns, rows } = await callTool<QueryResult>('query_ads', { sql: byFormat }); // free
  for (const row of [columns, ...rows]) console.log(`  ${row.join(' | ')}`);
  console.log(
    gathering.complete
      ? 'The figures are based on all matching ads.'
      : `The figures are not based on all matching ads. Reading stopped: ${gathering.stopped}.`,
  );
}

try {
  const requestInit = { headers: key ? { Authorization: `Bearer ${key}` } : {} };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  await research();
} catch (error) {
  const isUnreachable = error instanceof TypeError && error.message === 'fetch failed';
  console.error(
    isUnreachable ? `No server at ${url}: start one with \`node dist/main.js http --demo\`.` : String(error),
  );
  process.exitCode = 1;
} finally {
  await client.close();
}
