import { Command, CommanderError, type OptionValues } from 'commander';
import { toolNames } from '../app.ts';
import { type Flags, type Setting, type SettingName, settings } from '../config/settings.ts';
import { escapeControlCharacters } from '../logging/log.ts';

/**
 * Describes a command such as `library import`, or a group of commands such as `library`, for the parser and the help
 * texts.
 */
interface CommandDescription {
  /** The text that `--help` prints first, e.g. `serve MCP over stdio`. */
  description: string;
  /** The names of the settings whose flags the command accepts. Undefined for a group of commands. */
  settings?: readonly SettingName[];
  /** Help texts for flags that mean something different for this command. */
  flagHelp?: Partial<Flags>;
  /** The arguments of the command, each with its syntax, e.g. `<tool>`, and its help text. */
  args?: readonly (readonly [syntax: string, help: string])[];
  /** The options that are not settings, each with its syntax, its help text and, if needed, a parser for the value. */
  options?: readonly (readonly [syntax: string, help: string, parse?: (text: string) => unknown])[];
  /** Additional help text, which `--help` prints after the options. */
  details?: string;
  /** Example command lines for the help text. Tests parse all of them, and run the first one of each command. */
  examples: readonly string[];
}

/**
 * A parsed command line: the flags that set settings, the positional arguments (e.g. the files of an import), and the
 * options that are not settings.
 */
interface ParsedCommandLine {
  flags: Flags;
  positionals: readonly string[];
  options: OptionValues;
}

type Commands = typeof namedCommands;
type RunnableCommandName = {
  [Name in keyof Commands]: Commands[Name] extends { settings: unknown } ? Name : never;
}[keyof Commands];

/** A parsed command line with the name of its command, e.g. `library import`. */
export type ParsedCommand = { [Name in RunnableCommandName]: ParsedCommandLine & { name: Name } }[RunnableCommandName];

/** Lists the names of the settings that apply to a transport (stdio or HTTP). */
const listSettingNames = (transport: 'stdio' | 'http') =>
  Object.entries(settings).flatMap(([name, { onlyFor }]: [string, Setting]) =>
    onlyFor === undefined || onlyFor === transport ? [name as SettingName] : [],
  );

const databaseCommand = {
  settings: ['database', 'logLevel'],
  flagHelp: { database: 'File of the local library (default: ad-library.db)' },
} as const;

const pictureCommand = {
  settings: ['database', 'mediaHosts', 'logLevel'],
  flagHelp: {
    ...databaseCommand.flagHelp,
    mediaHosts: 'Hosts from which pictures may be fetched: public, none, or a list of hosts',
  },
} as const;
/** Parses a number. An empty text, e.g. from an unset variable of a script, is not the number 0. */
const parseNumber = (text: string): number => (text.trim() === '' ? Number.NaN : Number(text));

const pictureFolderOptions = [
  [
    '--folder <folder>',
    'Folder for the pictures (default: the folder of the stored pictures, else the path of the database with .pictures at its end)',
  ],
  ['--max-mb <number>', 'Largest size of the folder in megabytes (default: 2000)', parseNumber],
] as const;

const parseNames = (text: string): string[] => text.split(',').map((name) => name.trim());

const importHelp = `
Formats. The import recognises them by content, and "library formats" lists
them. Files may be compressed (.gz, .zip), and of a workbook (.xlsx) the import
reads the first sheet:
  JSON    ads of the ad libraries of Meta, Google, TikTok and LinkedIn, ads and
          pages in the shapes of the API, or rows that export_ads wrote: JSON
          Lines, a list, an answer of a service around a list, or one record;
          on one line or on many
  tables  with commas, semicolons, tabs or bars: ads of the same four ad
          libraries, exports of Meta Ads Manager, your own ads (column headline
          or body; docs/archive.md lists the other columns), or rows that
          export_ads wrote

A record replaces an earlier record with the same id. Records that cannot be
used are skipped. The report names their line or path and the reason, the recognised
format, and the keys and values that are not understood. The exit code is 1 if
a record was skipped, if a file contains no ad and no page, or if --complete
marked no ad as gone because a part of the download is missing.`;

const callHelp = `
Tools: ${toolNames.join(', ')}.

The exit code is 0 for success, 1 if the result is an error, 2 for wrong use,
and with --exit-code 3 if a check finds something new. With AD_LIBRARY_FILES,
the dataset is stored between calls, and a credit budget applies to all calls
of one day (UTC). Without it, exports and reports are written to the current
folder.`;

/**
 * All commands that have a name. A group such as `library` must come before its commands, e.g. `library import`,
 * because `addCommand` adds each command to an existing group.
 */
const namedCommands = {
  stdio: {
    description: 'serve MCP over stdio (the default without a command)',
    settings: listSettingNames('stdio'),
    examples: ['ad-library-mcp stdio --demo', 'ad-library-mcp stdio --tools search_ads,get_ad --read-only'],
  },
  http: {
    description: 'serve MCP over streamable HTTP at POST /mcp',
    settings: listSettingNames('http'),
    examples: [
      'ad-library-mcp http --demo',
      'ad-library-mcp http --base-url https://api.example.com --port 8080',
      'ad-library-mcp http --demo --host 0.0.0.0 --allowed-hosts ads.example.com',
    ],
  },
  call: {
    description: 'call one tool and print the result as a model would read it',
    settings: listSettingNames('stdio'),
    args: [
      ['<tool>', 'Name of the tool'],
      ['[json]', 'Arguments of the tool as one JSON object; - reads them from standard input'],
    ],
    options: [
      ['--json', 'Print the data of the result or of the error as one line of JSON'],
      ['--out <file>', 'Write the picture or the file of the result to a file'],
      ['--force', 'Let --out replace an existing file'],
      ['--html', 'For check_watches: also write the result as one HTML file'],
      ['--exit-code', 'For check_watches: exit with 3 if a check finds something new'],
    ],
    details: callHelp,
    examples: [
      `ad-library-mcp call search_ads '{"filters": {"countries": ["DE"]}}' --demo`,
      `ad-library-mcp call check_watches '{"maxCredits": 20}' --files my-ads`,
      'ad-library-mcp call view_ads - --files my-ads --out sheet.jpg < ids.json',
    ],
  },
  files: {
    description: 'manage the data that AD_LIBRARY_FILES stores',
    examples: ['ad-library-mcp files clear --files my-ads'],
  },
  'files clear': {
    description: 'list the stored datasets, then delete them',
    settings: ['files', 'logLevel'],
    examples: ['ad-library-mcp files clear --files my-ads'],
  },
  library: {
    description: 'the local library: the same HTTP API from an embedded database',
    examples: [
      'ad-library-mcp library import ads.jsonl',
      'ad-library-mcp library key create --name Laptop',
      'ad-library-mcp library serve',
    ],
  },
  'library serve': {
    description: 'serve the local library over HTTP',
    settings: ['database', 'demo', 'host', 'port', 'allowedHosts', 'logLevel'],
    options: [['--open', 'Open the pages of the library in a browser']],
    flagHelp: { demo: 'Serve generated demo data from memory, and print a key for it' },
    examples: ['ad-library-mcp library serve --demo', 'ad-library-mcp library serve --database ads.db --port 4000'],
  },
  'library import': {
    description: 'load ads and pages into the database',
    ...pictureCommand,
    options: [
      [
        '--format <name>',
        'Format of all files, if the import does not recognise it; "library formats" lists the names',
      ],
      ['--question <name>', 'Name of the question that the ads answer; searches find them with the filter question'],
      ['--complete', 'With --question: the files are the whole answer, so mark ads that it no longer lists as gone'],
      ['--pictures', 'After the import, fetch the pictures of ads that have none yet'],
      ...pictureFolderOptions,
    ],
    args: [['[files...]', 'Files and folders to import; - stands for standard input']],
    details: importHelp,
    examples: [
      'ad-library-mcp library import ads.jsonl pages.jsonl --database ads.db',
      'cat ads.jsonl | ad-library-mcp library import -',
      'ad-library-mcp library import ads.jsonl --pictures',
      'ad-library-mcp library import table.csv --format own-ads',
      'ad-library-mcp library import week-2.zip --question socks --complete',
    ],
  },
  'library pictures': {
    description: 'fetch the pictures of stored ads, including pictures that failed before',
    ...pictureCommand,
    options: pictureFolderOptions,
    examples: ['ad-library-mcp library pictures', 'ad-library-mcp library pictures --folder pictures --max-mb 500'],
  },
  'library formats': {
    description: 'list the formats that an import reads',
    settings: ['logLevel'],
    examples: ['ad-library-mcp library formats'],
  },
  'library filters': {
    description: 'print the filter keys of the library in the form of AD_LIBRARY_SEARCH_FILTERS',
    settings: ['logLevel'],
    examples: ['ad-library-mcp library filters > filters.json'],
  },
  'library key': {
    description: 'manage the API keys of the local library',
    examples: ['ad-library-mcp library key create --name Laptop', 'ad-library-mcp library key list'],
  },
  'library key create': {
    description: 'create a key and print it once',
    ...databaseCommand,
    options: [
      ['--name <name>', 'Name of the key, for lists'],
      ['--scopes <scopes>', 'Scopes, separated by commas, such as ads:read,pages:read (default: all)', parseNames],
      ['--credits <number>', 'Credits of the account per month', parseNumber],
      ['--hourly-limit <number>', 'Credits per hour', parseNumber],
      ['--daily-limit <number>', 'Credits per day', parseNumber],
      ['--unmetered', 'Calls with the key cost no credits and have no limits, for example for your own archive'],
      ['--no-subscription', 'Create the account without a subscription'],
    ],
    examples: [
      'ad-library-mcp library key create --name Laptop --database ads.db',
      'ad-library-mcp library key create --name Archive --unmetered',
      'ad-library-mcp library key create --scopes ads:read,pages:read --credits 500',
    ],
  },
  'library key list': {
    description: 'list the keys without their secrets',
    ...databaseCommand,
    examples: ['ad-library-mcp library key list --database ads.db'],
  },
  'library key revoke': {
    description: 'revoke a key',
    ...databaseCommand,
    args: [['<key>', 'The key, its id or its prefix as shown by list']],
    examples: ['ad-library-mcp library key revoke svc_live_1a2b3c4d'],
  },
} as const satisfies Record<string, CommandDescription>;

/**
 * All commands by name, e.g. `library import`. The empty name stands for a command line without a command, which serves
 * MCP over stdio.
 */
export const commandsByName: Readonly<Record<string, CommandDescription>> = {
  '': {
    description: 'MCP server for an ad-intelligence service. Without a command it serves MCP over stdio.',
    settings: listSettingNames('stdio'),
    examples: ['ad-library-mcp --demo', 'AD_LIBRARY_API_KEY=svc_live_… ad-library-mcp --base-url https://api.example'],
  },
  ...namedCommands,
};

const isCommandGroup = (name: string): boolean => name === '' || commandsByName[name]?.settings === undefined;

/**
 * Parses a command line. Prints the help text or the version if the command line asks for it.
 *
 * @param printProblem prints what is wrong with the command line, followed by a hint on where to find help
 * @returns the command to run, or an exit code if there is nothing to run: 0 after help or version, 2 for wrong usage
 */
export function parseCommandLine(
  argv: readonly string[],
  version: string,
  printProblem: (problem: string, help: string) => void,
): ParsedCommand | { exitCode: number } {
  let parsedCommand: ParsedCommand | undefined;
  let errorText = '';
  const program = new Command('ad-library-mcp')
    .configureOutput({
      writeErr: (text) => {
        errorText += text;
      },
      outputError: (text, write) => write(formatProblem(text)),
    })
    .helpOption('-h, --help', 'Print this help')
    .helpCommand('help [command]', 'Print the help of a command')
    .exitOverride();
  const setParsedCommand = (name: string, command: Command) => {
    // Commander accepts the options of `program` after every command. Reject the options that do not belong to the
    // command.
    const acceptedSettings: readonly string[] = commandsByName[name]?.settings ?? [];
    const unsupportedSetting = Object.keys(program.opts()).find(
      (option) => option in settings && !acceptedSettings.includes(option),
    );
    if (unsupportedSetting)
      command.error(
        `error: the option '${settings[unsupportedSetting as keyof typeof settings].flag}' does not apply to '${name}'`,
      );
    const optionEntries = Object.entries(command.optsWithGlobals());
    const options = Object.fromEntries(optionEntries.filter(([option]) => !(option in settings)));
    const flags = Object.fromEntries(
      optionEntries.flatMap(([option, value]) => (option in settings ? [[option, String(value)]] : [])),
    );
    parsedCommand = { name: name || 'stdio', flags, positionals: command.args, options } as ParsedCommand;
  };
  for (const [name, commandDescription] of Object.entries(commandsByName)) {
    const command = addCommand(program, name, commandDescription).version(
      version,
      '-V, --version',
      'Print the version',
    );
    if (name !== '' && commandDescription.settings) command.action(() => setParsedCommand(name, command));
  }
  const argumentsWithHelpFlag = replaceHelpCommand(argv);
  try {
    // Set the action of `program` only if the command line contains nothing but options. With this action, the package
    // `commander` would report an unknown command as an unexpected argument, and would not suggest a similar command.
    if (program.parseOptions([...argumentsWithHelpFlag]).operands.length === 0)
      program.action(() => setParsedCommand('', program));
    program.parse(argumentsWithHelpFlag, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return { exitCode: 0 };
    const [problem = '', ...helpLines] = errorText.trim().split('\n');
    printProblem(problem, helpLines.join('\n'));
    return { exitCode: 2 };
  }
  return parsedCommand ?? { exitCode: 2 };
}

/**
 * Replaces `help X` and `X help` with `X --help`, where X is a command. Returns any other arguments unchanged, so that
 * the `commander` package reports the problem.
 */
function replaceHelpCommand(argv: readonly string[]): readonly string[] {
  const helpIndex = argv.indexOf('help');
  const wordsWithoutHelp = argv.filter((_, index) => index !== helpIndex);
  const [nameBeforeHelp, nameWithoutHelp] = [argv.slice(0, helpIndex).join(' '), wordsWithoutHelp.join(' ')];
  if (helpIndex < 0 || !Object.hasOwn(commandsByName, nameBeforeHelp)) return argv;
  if (Object.hasOwn(commandsByName, nameWithoutHelp)) return [...wordsWithoutHelp, '--help'];
  return isCommandGroup(nameBeforeHelp) ? wordsWithoutHelp : argv;
}

/** Adds a command with its flags, arguments, options and help texts to the parser of the command line. */
function addCommand(program: Command, name: string, commandDescription: CommandDescription): Command {
  const groupNames = name.split(' ');
  const lastName = groupNames.pop();
  const parentCommand = groupNames.reduce(
    (group, groupName) => group.commands.find((command) => command.name() === groupName) ?? group,
    program,
  );
  const command = lastName ? parentCommand.command(lastName) : program;
  command
    .description(commandDescription.description)
    .showHelpAfterError(`See ${['ad-library-mcp', name, '--help'].filter(Boolean).join(' ')}.`);
  for (const setting of commandDescription.settings ?? []) {
    const { flag, valueName, help, parse } = settings[setting] as Setting;
    const defaultValue = valueName && parse(undefined);
    const settingHelp = commandDescription.flagHelp?.[setting] ?? help;
    const hasDefault = ['string', 'number'].includes(typeof defaultValue);
    const helpText = hasDefault ? `${settingHelp} (default: ${defaultValue})` : settingHelp;
    if (flag) command.option(valueName ? `${flag} <${valueName}>` : flag, helpText);
  }
  for (const [syntax, help, parse = (text: string): unknown => text] of commandDescription.options ?? [])
    command.option(syntax, help, parse);
  for (const [syntax, help] of commandDescription.args ?? []) command.argument(syntax, help);
  if (commandDescription.settings === undefined)
    command.addHelpText('before', ({ error }) => (error ? `${name} needs a command\n` : ''));
  if (commandDescription.details)
    command.addHelpText('after', command.createHelp().boxWrap(commandDescription.details, 80));
  const examples = commandDescription.examples.map((example) => `  ${example}`);
  command.addHelpText('after', formatSection('Examples', examples));
  if (name !== '') return command;
  return command
    .addHelpText('after', formatSection('Environment', formatEnvironmentHelp(command)))
    .addHelpText('after', '\nIn a clone, ad-library-mcp is node dist/main.js.');
}

const formatSection = (title: string, lines: readonly string[]) => ['', `${title}:`, ...lines].join('\n');

function formatEnvironmentHelp(command: Command): string[] {
  const secrets = Object.values(settings).filter(({ isSecret }: Setting) => isSecret);
  const helpFormatter = command.createHelp();
  return [
    ...secrets.map(({ variable, help }) => helpFormatter.formatItem(variable, 25, help, helpFormatter)),
    '  Every flag can also be set by a variable: --cache-seconds by\n  AD_LIBRARY_CACHE_SECONDS.',
  ];
}

const maxProblemLength = 400;

/**
 * Formats a problem with the command line as one line. Commander writes `error: …`, and sometimes a second line such as
 * `(Did you mean …?)`. Control characters from the command line are escaped.
 */
function formatProblem(commanderMessage: string): string {
  const [problem = '', suggestion] = commanderMessage.trim().split(/\n(?=\(Did you mean [^\n]*\)$)/);
  const problemLine = [problem.replace(/^error: /, '').slice(0, maxProblemLength), suggestion]
    .filter(Boolean)
    .join(' ');
  return `${escapeControlCharacters(problemLine.replaceAll('\n', ' '))}\n`;
}
