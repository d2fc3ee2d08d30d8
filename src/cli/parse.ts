import { Command, CommanderError, type OptionValues } from 'commander';
import { toolNames } from '../app.ts';
import { type Flags, type Setting, type SettingName, settings } from '../config/settings.ts';
import { escapeControlCharacters } from '../logging/log.ts';

interface CommandLine {
  does: string;
  /** The settings whose flags it takes; none for a group of commands. */
  settings?: readonly SettingName[];
  /** Help of a flag that means something else here. */
  texts?: Partial<Flags>;
  words?: readonly (readonly [form: string, help: string])[];
  /** Options that are no settings: their form, their help, and what reads their value. */
  options?: readonly (readonly [form: string, help: string, read?: (text: string) => unknown])[];
  after?: string;
  /** Tests read all examples, and run the first of each command. */
  examples: readonly string[];
}

interface Given {
  flags: Flags;
  words: readonly string[];
  options: OptionValues;
}

type Lines = typeof commands;
type Runnable = { [Name in keyof Lines]: Lines[Name] extends { settings: unknown } ? Name : never }[keyof Lines];

export type Job = { [Name in Runnable]: Given & { name: Name } }[Runnable];

const settingsOf = (kind: 'stdio' | 'http') =>
  Object.entries(settings).flatMap(([name, { onlyFor: only }]: [string, Setting]) =>
    only === undefined || only === kind ? [name as SettingName] : [],
  );

const ofDatabase = {
  settings: ['database', 'logLevel'],
  texts: { database: 'File of the local library (default: ad-library.db)' },
} as const;

const ofPictures = {
  settings: ['database', 'mediaHosts', 'logLevel'],
  texts: { ...ofDatabase.texts, mediaHosts: 'Where pictures may be fetched from: public, none, or hosts' },
} as const;
const pictureFolder = [
  ['--folder <folder>', 'where pictures are kept (default: the database with .pictures at its end)'],
  ['--max-mb <number>', 'how large the folder may become, in megabytes (default: 2000)', Number],
] as const;

const namesIn = (text: string): string[] => text.split(',').map((name) => name.trim());

/** A group stands before its commands. */
const importHelp = `
Formats, found by content, each plain or compressed (.gz):
  JSON    ads and pages in the shapes of the API, ads of the Meta Ad Library,
          or rows that export_ads wrote: JSON Lines, a list, an answer of a
          service around a list, or one record; on one line or on many
  tables  with commas, semicolons, tabs or bars: ads of the Meta Ad Library
          (column ad_archive_id), ads of your own (column headline or body;
          docs/archive.md names the others), or rows that export_ads wrote

A record replaces an earlier one with the same id. Records that cannot be used
are skipped, and named by line or path with the reason. Keys and values that
are not understood are named with their number. The exit code is 1 if a record
was skipped, or if a file holds no ad and no page.`;

const callHelp = `
Tools: ${toolNames.join(', ')}.

The exit code is 0; 1 when the result is an error; 2 for wrong use; 3 with
--exit-code when a check has something new. With
AD_LIBRARY_FILES the dataset is kept between calls, and a credit budget is for
all calls of one day (UTC). Without it, an export or a report is written where
you started the command.`;

const commands = {
  stdio: {
    does: 'serve MCP over stdio, as without a command',
    settings: settingsOf('stdio'),
    examples: ['ad-library-mcp stdio --demo', 'ad-library-mcp stdio --tools search_ads,get_ad --read-only'],
  },
  http: {
    does: 'serve MCP over streamable HTTP at POST /mcp',
    settings: settingsOf('http'),
    examples: [
      'ad-library-mcp http --demo',
      'ad-library-mcp http --base-url https://api.example.com --port 8080',
      'ad-library-mcp http --demo --host 0.0.0.0 --allowed-hosts ads.example.com',
    ],
  },
  call: {
    does: 'call one tool, and print what a model would read',
    settings: settingsOf('stdio'),
    words: [
      ['<tool>', 'name of the tool'],
      ['[json]', 'its arguments, one JSON object; - reads it from standard input'],
    ],
    options: [
      ['--json', 'print the data of the result, or of the error, as one line of JSON'],
      ['--out <file>', 'write the picture or the file that the result holds'],
      ['--force', 'let --out replace a file'],
      ['--html', 'check_watches: write what it found as one HTML file, too'],
      ['--exit-code', 'check_watches: end with 3 when something is new'],
    ],
    after: callHelp,
    examples: [
      `ad-library-mcp call search_ads '{"filters": {"countries": ["DE"]}}' --demo`,
      `ad-library-mcp call check_watches '{"maxCredits": 20}' --files my-ads`,
      'ad-library-mcp call view_ads - --files my-ads --out sheet.jpg < ids.json',
    ],
  },
  files: { does: 'what AD_LIBRARY_FILES keeps', examples: ['ad-library-mcp files clear --files my-ads'] },
  'files clear': {
    does: 'list the stored datasets, then delete them',
    settings: ['files', 'logLevel'],
    examples: ['ad-library-mcp files clear --files my-ads'],
  },
  library: {
    does: 'the local library: the same HTTP API from an embedded database',
    examples: [
      'ad-library-mcp library import ads.jsonl',
      'ad-library-mcp library key create --name Laptop',
      'ad-library-mcp library serve',
    ],
  },
  'library serve': {
    does: 'serve the local library over HTTP',
    settings: ['database', 'demo', 'host', 'port', 'allowedHosts', 'logLevel'],
    options: [['--open', 'open its pages in a browser']],
    texts: { demo: 'Serve generated demo data from memory, and print a key for it' },
    examples: ['ad-library-mcp library serve --demo', 'ad-library-mcp library serve --database ads.db --port 4000'],
  },
  'library import': {
    does: 'load ads and pages into the database',
    ...ofPictures,
    options: [['--pictures', 'then fetch the pictures of ads that have none yet'], ...pictureFolder],
    words: [['[files...]', 'files to load; - for standard input']],
    after: importHelp,
    examples: [
      'ad-library-mcp library import ads.jsonl pages.jsonl --database ads.db',
      'cat ads.jsonl | ad-library-mcp library import -',
      'ad-library-mcp library import ads.jsonl --pictures',
    ],
  },
  'library pictures': {
    does: 'fetch the pictures of ads that are in the database, also those that could not be fetched before',
    ...ofPictures,
    options: pictureFolder,
    examples: ['ad-library-mcp library pictures', 'ad-library-mcp library pictures --folder pictures --max-mb 500'],
  },
  'library filters': {
    does: 'print its filter keys in the form that AD_LIBRARY_SEARCH_FILTERS takes',
    settings: ['logLevel'],
    examples: ['ad-library-mcp library filters > filters.json'],
  },
  'library key': {
    does: 'API keys of the local library',
    examples: ['ad-library-mcp library key create --name Laptop', 'ad-library-mcp library key list'],
  },
  'library key create': {
    does: 'create a key and print it once',
    ...ofDatabase,
    options: [
      ['--name <name>', 'what the key is for'],
      ['--scopes <scopes>', 'comma-separated, for example ads:read,pages:read (default: all)', namesIn],
      ['--credits <number>', 'credits of the account per month', Number],
      ['--hourly-limit <number>', 'credits per hour', Number],
      ['--daily-limit <number>', 'credits per day', Number],
      ['--unmetered', 'calls with the key cost no credits and meet no limits, as for an archive of your own'],
      ['--no-subscription', 'create the account without a subscription'],
    ],
    examples: [
      'ad-library-mcp library key create --name Laptop --database ads.db',
      'ad-library-mcp library key create --name Archive --unmetered',
      'ad-library-mcp library key create --scopes ads:read,pages:read --credits 500',
    ],
  },
  'library key list': {
    does: 'list the keys, without their secret part',
    ...ofDatabase,
    examples: ['ad-library-mcp library key list --database ads.db'],
  },
  'library key revoke': {
    does: 'revoke a key',
    ...ofDatabase,
    words: [['<key>', 'the key, its id or its prefix, as list shows it']],
    examples: ['ad-library-mcp library key revoke svc_live_1a2b3c4d'],
  },
} as const satisfies Record<string, CommandLine>;

/** All commands by their words; without one, it is stdio. */
export const commandLines: Readonly<Record<string, CommandLine>> = {
  '': {
    does: 'MCP server for an ad-intelligence service. Without a command it serves MCP over stdio.',
    settings: settingsOf('stdio'),
    examples: ['ad-library-mcp --demo', 'AD_LIBRARY_API_KEY=svc_live_… ad-library-mcp --base-url https://api.example'],
  },
  ...commands,
};

const isGroup = (name: string): boolean => name === '' || commandLines[name]?.settings === undefined;

/** Prints help and the version, and what is wrong. Returns the job to do, or the exit code: 0, or 2 for wrong use. */
export function readCommand(argv: readonly string[], version: string): Job | { exit: number } {
  let job: Job | undefined;
  const program = new Command('ad-library-mcp')
    .configureOutput({ outputError: (text, write) => write(problemText(text)) })
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .exitOverride();
  const runs = (name: string, command: Command) => {
    const values = Object.entries(command.optsWithGlobals());
    const options = Object.fromEntries(values.filter(([option]) => !(option in settings)));
    const flags = Object.fromEntries(
      values.flatMap(([option, value]) => (option in settings ? [[option, String(value)]] : [])),
    );
    job = { name: name || 'stdio', flags, words: command.args, options } as Job;
  };
  for (const [name, line] of Object.entries(commandLines)) {
    const command = addCommand(program, name, line).version(version, '-V, --version', 'print the version');
    if (name !== '' && line.settings) command.action(() => runs(name, command));
  }
  const words = withHelpLast(argv);
  try {
    // With an action of its own, a program takes an unknown word for an argument too many, and suggests nothing.
    if (program.parseOptions([...words]).operands.length === 0) program.action(() => runs('', program));
    program.parse(words, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return { exit: error.exitCode === 0 ? 0 : 2 };
    throw error;
  }
  return job ?? { exit: 2 };
}

/** `help X` and `X help` as `X --help`. A wrong X stays: commander would not say that it is wrong. */
function withHelpLast(argv: readonly string[]): readonly string[] {
  const at = argv.indexOf('help');
  const words = argv.filter((_, index) => index !== at);
  const [before, others] = [argv.slice(0, at).join(' '), words.join(' ')];
  if (at < 0 || !Object.hasOwn(commandLines, before)) return argv;
  if (Object.hasOwn(commandLines, others)) return [...words, '--help'];
  return isGroup(before) ? words : argv;
}

function addCommand(program: Command, name: string, line: CommandLine): Command {
  const path = name.split(' ');
  const last = path.pop();
  const parent = path.reduce((group, word) => group.commands.find((one) => one.name() === word) ?? group, program);
  const command = last ? parent.command(last) : program;
  command
    .description(line.does)
    .showHelpAfterError(`See ${['ad-library-mcp', name, '--help'].filter(Boolean).join(' ')}.`);
  for (const setting of line.settings ?? []) {
    const { flag, valueName: value, help, parse: read } = settings[setting] as Setting;
    const fallback = value && read(undefined);
    const text = line.texts?.[setting] ?? help;
    const shown = ['string', 'number'].includes(typeof fallback) ? `${text} (default: ${fallback})` : text;
    if (flag) command.option(value ? `${flag} <${value}>` : flag, shown);
  }
  for (const [form, help, read = (text: string): unknown => text] of line.options ?? [])
    command.option(form, help, read);
  for (const [form, help] of line.words ?? []) command.argument(form, help);
  if (line.settings === undefined)
    command.addHelpText('before', ({ error }) => (error ? `${prefix}${name} needs a command\n` : ''));
  if (line.after) command.addHelpText('after', command.createHelp().boxWrap(line.after, 80));
  const examples = line.examples.map((example) => `  ${example}`);
  command.addHelpText('after', section('Examples', examples));
  if (name !== '') return command;
  return command
    .addHelpText('after', section('Environment', environmentHelp(command)))
    .addHelpText('after', '\nIn a clone, ad-library-mcp is node dist/main.js.');
}

const section = (title: string, lines: readonly string[]) => ['', `${title}:`, ...lines].join('\n');

function environmentHelp(command: Command): string[] {
  const secrets = Object.values(settings).filter(({ secret }: Setting) => secret);
  const format = command.createHelp();
  return [
    ...secrets.map(({ variable, help }) => format.formatItem(variable, 25, help, format)),
    '  Every flag is also a variable: --cache-seconds is AD_LIBRARY_CACHE_SECONDS.',
  ];
}

const prefix = 'ad-library-mcp: ';
const maxProblem = 400;

/** One line with our prefix, from `error: …\n(Did you mean …?)\n`. Words of the command line may hold anything. */
function problemText(text: string): string {
  const [problem = '', similar] = text.trim().split(/\n(?=\(Did you mean [^\n]*\)$)/);
  const shown = [problem.replace(/^error: /, '').slice(0, maxProblem), similar].filter(Boolean).join(' ');
  return `${prefix}${escapeControlCharacters(shown.replaceAll('\n', ' '))}\n`;
}
