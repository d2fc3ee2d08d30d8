import { Command, CommanderError, Option, type OptionValues } from 'commander';
import { type Flags, type Setting, type SettingName, settings } from '../config/settings.ts';
import { addHelp, callHelp, everyCommand, importHelp, problemText, style } from './help.ts';

/** The command to run, with the settings from its flags. */
export type Job =
  | { [Name in Plain]: { name: Name; flags: Flags } }[Plain]
  | { name: 'call'; flags: Flags; tool: string; args?: string; options: OptionValues }
  | { name: 'library import'; flags: Flags; files: string[]; options: OptionValues }
  | { name: 'library pictures'; flags: Flags; options: OptionValues }
  | { name: 'library key create'; flags: Flags; options: OptionValues }
  | { name: 'library key revoke'; flags: Flags; key: string };

type Plain =
  | 'stdio'
  | 'http'
  | 'files clear'
  | 'state accept'
  | 'library serve'
  | 'library filters'
  | 'library key list';

interface CommandLine {
  does: string;
  /** The settings whose flags it takes; none for a group of commands. */
  settings?: SettingName[];
  /** Help of a flag that means something else here. */
  texts?: Partial<Flags>;
  /** What its words are, and their help. */
  words?: readonly { as: 'files' | 'key' | 'tool' | 'args'; form: string; help: string }[];
  /** Options that are no settings: their form, their help, and what reads their value. */
  options?: readonly (readonly [form: string, help: string, read?: (text: string) => unknown])[];
  after?: string;
}

/** The settings that a server of this kind takes. */
const settingsOf = (kind: 'stdio' | 'http') =>
  Object.entries(settings).flatMap(([name, { only }]: [string, Setting]) =>
    only === undefined || only === kind ? [name as SettingName] : [],
  );

const ofDatabase: Pick<CommandLine, 'settings' | 'texts'> = {
  settings: ['database', 'logLevel'],
  texts: { database: 'File of the local library (default: ad-library.db)' },
};

const ofPictures: typeof ofDatabase = {
  settings: ['database', 'mediaHosts', 'logLevel'],
  texts: { ...ofDatabase.texts, mediaHosts: 'Where pictures may be fetched from: public, none, or hosts' },
};
const maxMb = ['--max-mb <number>', 'how large the folder may become, in megabytes (default: 2000)', Number] as const;

const namesIn = (text: string): string[] => text.split(',').map((name) => name.trim());

/** A group stands before its commands. */
const commands: Readonly<Record<string, CommandLine>> = {
  stdio: { does: 'serve MCP over stdio, as without a command', settings: settingsOf('stdio') },
  http: { does: 'serve MCP over streamable HTTP at POST /mcp', settings: settingsOf('http') },
  call: {
    does: 'call one tool, and print what a model would read',
    settings: settingsOf('stdio'),
    words: [
      { as: 'tool', form: '<tool>', help: 'name of the tool' },
      { as: 'args', form: '[json]', help: 'its arguments, one JSON object; - reads it from standard input' },
    ],
    options: [
      ['--json', 'print the data of the result, or of the error, as one line of JSON'],
      ['--out <file>', 'write the picture or the file that the result holds'],
      ['--force', 'let --out replace a file'],
    ],
    after: callHelp,
  },
  files: { does: 'what AD_LIBRARY_FILES keeps' },
  'files clear': { does: 'delete the kept datasets, after saying what they are', settings: ['files', 'logLevel'] },
  state: { does: 'what replicas share at AD_LIBRARY_STATE_URL' },
  'state accept': {
    does: 'open budgets again after the state went back in time, and say what is known',
    settings: ['stateUrl', 'logLevel'],
  },
  library: { does: 'the local library: the same HTTP API from an embedded database' },
  'library serve': {
    does: 'serve the local library over HTTP',
    settings: ['database', 'demo', 'host', 'port', 'allowedHosts', 'logLevel'],
    texts: { demo: 'Serve generated demo data from memory, and print a key for it' },
  },
  'library import': {
    does: 'load ads and pages into the database',
    ...ofPictures,
    options: [['--pictures [folder]', 'then fetch the pictures of ads that have none yet'], maxMb],
    words: [{ as: 'files', form: '[files...]', help: 'files to load; - for standard input' }],
    after: importHelp,
  },
  'library pictures': {
    does: 'fetch the pictures of ads that are in the database, also those that could not be fetched before',
    ...ofPictures,
    options: [['--folder <folder>', 'where they are kept (default: the database with .pictures at its end)'], maxMb],
  },
  'library filters': { does: 'print its filter keys as AD_LIBRARY_SEARCH_FILTERS takes them', settings: ['logLevel'] },
  'library key': { does: 'API keys of the local library' },
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
  },
  'library key list': { does: 'list the keys, without their secret part', ...ofDatabase },
  'library key revoke': {
    does: 'revoke a key',
    ...ofDatabase,
    words: [{ as: 'key', form: '<key>', help: 'the key, its id or its prefix, as list shows it' }],
  },
};

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
  addSettings(program, settingsOf('stdio'));
  for (const [name, line] of Object.entries(commands)) addCommand(program, name, { line, found });
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

function addCommand(
  program: Command,
  name: string,
  { line, found }: { line: CommandLine; found: (job: Job) => void },
): void {
  const { does, settings: names, texts, words = [], options = [], after } = line;
  const path = name.split(' ');
  const last = path.pop() ?? '';
  const parent = path.reduce((group, word) => group.commands.find((one) => one.name() === word) ?? group, program);
  const command = parent.command(last).description(does);
  if (names === undefined) return;
  addSettings(command, names, texts);
  for (const [form, help, read = (text: string): unknown => text] of options) command.option(form, help, read);
  for (const { form, help } of words) command.argument(form, help);
  if (after) command.addHelpText('after', after);
  command.action(() => {
    const own = Object.entries(command.opts()).filter(([attribute]) => !settingOf.has(attribute));
    found({
      name,
      flags: flagsOf(command.optsWithGlobals()),
      ...Object.fromEntries(words.map(({ as }, index) => [as, command.processedArgs[index]])),
      ...(line.options && { options: Object.fromEntries(own) }),
    } as Job);
  });
}

function addSettings(command: Command, names: readonly SettingName[], texts: Partial<Flags> = {}): void {
  for (const name of names) {
    const { flag, value, help, schema } = settings[name] as Setting;
    const fallback = value && schema.safeParse(undefined).data;
    const text = texts[name] ?? help;
    const shown = ['string', 'number'].includes(typeof fallback) ? `${text} (default: ${fallback})` : text;
    if (flag) command.option(value ? `${flag} <${value}>` : flag, shown);
  }
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
