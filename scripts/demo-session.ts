/**
 * Shows what a session looks like to a user. A real MCP client starts the built server in demo mode. For each question,
 * the script prints the answer, followed by the assistant's tool calls and the first lines of their results.
 */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { styleText } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { buildCommandLine } from '../test/support/process.ts';

interface Ad {
  id: string;
  pageName: string;
  headline: string;
  daysRunning: number;
}

interface ToolData {
  items: Ad[];
  totalHits: number;
  rows: number[][];
  receipt: { charged: number | null };
}

/**
 * A tool call in the demo. The lines of its result that match `shownLinePattern` are printed. A long line is wrapped
 * into at most `maxWrappedLines` lines (2 by default).
 */
interface DemoCall {
  toolName: string;
  args: Record<string, unknown>;
  shownLinePattern: RegExp;
  maxWrappedLines?: number;
}

const terminalColumns = Math.min(process.stdout.columns || 80, 100);
const isPlain = !process.stdout.isTTY || Boolean(process.env.NO_COLOR);
const styleForTerminal = (style: Parameters<typeof styleText>[0], text: string) =>
  isPlain ? text : styleText(style, text);
const printLine = (text = '') => process.stdout.write(`${text}\n`);

const client = new Client({ name: 'demo-session', version: '1.0.0' });
const spending = { calls: 0, credits: 0 };
const creditsLinePattern = /^Credits:/;
/**
 * Matches the request id at the end of the line about credits, e.g. `. Request req_123`. The demo does not print the
 * id.
 */
const requestIdPattern = /(?<=^Credits: .*)\. (?:Last request|Request) \S+$/;

const adIdPattern = /\b([\da-f]{8})(?:-[\da-f]{4}){3}-[\da-f]{12}\b/g;
const shortenIds = (text: string) => text.replace(requestIdPattern, '').replace(adIdPattern, '$1…');

const outputFolder = mkdtempSync(join(tmpdir(), 'ad-library-demo-'));
function saveFile(name: string, content: string | Uint8Array): string {
  const file = join(outputFolder, name);
  writeFileSync(file, content);
  return file;
}

/** Lines about the tool calls since the last answer. They are printed after the next answer. */
let callLines: string[] = [];

async function main() {
  printLine(styleForTerminal('bold', 'Ad Library MCP: an assistant answers questions about ads'));
  printLine();
  printParagraph(
    'This is demo data: the ads are invented, and no real credits are spent. Each question (Q) is followed by its answer (A), the tool calls behind it (→) and what they returned (│).',
  );
  await client.connect(
    new StdioClientTransport({
      ...buildCommandLine(['--demo', '--files', join(outputFolder, 'files')]),
      stderr: 'inherit',
    }),
  );

  const filters = { query: '"free shipping"', countries: ['US'], active: true, sort: 'daysRunning' };
  const searchCall = {
    toolName: 'search_ads',
    args: { filters, limit: 3 },
    shownLinePattern: /^("|\d+\. )/,
    maxWrappedLines: 1,
  };
  const { items, totalHits } = await callForData(searchCall);
  const [first, ...others] = items.map(({ pageName, daysRunning }) => ({ pageName, daysRunning }));
  printAnswer('Which ads that promise free shipping in the US have run longest, and still run?', [
    `"${items[0]?.headline}" by ${first?.pageName}, for ${first?.daysRunning} days.`,
    `Next come ${others.map(({ pageName, daysRunning }) => `${pageName} (${daysRunning} days)`).join(' and ')}.`,
    `${totalHits} ads match.`,
  ]);

  const sheetFile = await savePicture('sheet', {
    toolName: 'view_ads',
    args: { adIds: items.map(({ id }) => id) },
    shownLinePattern: /^\d+\. /,
  });
  printAnswer('What do they look like?', [`See for yourself: ${sheetFile}`]);

  const fromGermanAds = "FROM ads JOIN ad_countries USING (id) WHERE country = 'DE'";
  const formatSql = `SELECT displayFormat = 'VIDEO' AS isVideo, count(*) AS ads, median(daysRunning) AS medianDays ${fromGermanAds} GROUP BY 1`;
  const gatherArguments = { filters: { countries: ['DE'] }, maxCredits: 40 };
  await callForData({ toolName: 'gather_ads', args: gatherArguments, shownLinePattern: /^(Gathering|Days running)/ });
  const { rows } = await callForData({ toolName: 'query_ads', args: { sql: formatSql }, shownLinePattern: /\|/ });
  const [[, otherCount = 0, otherDays = 0] = [], [, videoCount = 0, videoDays = 0] = []] = rows;
  const share = Math.round((100 * videoCount) / (videoCount + otherCount));
  printAnswer('What share of the ads in Germany are videos, and do they run longer than the others?', [
    `${videoCount} of ${videoCount + otherCount} ads, ${share}%, are videos.`,
    `${videoDays > otherDays ? 'Yes, they do' : 'No, they do not'}: half of them have run ${videoDays} days or longer;`,
    `of the other ads, half have run ${otherDays} days or longer.`,
  ]);

  const tableSql = `SELECT pageName, headline, displayFormat, ctaType, startedAt, daysRunning ${fromGermanAds}`;
  const exportCall = {
    toolName: 'export_ads',
    args: { sql: tableSql, name: 'ads-in-germany' },
    shownLinePattern: /\.csv/,
  };
  const savedFiles = await saveExports(exportCall);
  printAnswer('Give me those ads as a table for a spreadsheet.', [
    `${videoCount + otherCount} rows, as ${savedFiles.find((file) => file.endsWith('.csv'))}.`,
    'A note beside it says how they were gathered.',
  ]);

  const startsSql = `SELECT startedMonth, count(*) AS ads ${fromGermanAds} GROUP BY 1 ORDER BY 1`;
  const chartFile = await savePicture('chart', {
    toolName: 'query_ads',
    args: { sql: startsSql, chart: 'line' },
    shownLinePattern: /^$/,
  });
  const sections = [
    { heading: 'Videos run longer', sql: formatSql },
    { heading: 'When the ads started', sql: startsSql, chart: 'line' },
    { heading: 'Three ads', adIds: items.map(({ id }) => id) },
  ];
  const [reportFile] = await saveExports({
    toolName: 'write_report',
    args: { title: 'Ads in Germany', sections },
    shownLinePattern: /\.html/,
    maxWrappedLines: 1,
  });
  printAnswer('When did they start? Draw it, and put all of this into a report for my colleagues.', [
    `The chart: ${chartFile}. The report, which opens in any browser: ${reportFile}`,
  ]);

  const watch = { name: 'Germany', filters: gatherArguments.filters, maxCredits: 40 };
  await callForData({ toolName: 'watch_ads', args: watch, shownLinePattern: /^Stored/, maxWrappedLines: 1 });
  printAnswer('Tell me next week what is new.', [
    'The question is kept as Germany (beyond this session with AD_LIBRARY_FILES). Then check_watches names the ads that are new, changed or gone.',
  ]);

  printLine();
  const ratio = (videoDays / otherDays).toFixed(1);
  printParagraph(
    `Finding: in Germany, the median video has run ${videoDays} days, ${ratio} times as long as the median other ad (${otherDays} days). Ads that still run count with their days so far.`,
    'bold',
  );
  printParagraph(`Cost: ${spending.credits} credits for ${spending.calls} tool calls. All but reading ads was free.`);
  await client.close();
}

function printParagraph(text: string, style?: 'bold'): void {
  for (const line of wrapText(text, terminalColumns))
    printLine(style === undefined ? line : styleForTerminal(style, line));
}

/** Prints a question, its answer, and the tool calls that led to the answer. */
function printAnswer(question: string, answer: readonly string[]): void {
  printLine();
  printWithMarker('Q', wrapText(question, terminalColumns - 3), ['bold', 'cyan']);
  printWithMarker('A', wrapText(answer.join(' '), terminalColumns - 3), ['bold']);
  for (const line of callLines) printLine(line);
  callLines = [];
}

/** Prints lines of text, of which the first begins with the marker. The other lines are indented to the same column. */
function printWithMarker(marker: string, lines: readonly string[], style: Parameters<typeof styleText>[0]): void {
  for (const [index, line] of lines.entries())
    printLine(styleForTerminal(style, `${index === 0 ? marker : ' '}  ${line}`));
}

async function callForData(demoCall: DemoCall): Promise<ToolData> {
  return (await callTool(demoCall)).structuredContent as unknown as ToolData;
}

/** Writes the picture of a result to a file and returns the path of the file. */
async function savePicture(name: string, demoCall: DemoCall): Promise<string> {
  const { content } = await callTool(demoCall);
  const image = content.find((block) => block.type === 'image');
  if (image === undefined) throw new Error(`${demoCall.toolName} returned no picture.`);
  return saveFile(`${name}.${image.mimeType === 'image/png' ? 'png' : 'jpg'}`, Buffer.from(image.data, 'base64'));
}

/** Makes a tool call that exports files, such as a table and its note. Saves these files and returns their paths. */
async function saveExports(demoCall: DemoCall): Promise<string[]> {
  const earlierUris = new Set((await client.listResources()).resources.map(({ uri }) => uri));
  await callTool(demoCall);
  const savedFiles: string[] = [];
  for (const { uri, name } of (await client.listResources()).resources) {
    if (earlierUris.has(uri)) continue;
    const [resource] = (await client.readResource({ uri })).contents;
    if (resource && 'text' in resource) savedFiles.push(saveFile(name, resource.text));
  }
  return savedFiles;
}

async function callTool({ toolName, args, shownLinePattern, maxWrappedLines = 2 }: DemoCall): Promise<CallToolResult> {
  const result = (await client.callTool({ name: toolName, arguments: args })) as CallToolResult;
  const text = result.content.flatMap((block) => (block.type === 'text' ? block.text : [])).join('\n');
  if (result.isError) throw new Error(text);
  spending.calls++;
  spending.credits += (result.structuredContent as unknown as ToolData).receipt.charged ?? 0;
  const lines = text.split('\n').filter((line) => !line.startsWith('DEMO DATA'));
  const width = terminalColumns - 6;
  const wrapLine = (line: string, maxLines: number) => wrapAndClip(shortenIds(line), { columns: width, maxLines });
  const shownResultLines = lines.filter((line) => shownLinePattern.test(line) || creditsLinePattern.test(line));
  const [firstLine, ...otherLines] = wrapLine(`${toolName} ${formatArguments(args)}`, 4);
  callLines.push(
    styleForTerminal('yellow', `   → ${firstLine}`),
    ...otherLines.map((line) => styleForTerminal('yellow', `     ${line}`)),
  );
  for (const line of shownResultLines.flatMap((line) => wrapLine(line, maxWrappedLines)))
    callLines.push(`   ${styleForTerminal('dim', '│')} ${line}`);
  return result;
}

/** Wraps a text at spaces into lines of at most `columns` characters. A longer word gets a separate line. */
function wrapText(text: string, columns: number): string[] {
  const lines: string[] = [];
  let currentLine = '';
  for (const word of text.split(' ')) {
    if (currentLine !== '' && currentLine.length + 1 + word.length > columns) {
      lines.push(currentLine);
      currentLine = word;
    } else currentLine = currentLine === '' ? word : `${currentLine} ${word}`;
  }
  return [...lines, currentLine];
}

/** Returns the first `maxLines` lines of a wrapped text. Adds an ellipsis if lines are omitted. */
function wrapAndClip(text: string, { columns, maxLines }: { columns: number; maxLines: number }): string[] {
  const lines = wrapText(text, columns - 2);
  if (lines.length <= maxLines) return lines;
  return [...lines.slice(0, maxLines - 1), `${lines[maxLines - 1]} …`];
}

/** Formats arguments as JSON with spaces, so that the text can be wrapped. */
function formatArguments(args: object): string {
  return JSON.stringify(args, null, 1)
    .replace(/\[\n\s*|\n\s*(?=\])/g, (bracket) => bracket.trim())
    .replace(/\n\s*/g, ' ');
}

await main();
