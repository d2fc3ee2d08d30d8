import { Command, CommanderError, type OptionValues } from 'commander';
import { type Flags, type Setting, type SettingName, settings } from '../config/settings.ts';

/** The command to run, with the settings from its flags. */
export type Job =
  | { name: 'stdio'; flags: Flags }
  | { name: 'http'; flags: Flags }
  | { name: 'files clear'; flags: Flags }
  | { name: 'library serve'; flags: Flags }
  | { name: 'library import'; flags: Flags; files: string[] }
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
];

/**
 * Reads a command line. Prints help and the version to standard output, and what is wrong to standard error. Returns
 * the job to do, or the exit code if there is none: 0, or 2 for wrong use.
 */
export function readCommand(argv: readonly string[], version: string): Job | { exit: number } {
  let job: Job | undefined;
  const program: Command = new Command('ad-library-mcp');
  program
    .description('MCP server for an ad-intelligence service. Without a command it serves MCP over stdio.')
    .helpOption('--help', 'print this help')
    .helpCommand(false)
    .showHelpAfterError('See ad-library-mcp --help.')
    .configureOutput({ outputError: (text, write) => write(named(text, program.args)) })
    .addHelpText('after', `\nEnvironment:\n${environmentHelp()}`)
    .action((values) => {
      job = { name: 'stdio', flags: flagsOf(values) };
    });
  withSettings(program, stdio);

  withSettings(sub(program, 'http', 'serve MCP over streamable HTTP at POST /mcp'), [...service, ...listening]).action(
    (_, command: Command) => {
      job = { name: 'http', flags: flagsOf(command.optsWithGlobals()) };
    },
  );
  const files = sub(program, 'files', 'what AD_LIBRARY_FILES keeps');
  files.action(() => files.error('error: files needs a command: clear'));
  withSettings(sub(files, 'clear', 'delete the kept datasets, after saying what they are'), [
    'files',
    'logLevel',
  ]).action((_, command: Command) => {
    job = { name: 'files clear', flags: flagsOf(command.optsWithGlobals()) };
  });
  const library = sub(program, 'library', 'the local library: the same HTTP API from an embedded database');
  library.action(() => library.error('error: library needs a command: serve, import or key'));
  withSettings(sub(library, 'serve', 'serve the local library over HTTP'), [
    'database',
    'demo',
    'host',
    'port',
    'allowedHosts',
    'logLevel',
  ]).action((_, command: Command) => {
    job = { name: 'library serve', flags: flagsOf(command.optsWithGlobals()) };
  });
  withSettings(sub(library, 'import', 'load ads and pages into the database'), ['database', 'logLevel'])
    .argument('<files...>', 'JSON Lines, one ad or page on each line; - for standard input')
    .action((files: string[], _, command: Command) => {
      job = { name: 'library import', flags: flagsOf(command.optsWithGlobals()), files };
    });
  addKeyCommands(library, (found) => {
    job = found;
  });

  try {
    for (const command of everyCommand(program))
      command.exitOverride().version(version, '--version', 'print the version');
    program.parse(argv, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return { exit: error.exitCode === 0 ? 0 : 2 };
    throw error;
  }
  return job ?? { exit: 2 };
}

function addKeyCommands(library: Command, found: (job: Job) => void): void {
  const key = sub(library, 'key', 'API keys of the local library');
  key.action(() => key.error('error: library key needs a command: create, list or revoke'));
  withSettings(sub(key, 'create', 'create a key and print it once'), ['database', 'logLevel'])
    .option('--name <name>', 'what the key is for')
    .option('--scopes <scopes>', 'comma-separated, for example ads:read,pages:read (default: all)')
    .option('--credits <number>', 'credits of the account per month')
    .option('--hourly-limit <number>', 'credits per hour')
    .option('--daily-limit <number>', 'credits per day')
    .option('--no-subscription', 'create the account without a subscription')
    .action((_, command: Command) => {
      const { name, scopes, credits, hourlyLimit, dailyLimit, subscription } = command.opts();
      const options = { name, scopes, credits, hourlyLimit, dailyLimit, subscription };
      found({ name: 'library key create', flags: flagsOf(command.optsWithGlobals()), options });
    });
  withSettings(sub(key, 'list', 'list the keys, without their secret part'), ['database', 'logLevel']).action(
    (_, command: Command) => found({ name: 'library key list', flags: flagsOf(command.optsWithGlobals()) }),
  );
  withSettings(sub(key, 'revoke', 'revoke a key'), ['database', 'logLevel'])
    .argument('<key>', 'the key, its id or its prefix, as list shows it')
    .action((which: string, _, command: Command) =>
      found({ name: 'library key revoke', flags: flagsOf(command.optsWithGlobals()), key: which }),
    );
}

const sub = (parent: Command, name: string, description: string) =>
  parent.command(name).description(description).helpOption('--help', 'print this help').helpCommand(false);

function withSettings(command: Command, names: readonly SettingName[]): Command {
  for (const name of names) {
    const { flag, value, help, schema } = settings[name] as Setting;
    const fallback = value && schema.safeParse(undefined).data;
    const shown = ['string', 'number'].includes(typeof fallback) ? `${help} (default: ${fallback})` : help;
    if (flag) command.option(value ? `${flag} <${value}>` : flag, shown);
  }
  return command;
}

function flagsOf(values: OptionValues): Flags {
  const entries = Object.entries(values).filter(([name]) => name in settings);
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

/** Names an unknown command, where commander would only count arguments. */
function named(text: string, [word]: readonly string[]): string {
  return text.includes('too many arguments.') && word ? `error: unknown command '${word}'\n` : text;
}

const everyCommand = (command: Command): Command[] => [command, ...command.commands.flatMap(everyCommand)];

function environmentHelp(): string {
  const width = Math.max(...Object.values(settings).map(({ variable }) => variable.length));
  return Object.values(settings)
    .map(({ variable, help }) => `  ${variable.padEnd(width)}  ${help}`)
    .join('\n');
}
