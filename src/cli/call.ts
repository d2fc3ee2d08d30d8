import { access, constants, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isNear, nearestFirst } from '../api/nearest.ts';
import { isGated } from '../api/operations.ts';
import { type App, elapsed, openApp, toolNames } from '../app.ts';
import { SettingsError } from '../config/read-config.ts';
import { type Config, settings } from '../config/settings.ts';
import { escapeControlCharacters, type Log } from '../logging/log.ts';
import type { ToolResult } from '../mcp/call-tool.ts';
import { describedTools } from '../mcp/described-tools.ts';
import type { Job } from './parse.ts';

export type CallJob = Extract<Job, { name: 'call' }>;

interface CallOptions {
  config: Config;
  log: Log;
  stdin: AsyncIterable<Uint8Array>;
  /** Where files are written without a setting. */
  folder: string;
  /** Writes to standard output, and resolves when it is there. */
  print(text: string): Promise<void>;
  say(text: string): void;
  /** Resolves on SIGINT or SIGTERM. */
  stopRequested: Promise<void>;
  /** How long a call may take after a stop request to return what it has, in milliseconds. */
  drainMs: number;
  onProgress?: ((message: string) => void) | undefined;
}

interface CallFlags {
  json?: true;
  out?: string;
  force?: true;
  html?: true;
  exitCode?: true;
}

const somethingNew = 3;

/** Calls one tool as a model would, and prints what the model would read. Returns the exit code. */
export async function callOnce({ words, options }: CallJob, call: CallOptions): Promise<number> {
  const { config, log, print, say } = call;
  const [tool = '', args = '{}'] = words;
  const { json, out, force, html, exitCode }: CallFlags = options;
  checkTool(tool, config);
  const flag = html ? '--html' : exitCode && '--exit-code';
  if (flag && tool !== 'check_watches') throw new SettingsError([`${flag} goes with check_watches alone`]);
  if (out !== undefined) await checkFile(out, { tool, force, html });
  const input = args === '-' ? await Promise.race([textOf(call.stdin), call.stopRequested]) : args;
  if (typeof input !== 'string') return 1;
  const given = readJson(input);
  // The text is the same in every form of output. Only this form has the data too.
  const app = await openApp({
    config: { ...config, output: 'both' },
    log,
    now: Date.now,
    elapsed,
    random: Math.random,
    countsDays: true,
    exportTarget: out === undefined ? { folder: call.folder } : undefined,
  });
  const cancel = new AbortController();
  void call.stopRequested.then(() => {
    app.drain();
    setTimeout(() => cancel.abort(), call.drainMs).unref();
  });
  const { onProgress } = call;
  try {
    if (!app.catalog.hasTool(tool)) throw new SettingsError([`${tool} is not among the tools that the settings leave`]);
    const result = await app.catalog.callTool({
      ...app.credentials,
      name: tool,
      arguments: given,
      signal: cancel.signal,
      wantsHtml: html === true,
      ...(onProgress && { onProgress: ({ message }) => onProgress(message) }),
    });
    const text = result.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');
    const data = result.isError ? result._meta?.['ad-library/error'] : result.structuredContent;
    await print(json ? `${escapeControlCharacters(JSON.stringify(data))}\n` : `${makePrintable(text)}\n`);
    if (result.isError) {
      if (json) say(`ad-library-mcp: ${text}\n`);
      return 1;
    }
    const code = exitCode && hasNew(result) ? somethingNew : 0;
    const read = fileIn(result, app);
    if (out === undefined) {
      if (read && result.structuredContent?.file === undefined)
        say(
          'ad-library-mcp: the result contains a picture or a file that will be discarded; use --out FILE to save it\n',
        );
      return code;
    }
    if (read === undefined) {
      say(`ad-library-mcp: the result holds no picture and no file, so nothing was written to ${out}\n`);
      return 2;
    }
    const written = read().then((content) => writeFile(out, content, { flag: force ? 'w' : 'wx' }));
    await written.catch((error) => {
      throw new Error(`${out} could not be written: ${error.message}`);
    });
    return code;
  } finally {
    await app.close(call.drainMs);
  }
}

const hasNew = ({ structuredContent: { watches } = {} }: ToolResult): boolean =>
  (watches as { new: string[] | null }[]).some((watch) => (watch.new ?? []).length > 0);

/** Emoji are made of several with a joiner, which steers no terminal. */
const makePrintable = (text: string): string => text.split(joiner).map(escapeControlCharacters).join(joiner);
const joiner = '\u200d';

/** @throws SettingsError for an unknown tool, or for one that stores something where nothing can be stored */
function checkTool(name: string, { files, demo }: Config): void {
  if (!toolNames.includes(name)) {
    const [nearest = ''] = nearestFirst(name, toolNames);
    const isOfBoard = describedTools.some((one) => one.name === name);
    if (isOfBoard) throw new SettingsError([`${name} belongs to the board's page and cannot be called`]);
    const hint = isNear(name, nearest) ? `did you mean ${nearest}?` : `the tools are ${toolNames.join(', ')}`;
    throw new SettingsError([
      `there is no tool ${escapeControlCharacters(JSON.stringify(name.slice(0, 60)))}; ${hint}`,
    ]);
  }
  const tool = describedTools.find((one) => one.name === name);
  if (!tool?.keepsRecords || (files !== undefined && !demo)) return;
  const why = demo ? 'demo data is not kept' : `${settings.files.variable} (or --files) must name a folder for it`;
  throw new SettingsError([`${name} needs what is kept between calls, and ${why}`]);
}

/** Runs before anything is spent. */
async function checkFile(
  out: string,
  { tool, force, html }: { tool: string; force: true | undefined; html: true | undefined },
): Promise<void> {
  if (out === '-')
    throw new SettingsError(['--out: name a file; standard output has the text (./- is a file named -)']);
  const described = describedTools.find(({ name }) => name === tool);
  if (described && isGated(described) && !html)
    throw new SettingsError([`--out: the result of ${tool} holds no picture and no file`]);
  const found = await stat(out).catch(() => undefined);
  if (found?.isDirectory()) throw new SettingsError([`--out: ${out} is a folder`]);
  if (found && !force) throw new SettingsError([`--out: ${out} is there already; --force replaces it`]);
  await access(dirname(out), constants.W_OK).catch(() => {
    throw new SettingsError([`--out: ${dirname(out)} is no folder that can be written to`]);
  });
}

const maxInputBytes = 4 * 1024 * 1024;

async function textOf(stdin: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of stdin) {
    parts.push(part);
    bytes += part.length;
    if (bytes > maxInputBytes) throw new SettingsError([`standard input holds more than ${maxInputBytes} bytes`]);
  }
  return Buffer.concat(parts).toString();
}

function readJson(text: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text.trim() || '{}');
  } catch (error) {
    throw new SettingsError([`the arguments are not JSON: ${(error as Error).message.slice(0, 200)}. ${howToWrite}`]);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new SettingsError([`the arguments must be a JSON object. ${howToWrite}`]);
}

const howToWrite = `Write - to send one object to standard input, or write the object in single quotes: '{"limit": 5}'. On Windows, write "{\\"limit\\": 5}" in cmd, and '{\\"limit\\": 5}' in PowerShell before version 7.3`;

/** Reads the picture or the file that a result holds; undefined if it holds none. */
function fileIn({ content, structuredContent: { uri, file } = {} }: ToolResult, { catalog, credentials }: App) {
  const picture = content.find((block) => block.type === 'image');
  if (picture) return async () => Buffer.from(picture.data, 'base64');
  if (typeof file === 'string') return () => readFile(file);
  if (typeof uri !== 'string') return undefined;
  const failure = (problem: string) => new Error(problem);
  return async () => {
    const { contents } = await catalog.readResource({
      ...credentials,
      uri,
      signal: new AbortController().signal,
      errors: { notFound: failure, refused: failure },
    });
    const [one = { text: '' }] = contents;
    return 'blob' in one ? Buffer.from(one.blob, 'base64') : one.text;
  };
}
