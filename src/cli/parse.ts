import { styleText } from 'node:util';
import { Command, CommanderError, Option, type OptionValues } from 'commander';
import { type Flags, type Setting, type SettingName, settings } from '../config/settings.ts';
import { printable } from '../log/printable.ts';
import { examples } from './examples.ts';

/** The command to run, with the settings from its flags. */
export type Job =
  | { name: 'stdio'; flags: Flags }
  | { name: 'http'; flags: Flags }
  | { name: 'files clear'; flags: Flags }
  | { name: 'library serve'; flags: Flags }
  | { name: 'library import'; flags: Flags; files: string[] }
  | { name: 'library filters'; flags: Flags }
  | { name: 'library key create'; flags: Flags; options: OptionValues }
  | { name: 'library key list'; flags: Flags }
  | { name: 'library key revoke'; flags: Flags; key: string };

const service: SettingName[] = [
  'baseUrl',
  'demo',
  'creditBudget',
  'cacheSeconds',
  'resultTokens',
  'output',
  'tools',
  'readOnly',
  'timeoutMs',
  'searchFilters',
  'logLevel',
];
const stdio: SettingName[] = [...service, 'files'];
const listening: SettingName[] = [
  'host',
  'port',
  'allowedHosts',
  'allowedOrigins',
  'callsAtOnce',
  'callsPerKey',
  'callsWaiting',
  'authFailuresPerMinute',
  'metrics',
  'stateUrl',
];

const database: SettingName[] = ['database', 'logLevel'];
const ofDatabase: Partial<Flags> = { database: 'File of the local library (default: ad-library.db)' };

/**
 * Reads a command line. Prints help and the version to standard output, and what is wrong to standard error. Returns
 * the job to do, or the exit code if there is none: 0, or 2 for wrong use.
 */
export function readCommand(argv: readonly string[], version: string): Job | { exit: number } {
  let job: Job | undefined;
  const found = (read: Job) => {
    job = read;
  };
  const program = new Command('ad-library-mcp')
    .description('MCP server for an ad-intelligence service. Without a command it serves MCP over stdio.')
    .configureOutput({ outputError: (text, write) => write(problemText(text)) })
    .configureHelp(style);
  withSettings(program, stdio);
  addCommands(program, found);
  for (const command of everyCommand(program)) addHelp(command, version);
  try {
    // With an action of its own, a program takes an unknown word for an argument too many, and suggests nothing.
    if (program.parseOptions([...argv]).operands.length === 0) {
      program.action((values) => found({ name: 'stdio', flags: flagsOf(values) }));
    }
    program.parse(argv, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return { exit: error.exitCode === 0 ? 0 : 2 };
    throw error;
  }
  return job ?? { exit: 2 };
}

function addCommands(program: Command, found: (job: Job) => void): void {
  withSettings(sub(program, 'stdio', 'serve MCP over stdio, as without a command'), stdio).action(
    (_, command: Command) => found({ name: 'stdio', flags: flagsOf(command.optsWithGlobals()) }),
  );
  withSettings(sub(program, 'http', 'serve MCP over streamable HTTP at POST /mcp'), [...service, ...listening]).action(
    (_, command: Command) => found({ name: 'http', flags: flagsOf(command.optsWithGlobals()) }),
  );
  const files = sub(program, 'files', 'what AD_LIBRARY_FILES keeps');
  withSettings(sub(files, 'clear', 'delete the kept datasets, after saying what they are'), [
    'files',
    'logLevel',
  ]).action((_, command: Command) => found({ name: 'files clear', flags: flagsOf(command.optsWithGlobals()) }));
  const library = sub(program, 'library', 'the local library: the same HTTP API from an embedded database');
  withSettings(
    sub(library, 'serve', 'serve the local library over HTTP'),
    ['database', 'demo', 'host', 'port', 'allowedHosts', 'logLevel'],
    { demo: 'Serve generated demo data from memory, and print a key for it' },
  ).action((_, command: Command) => found({ name: 'library serve', flags: flagsOf(command.optsWithGlobals()) }));
  withSettings(sub(library, 'import', 'load ads and pages into the database'), database, ofDatabase)
    .argument('<files...>', 'files to load; - for standard input')
    .addHelpText('after', importHelp)
    .action((files: string[], _, command: Command) =>
      found({ name: 'library import', flags: flagsOf(command.optsWithGlobals()), files }),
    );
  withSettings(sub(library, 'filters', 'print its filter keys as AD_LIBRARY_SEARCH_FILTERS takes them'), [
    'logLevel',
  ]).action((_, command: Command) => found({ name: 'library filters', flags: flagsOf(command.optsWithGlobals()) }));
  addKeyCommands(library, found);
}

const importHelp = `
Formats, found by content, each plain or compressed (.gz):
  JSON   ads and pages in the shapes of the API, or ads of the public ad library: JSON Lines, a list,
         an object with a list in "data" or "items", or one record; on one line or on many
  CSV    of the public ad library: ads (column ad_archive_id), or the advertisers of its report (column Page ID)

A record replaces an earlier one with the same id. Records that cannot be used are skipped, and named by line
or path with the reason; the exit code is then 1.`;

function addKeyCommands(library: Command, found: (job: Job) => void): void {
  const key = sub(library, 'key', 'API keys of the local library');
  withSettings(sub(key, 'create', 'create a key and print it once'), database, ofDatabase)
    .option('--name <name>', 'what the key is for')
    .option('--scopes <scopes>', 'comma-separated, for example ads:read,pages:read (default: all)')
    .option('--credits <number>', 'credits of the account per month')
    .option('--hourly-limit <number>', 'credits per hour')
    .option('--daily-limit <number>', 'credits per day')
    .option('--unmetered', 'calls with the key cost no credits and meet no limits, as for an archive of your own')
    .option('--no-subscription', 'create the account without a subscription')
    .action((_, command: Command) => {
      const { name, scopes, credits, hourlyLimit, dailyLimit, subscription, unmetered } = command.opts();
      const options = { name, scopes, credits, hourlyLimit, dailyLimit, subscription, unmetered };
      found({ name: 'library key create', flags: flagsOf(command.optsWithGlobals()), options });
    });
  withSettings(sub(key, 'list', 'list the keys, without their secret part'), database, ofDatabase).action(
    (_, command: Command) => found({ name: 'library key list', flags: flagsOf(command.optsWithGlobals()) }),
  );
  withSettings(sub(key, 'revoke', 'revoke a key'), database, ofDatabase)
    .argument('<key>', 'the key, its id or its prefix, as list shows it')
    .action((which: string, _, command: Command) =>
      found({ name: 'library key revoke', flags: flagsOf(command.optsWithGlobals()), key: which }),
    );
}

const sub = (parent: Command, name: string, description: string) => parent.command(name).description(description);

/** Commander drops the styles where the output is no terminal or NO_COLOR is set. */
const style = { styleTitle: (title: string) => styleText('bold', title) };

/** Help, examples and the version, which every command has. */
function addHelp(command: Command, version: string): void {
  const isGroup = command.commands.length > 0;
  const words = wordsOf(command);
  command
    .exitOverride()
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .showHelpAfterError(`See ${[...words, '--help'].join(' ')}.`);
  if (!isGroup) command.configureHelp({ ...style, visibleCommands: () => [] });
  else if (command.parent) {
    command.addHelpText('before', ({ error }) =>
      error ? `${prefix}${words.slice(1).join(' ')} needs a command\n` : '',
    );
  }
  const lines = examples[words.slice(1).join(' ')] ?? [];
  command.addHelpText('after', section('Examples', lines));
  if (!command.parent) command.addHelpText('after', section('Environment', environmentHelp()));
}

const section = (title: string, lines: readonly string[]) =>
  ['', style.styleTitle(`${title}:`), ...lines.map((line) => `  ${line}`)].join('\n');

/** `['ad-library-mcp', 'library', 'serve']` */
const wordsOf = (command: Command): string[] => [...(command.parent ? wordsOf(command.parent) : []), command.name()];

const prefix = 'ad-library-mcp: ';
const maxProblem = 400;

/** One line with our prefix, from `error: …\n(Did you mean …?)\n`. Words of the command line may hold anything. */
function problemText(text: string): string {
  const [problem = '', suggestion] = text.trim().split(/\n(?=\(Did you mean [^\n]*\)$)/);
  const shown = problem.replace(/^error: /, '').slice(0, maxProblem);
  const line = [shown, suggestion].filter(Boolean).join(' ').replaceAll('\n', ' ');
  return `${prefix}${printable(line)}\n`;
}

function withSettings(command: Command, names: readonly SettingName[], texts: Partial<Flags> = {}): Command {
  for (const name of names) {
    const { flag, value, help, schema } = settings[name] as Setting;
    const fallback = value && schema.safeParse(undefined).data;
    const text = texts[name] ?? help;
    const shown = ['string', 'number'].includes(typeof fallback) ? `${text} (default: ${fallback})` : text;
    if (flag) command.option(value ? `${flag} <${value}>` : flag, shown);
  }
  return command;
}

/** The setting of each flag, by the name under which Commander returns its value. */
const settingOf = new Map(
  Object.entries(settings).flatMap(([name, { flag }]: [string, Setting]) =>
    flag === undefined ? [] : [[new Option(flag).attributeName(), name]],
  ),
);

function flagsOf(values: OptionValues): Flags {
  const named = Object.entries(values).map(([attribute, value]) => [settingOf.get(attribute), String(value)]);
  return Object.fromEntries(named.filter(([name]) => name !== undefined));
}

const everyCommand = (command: Command): Command[] => [command, ...command.commands.flatMap(everyCommand)];

function environmentHelp(): string[] {
  const width = Math.max(...Object.values(settings).map(({ variable }) => variable.length));
  return Object.values(settings).map(({ variable, help }) => `${variable.padEnd(width)}  ${help}`);
}
