/**
 * A session as a person would have it: a real MCP client starts the built server in demo mode. For each question it
 * prints the answer, then the calls an assistant makes for it and the text it reads, folded; `--full` shows all of it.
 */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, styleText } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { command } from '../test/support/process.ts';
import { argumentsText, fold, wrap } from './demo-text.ts';

interface Ad {
  id: string;
  pageName: string;
  headline: string;
  daysRunning: number;
}

interface Data {
  items: Ad[];
  totalHits: number;
  rows: number[][];
  receipt: { charged: number | null };
}

/** One call: what is shown of its text unless everything is. */
interface DemoCall {
  name: string;
  args: Record<string, unknown>;
  shows: RegExp;
}

const { full } = parseArgs({ options: { full: { type: 'boolean', default: false } } }).values;
const columns = Math.min(process.stdout.columns || 80, 100);
const isPlain = !process.stdout.isTTY || Boolean(process.env.NO_COLOR);
const paint = (style: Parameters<typeof styleText>[0], text: string) => (isPlain ? text : styleText(style, text));
const print = (text = '') => process.stdout.write(`${text}\n`);

const client = new Client({ name: 'demo-session', version: '1.0.0' });
const spending = { calls: 0, credits: 0 };
const CREDITS = /^Credits:/;
/** What nobody reads in a demo. */
const REQUEST = /(?<=^Credits: .*)\. (?:Last request|Request) \S+$/;

/** What is printed after an answer: the calls it rests on. */
let callLines: string[] = [];

async function main() {
  await client.connect(new StdioClientTransport({ ...command(['--demo']), stderr: 'inherit' }));
  print(paint('bold', 'Ad Library MCP: an assistant answers questions about ads'));
  print();
  paragraph(
    'This is demo data: the ads are invented, and no real credits are spent. A person asks (Q) and gets an answer (A). Below it stand the tool calls that it rests on (→), and the text that they returned (│).',
  );

  const filters = { query: '"free shipping"', countries: ['US'], active: true, sort: 'daysRunning' };
  const { items, totalHits } = await call({ name: 'search_ads', args: { filters, limit: 3 }, shows: /^1\. / });
  const [first, ...others] = items.map(({ pageName, daysRunning }) => ({ pageName, daysRunning }));
  tell('Which ads that promise free shipping in the US have run longest, and still run?', [
    `"${items[0]?.headline}" by ${first?.pageName}, for ${first?.daysRunning} days.`,
    `Next come ${others.map(({ pageName, daysRunning }) => `${pageName} (${daysRunning} days)`).join(' and ')}.`,
    `${totalHits} ads match.`,
  ]);

  const sheet = await picture({ name: 'view_ads', args: { adIds: items.map(({ id }) => id) }, shows: /^\d+\. / });
  tell('What do they look like?', [`See for yourself: ${sheet}`]);

  const inGermany = "FROM ads JOIN ad_countries USING (id) WHERE country = 'DE'";
  const byFormat = `SELECT displayFormat = 'VIDEO' AS isVideo, count(*) AS ads, median(daysRunning) AS medianDays ${inGermany} GROUP BY 1`;
  const gather = { filters: { countries: ['DE'] }, maxCredits: 40 };
  await call({ name: 'gather_ads', args: gather, shows: /^(Gathering|Formats|Days running)/ });
  const { rows } = await call({ name: 'query_ads', args: { sql: byFormat }, shows: /\|/ });
  const [[, other = 0, otherDays = 0] = [], [, videos = 0, videoDays = 0] = []] = rows;
  const share = Math.round((100 * videos) / (videos + other));
  tell('What share of the ads in Germany are videos, and do they run longer than the others?', [
    `${videos} of ${videos + other} ads, ${share} %, are videos.`,
    `Half of them ran ${videoDays} days or longer; of the other ads, half ran ${otherDays} days or longer.`,
  ]);

  const table = `SELECT pageName, headline, displayFormat, ctaType, startedAt, daysRunning ${inGermany}`;
  const { rows: exported } = await call({
    name: 'export_ads',
    args: { sql: table, name: 'ads-in-germany' },
    shows: /\.csv/,
  });
  tell('Give me those ads as a table for a spreadsheet.', [
    `It has ${exported} rows. The host opens it for an hour, with a note on how the data came about.`,
  ]);

  print();
  paragraph(
    `Finding: in Germany, videos run ${(videoDays / otherDays).toFixed(1)} times as long as other ads.`,
    'bold',
  );
  paragraph(
    `Cost: ${spending.credits} credits for ${spending.calls} tool calls. Pictures, SQL and the table were free.`,
  );
  await client.close();
}

function paragraph(text: string, style?: 'bold'): void {
  for (const line of wrap(text, columns)) print(style === undefined ? line : paint(style, line));
}

/** Prints a question, its answer and the calls behind it. */
function tell(question: string, answer: readonly string[]): void {
  print();
  marked('Q', wrap(question, columns - 3), ['bold', 'cyan']);
  marked('A', wrap(answer.join(' '), columns - 3), ['bold']);
  for (const line of callLines) print(line);
  callLines = [];
}

function marked(mark: string, lines: readonly string[], style: Parameters<typeof styleText>[0]): void {
  for (const [index, line] of lines.entries()) print(paint(style, `${index === 0 ? mark : ' '}  ${line}`));
}

async function call({ name, args, shows }: DemoCall): Promise<Data> {
  return (await toolResult({ name, args, shows })).structuredContent as unknown as Data;
}

/** Writes the picture of a result to a file, and returns its name. */
async function picture(demoCall: DemoCall): Promise<string> {
  const { content } = await toolResult(demoCall);
  const image = content.find((block) => block.type === 'image');
  if (image === undefined) throw new Error(`${demoCall.name} returned no picture.`);
  const file = join(mkdtempSync(join(tmpdir(), 'ad-library-demo-')), 'sheet.jpg');
  writeFileSync(file, Buffer.from(image.data, 'base64'));
  return file;
}

async function toolResult({ name, args, shows }: DemoCall): Promise<CallToolResult> {
  const result = (await client.callTool({ name, arguments: args })) as CallToolResult;
  const text = result.content.flatMap((block) => (block.type === 'text' ? block.text : [])).join('\n');
  if (result.isError) throw new Error(text);
  spending.calls++;
  spending.credits += (result.structuredContent as unknown as Data).receipt.charged ?? 0;
  const lines = text.split('\n').filter((line) => !line.startsWith('DEMO DATA'));
  const width = columns - 6;
  const shown = (line: string, max: number) => (full ? wrap(line, width) : fold(line, { columns: width, max }));
  const kept = full ? lines : lines.filter((line) => shows.test(line) || CREDITS.test(line));
  const [start, ...rest] = shown(`${name} ${argumentsText(args)}`, 4);
  callLines.push(paint('yellow', `   → ${start}`), ...rest.map((line) => paint('yellow', `     ${line}`)));
  for (const line of kept.flatMap((text) => shown(full ? text : text.replace(REQUEST, ''), 2)))
    callLines.push(`   ${paint('dim', '│')} ${line}`);
  return result;
}

await main();
