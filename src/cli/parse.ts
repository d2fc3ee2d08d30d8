import { Command, CommanderError, Option, type OptionValues } from 'commander';
import { type Flags, type Setting, type SettingName, settings } from '../config/settings.ts';
import { addHelp, everyCommand, importHelp, problemText, style } from './help.ts';

/** The command to run, with the settings from its flags. */
export type Job =
  | { name: 'stdio'; flags: Flags }
  | { name: 'http'; flags: Flags }
  | { name: 'files clear'; flags: Flags }
  | { name: 'state accept'; flags: Flags }
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
  'mediaHosts',
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
  const program: Command = new Command('ad-library-mcp')
    .description('MCP server for an ad-intelligence service. Without a command it serves MCP over stdio.')
    .configureOutput({ outputError: (text, write) => write(problemText(text, program)) })
    .configureHelp(style);
  withSettings(program, stdio);
  addCommands(program, found);
  for (const command of everyCommand(program)) addHelp(command, version);
  const words = asksVersion(argv) ? ['--version'] : withHelpLast(program, argv);
  try {
    // With an action of its own, a program takes an unknown word for an argument too many, and suggests nothing.
    if (program.parseOptions([...words]).operands.length === 0) {
      program.action((values) => found({ name: 'stdio', flags: flagsOf(values) }));
    }
    program.parse(words, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return { exit: error.exitCode === 0 ? 0 : 2 };
    throw error;
  }
  return job ?? { exit: 2 };
}

/** As other programs are asked for it, too. */
const asksVersion = ([word = '', ...others]: readonly string[]): boolean =>
  others.length === 0 && ['-v', 'version'].includes(word);

/** `help X` as `X --help`. A wrong X stays alone: commander would print other help, and not say that X is wrong. */
function withHelpLast(program: Command, argv: readonly string[]): string[] {
  const commandOf = (words: readonly string[]) =>
    words.reduce<Command | undefined>(
      (command, word) => command?.commands.find((one) => one.name() === word && word !== 'help'),
      program,
    );
  const at = argv.indexOf('help');
  const isGroup = at >= 0 && (commandOf(argv.slice(0, at))?.commands.length ?? 0) > 0;
  if (!isGroup) return [...argv];
  const words = argv.filter((_, index) => index !== at);
  return commandOf(words) ? [...words, '--help'] : words;
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
  const state = sub(program, 'state', 'what replicas share at AD_LIBRARY_STATE_URL');
  withSettings(sub(state, 'accept', 'open budgets again after the state went back in time, and say what is known'), [
    'stateUrl',
    'logLevel',
  ]).action((_, command: Command) => found({ name: 'state accept', flags: flagsOf(command.optsWithGlobals()) }));
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
