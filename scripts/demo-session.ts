/**
 * A session as a person would have it, told on standard output: a real MCP client starts the built server in demo
 * mode, and what is printed is what the model gets to read, word for word.
 */
import { styleText } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { command } from '../test/support/process.ts';

type Arguments = Record<string, unknown>;
interface Data {
  items?: { id: string; pageId?: string; name?: string }[];
  ad?: { id: string; pageId?: string };
  rows?: number[][];
  receipt?: { charged: number | null; cached: boolean };
}

const paint = (style: Parameters<typeof styleText>[0], text: string) =>
  process.stdout.isTTY ? styleText(style, text) : text;
const print = (text = '') => process.stdout.write(`${text}\n`);

let spent = 0;
let calls = 0;
let free = 0;
let refused = 0;

const inGermany = "FROM ads JOIN ad_countries USING (id) WHERE country = 'DE'";
const byFormat = `SELECT displayFormat = 'VIDEO' AS isVideo, count(*) AS ads, median(daysRunning) AS medianDays ${inGermany} GROUP BY 1`;

async function main() {
  const client = new Client({ name: 'demo-session', version: '1.0.0' });
  await client.connect(new StdioClientTransport({ ...command(['--demo']), stderr: 'inherit' }));
  const { tools: listed } = await client.listTools();
  const tools = listed.filter(({ name }) => !name.startsWith('board_'));
  print(paint('bold', 'Ad Library MCP: a session on demo data'));
  print();
  print('An assistant is connected to the server over MCP. On the left edge: what a person asks (Q), the tool call');
  print('the assistant makes for it (→), the text it gets back (│), which ends with what the call cost, and what the');
  print('assistant answers (A).');
  print(`Tools: ${tools.map(({ name }) => name).join(', ')}`);

  ask('I run a shop in the US. Which ads that promise free shipping have run longest, and still run?');
  const filters = { query: '"free shipping"', countries: ['US'], active: true, sort: 'daysRunning' };
  const found = await call(client, 'search_ads', { filters, limit: 5 });
  const [best] = found.items ?? [];

  ask('Show me the whole copy of the first one. Who is behind it, and where does it lead?');
  const opened = await call(client, 'get_ad', { adId: best?.id });

  ask('How big is that advertiser?');
  await call(client, 'get_page', { pageId: opened.ad?.pageId });

  ask('Keep this ad for my next briefing.');
  const { items: collections } = await call(client, 'list_collections', {});
  await call(client, 'add_collection_item', { collectionId: collections?.[0]?.id, itemType: 'ads', itemId: best?.id });

  ask('And in Canada? (Here the assistant gets the name of a filter wrong.)');
  await call(client, 'search_ads', { filters: { ...filters, country: ['CA'], countries: undefined }, limit: 5 });
  await call(client, 'search_ads', { filters: { ...filters, countries: ['CA'] }, limit: 2 });

  ask('Open the second one of the first list, if that can be had for free.');
  await call(client, 'get_ad', { adId: found.items?.[1]?.id, seen: true });

  ask('What share of the ads in Germany are videos, and do they run longer than the others?');
  await call(client, 'gather_ads', { filters: { countries: ['DE'] }, maxCredits: 40 });
  const { rows = [] } = await call(client, 'query_ads', { sql: byFormat });
  const [video, other] = [rows.find(([isVideo]) => isVideo === 1), rows.find(([isVideo]) => isVideo === 0)];
  const [videos = 0, others = 0] = [video?.[1], other?.[1]];
  answer(
    `${videos} of ${videos + others} ads, ${Math.round((100 * videos) / (videos + others))} %, are videos.`,
    `Half of them ran ${video?.[2]} days or longer; of the other ads, half ran ${other?.[2]} days or longer.`,
  );

  ask('Give me those ads as a table for a spreadsheet.');
  const exported = await call(client, 'export_ads', {
    sql: `SELECT pageName, headline, displayFormat, ctaType, startedAt, daysRunning, landingDomain ${inGermany}`,
    name: 'ads-in-germany',
  });
  answer(`The table has ${exported.rows} rows. Your host can open it for an hour, with a note on how it came about.`);

  ask('What did all of this cost me?');
  await call(client, 'get_credits', {});

  print();
  print(
    paint(
      'bold',
      `${calls} calls, ${spent} credits. ${free} answers came from what was already paid for, and ${refused} call was refused unpaid.`,
    ),
  );
  print('Nothing of this left your machine, and every advertiser in it is invented.');
  print('To connect an assistant of your own, see "Connect an assistant" in README.md.');
  await client.close();
}

function ask(question: string): void {
  print();
  print(paint(['bold', 'cyan'], `Q  ${question}`));
}

/** What the assistant tells the person. */
function answer(...lines: string[]): void {
  for (const line of lines) print(paint('bold', `A  ${line}`));
}

async function call(client: Client, name: string, args: Arguments): Promise<Data> {
  print(paint('yellow', `→  ${name} ${JSON.stringify(args)}`));
  const result = (await client.callTool({ name, arguments: args })) as CallToolResult;
  const text = result.content.flatMap((block) => (block.type === 'text' ? block.text : [])).join('\n');
  for (const line of text.split('\n')) print(`${paint('dim', '│')}  ${line}`);
  const data = (result.structuredContent ?? {}) as Data;
  calls++;
  spent += data.receipt?.charged ?? 0;
  if (data.receipt?.cached) free++;
  if (result.isError) refused++;
  return data;
}

await main();
