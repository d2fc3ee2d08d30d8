import { isUtf8 } from 'node:buffer';
import { access, constants, lstat, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isSimilar, sortBySimilarity } from '../api/nearest.ts';
import { canCostCredits } from '../api/operations.ts';
import { type App, monotonicNow, openApp, toolNames } from '../app.ts';
import { SettingsError } from '../config/read-config.ts';
import { type Config, settings } from '../config/settings.ts';
import { escapeControlCharacters, type Logger, type PrintStatus } from '../logging/log.ts';
import type { ToolResult } from '../mcp/call-tool.ts';
import { describedTools } from '../mcp/described-tools.ts';
import type { ParsedCommand } from './parse.ts';

/** A parsed command line of the `call` command, such as `call search_ads '{"limit": 5}'`. */
export type ParsedCallCommand = Extract<ParsedCommand, { name: 'call' }>;

interface CallDependencies {
  config: Config;
  log: Logger;
  stdin: AsyncIterable<Uint8Array>;
  /** The folder for exports and reports if the settings do not define one. */
  exportFolder: string;
  /** Writes a text to standard output. The promise resolves when the text has been written. */
  writeToStdout(text: string): Promise<void>;
  printStatus: PrintStatus;
  /** Resolves when the process receives SIGINT or SIGTERM. */
  stopRequested: Promise<void>;
  /**
   * The time in milliseconds in which a call can return a partial result after a stop request. After this time, the
   * call is aborted.
   */
  drainMs: number;
  onProgress?: ((message: string) => void) | undefined;
}

/** The options of the `call` command, e.g. `--json` or `--out FILE`. Settings such as `--demo` are not included. */
interface CallFlags {
  json?: true;
  out?: string;
  force?: true;
  html?: true;
  exitCode?: true;
}

/** The exit code if `--exit-code` is set and `check_watches` has found new ads. It lets scripts react to new ads. */
const newAdsExitCode = 3;

/** Runs the `call` command: calls a tool, and prints the result as an AI model would read it. Returns the exit code. */
export async function callToolAndPrintResult(
  { positionals, options }: ParsedCallCommand,
  callOptions: CallDependencies,
): Promise<number> {
  const { config, log, writeToStdout, printStatus } = callOptions;
  const [toolName = '', argumentsText = '{}'] = positionals;
  const { json, out, force, html, exitCode }: CallFlags = options;
  assertToolIsCallable(toolName, config);
  const checkWatchesFlag = html ? '--html' : exitCode && '--exit-code';
  if (checkWatchesFlag && toolName !== 'check_watches')
    throw new SettingsError([`${checkWatchesFlag} works only with check_watches`]);
  if (out !== undefined) await checkOutputFile(out, { tool: toolName, force, html });
  const argumentsInput =
    argumentsText === '-'
      ? await Promise.race([readStdinText(callOptions.stdin), callOptions.stopRequested])
      : argumentsText;
  if (typeof argumentsInput !== 'string') return 1;
  const toolArguments = parseToolArguments(argumentsInput);
  // Request both text and structured data from the tool, because `--json` prints the data, and all other output is
  // text.
  const app = await openApp({
    config: { ...config, output: 'both' },
    log,
    now: Date.now,
    monotonicNow,
    random: Math.random,
    hasDailyBudget: true,
    exportTarget: out === undefined ? { folder: callOptions.exportFolder } : undefined,
  });
  const abortController = new AbortController();
  void callOptions.stopRequested.then(() => {
    app.drain();
    setTimeout(() => abortController.abort(), callOptions.drainMs).unref();
  });
  const { onProgress } = callOptions;
  try {
    if (!app.catalog.hasTool(toolName)) throw new SettingsError([`${toolName} is not available with these settings`]);
    const result = await app.catalog.callTool({
      ...app.credentials,
      name: toolName,
      arguments: toolArguments,
      signal: abortController.signal,
      wantsHtml: html === true,
      ...(onProgress && { onProgress: ({ message }) => onProgress(message) }),
    });
    const text = result.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');
    const data = result.isError ? result._meta?.['ad-library/error'] : result.structuredContent;
    await writeToStdout(json ? `${escapeControlCharacters(JSON.stringify(data))}\n` : `${makePrintable(text)}\n`);
    if (result.isError) {
      if (json) printStatus('error', text);
      return 1;
    }
    const successExitCode = exitCode && hasNewAds(result) ? newAdsExitCode : 0;
    const readFileContent = findFileContentReader(result, app);
    if (out === undefined) {
      if (readFileContent && result.structuredContent?.file === undefined)
        printStatus(
          'warn',
          'the result contains a picture or a file that will be discarded; use --out FILE to save it',
        );
      return successExitCode;
    }
    if (readFileContent === undefined) {
      printStatus('error', `the result contains no picture and no file, so nothing was written to ${out}`);
      return 2;
    }
    const pendingWrite = readFileContent().then((content) => writeFile(out, content, { flag: force ? 'w' : 'wx' }));
    await pendingWrite.catch((error) => {
      throw new Error(`${out} could not be written: ${error.message}`);
    });
    return successExitCode;
  } finally {
    await app.close(callOptions.drainMs);
  }
}

/** Returns true if the result of `check_watches` lists at least one new ad. */
const hasNewAds = ({ structuredContent: { watches } = {} }: ToolResult): boolean =>
  (watches as { new: string[] | null }[]).some((watch) => (watch.new ?? []).length > 0);

/**
 * Escapes control characters, so that text from ads cannot control the terminal. The zero-width joiner stays unchanged,
 * because emoji need it and terminals do not interpret it.
 */
const makePrintable = (text: string): string =>
  text.split(zeroWidthJoiner).map(escapeControlCharacters).join(zeroWidthJoiner);
const zeroWidthJoiner = '\u200d';

/**
 * Checks that a tool can be called from the command line.
 *
 * @throws SettingsError if the tool is unknown, if only the ad board (the interactive view in AI apps) can call it, or
 * if it needs stored data and no data folder is set
 */
function assertToolIsCallable(toolName: string, { files, demo }: Config): void {
  if (!toolNames.includes(toolName)) {
    const [nearestName = ''] = sortBySimilarity(toolName, toolNames);
    const isBoardTool = describedTools.some((tool) => tool.name === toolName);
    if (isBoardTool) throw new SettingsError([`${toolName} belongs to the board's page and cannot be called`]);
    const hint = isSimilar(toolName, nearestName)
      ? `did you mean ${nearestName}?`
      : `the tools are ${toolNames.join(', ')}`;
    throw new SettingsError([
      `there is no tool ${escapeControlCharacters(JSON.stringify(toolName.slice(0, 60)))}; ${hint}`,
    ]);
  }
  const describedTool = describedTools.find(({ name }) => name === toolName);
  if (!describedTool?.storesUserData || (files !== undefined && !demo)) return;
  const reason = demo ? 'demo data is not stored' : `${settings.files.variable} (or --files) must name a folder for it`;
  throw new SettingsError([`${toolName} needs data that is stored between calls, and ${reason}`]);
}

/**
 * Checks the file name passed with `--out` before the tool is called, so that the call does not spend credits on a
 * result that cannot be written.
 *
 * @throws SettingsError if the file cannot be written, or if the tool returns no file
 */
async function checkOutputFile(
  outputFile: string,
  { tool: toolName, force, html }: { tool: string; force: true | undefined; html: true | undefined },
): Promise<void> {
  if (outputFile === '-')
    throw new SettingsError([
      '--out: name a file. Standard output already has the text. For a file named -, write ./-',
    ]);
  const describedTool = describedTools.find(({ name }) => name === toolName);
  if (describedTool && canCostCredits(describedTool) && !html)
    throw new SettingsError([`--out: the result of ${toolName} contains no picture and no file`]);
  const existingFile = await stat(outputFile).catch(() => undefined);
  if (existingFile?.isDirectory()) throw new SettingsError([`--out: ${outputFile} is a folder`]);
  // A link to a file that does not exist yet also counts as an existing file.
  const existingEntry = await lstat(outputFile).catch(() => undefined);
  if (existingEntry && !force) throw new SettingsError([`--out: ${outputFile} exists already; --force replaces it`]);
  await access(dirname(outputFile), constants.W_OK).catch(() => {
    throw new SettingsError([`--out: ${dirname(outputFile)} is not a folder that can be written`]);
  });
  // Opening a device or a named pipe could block or change it. A link to a file that does not exist yet is not checked.
  if (existingEntry && !existingFile?.isFile()) return;
  const fileHandle = await open(outputFile, existingEntry ? 'r+' : 'wx').catch((error) => {
    throw new SettingsError([`--out: ${outputFile} cannot be written: ${error.message}`]);
  });
  await fileHandle.close();
  if (!existingEntry) await rm(outputFile);
}

const maxStdinBytes = 4 * 1024 * 1024;

/**
 * Reads all of standard input as text.
 * @throws SettingsError if the input is too large or is not UTF-8
 */
async function readStdinText(stdin: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  for await (const chunk of stdin) {
    chunks.push(chunk);
    byteCount += chunk.length;
    if (byteCount > maxStdinBytes)
      throw new SettingsError([`standard input contains more than ${maxStdinBytes} bytes`]);
  }
  // Without this check, a search for "Müller" in another encoding would be sent, and paid for, as "M\uFFFDller".
  const inputBytes = Buffer.concat(chunks);
  if (!isUtf8(inputBytes)) throw new SettingsError(['standard input is not UTF-8 text; save the arguments as UTF-8']);
  return inputBytes.toString();
}

/**
 * Parses the arguments of a tool, as written on the command line.
 * @throws SettingsError if the text is not a JSON object
 */
function parseToolArguments(argumentsText: string): object {
  // Without this check, a failed command before a pipe would start a paid search of all ads.
  if (argumentsText.trim() === '') throw new SettingsError([`the arguments are empty. ${argumentsHint}`]);
  let parsedArguments: unknown;
  try {
    parsedArguments = JSON.parse(argumentsText.trim());
  } catch (error) {
    throw new SettingsError([
      `the arguments are not JSON: ${(error as Error).message.slice(0, 200)}. ${argumentsHint}`,
    ]);
  }
  if (typeof parsedArguments === 'object' && parsedArguments !== null && !Array.isArray(parsedArguments))
    return parsedArguments;
  throw new SettingsError([`the arguments must be a JSON object. ${argumentsHint}`]);
}

const argumentsHint = `Write - to send one object to standard input, or write the object in single quotes: '{"limit": 5}'. On Windows, write "{\\"limit\\": 5}" in cmd, and '{\\"limit\\": 5}' in PowerShell before version 7.3`;

/**
 * Returns a function that loads the picture or the file in a tool result. Returns undefined if the result contains
 * neither.
 */
function findFileContentReader(
  { content, structuredContent: { uri, file } = {} }: ToolResult,
  { catalog, credentials }: App,
) {
  const picture = content.find((block) => block.type === 'image');
  if (picture) return async () => Buffer.from(picture.data, 'base64');
  if (typeof file === 'string') return () => readFile(file);
  if (typeof uri !== 'string') return undefined;
  const createError = (problem: string) => new Error(problem);
  return async () => {
    const { contents } = await catalog.readResource({
      ...credentials,
      uri,
      signal: new AbortController().signal,
      errorFactories: { notFound: createError, refused: createError },
    });
    const [firstContent = { text: '' }] = contents;
    return 'blob' in firstContent ? Buffer.from(firstContent.blob, 'base64') : firstContent.text;
  };
}
