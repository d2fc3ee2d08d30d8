import { styleText } from 'node:util';
import type { Command } from 'commander';
import { toolNames } from '../app.ts';
import { type Setting, settings } from '../config/settings.ts';
import { printable } from '../log/log.ts';

/** Commander drops the styles where the output is no terminal or NO_COLOR is set. */
export const style = { styleTitle: (title: string) => styleText('bold', title) };

export const importHelp = `
Formats, found by content, each plain or compressed (.gz):
  JSON   ads and pages in the shapes of the API, or ads of the public ad
         library: JSON Lines, a list, an object with a list in
         "data" or "items", or one record; on one line or on many
  CSV    ads of the public ad library (column ad_archive_id), or ads of your
         own (column headline or body; docs/archive.md names the others)

A record replaces an earlier one with the same id. Records that cannot be used
are skipped, and named by line or path with the reason; the exit code is then 1.`;

export const callHelp = `
Tools: ${toolNames.join(', ')}.

The exit code is 0; 1 when the result is an error; 2 for wrong use. With
AD_LIBRARY_FILES the dataset is kept between calls, and a credit budget is for
all calls of one day (UTC).`;

/** Help, examples and the version, which every command has. */
export function addHelp(command: Command, version: string): void {
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
  command.addHelpText(
    'after',
    section(
      'Examples',
      lines.map((line) => `  ${line}`),
    ),
  );
  if (command.parent) return;
  command.addHelpText('after', section('Environment', environmentHelp(command)));
  command.addHelpText('after', '\nIn a clone, ad-library-mcp is node dist/main.js.');
}

const section = (title: string, lines: readonly string[]) => ['', style.styleTitle(`${title}:`), ...lines].join('\n');

/** The variables that are no flags, and what those of flags are called. */
function environmentHelp(command: Command): string[] {
  const secrets = Object.values(settings).filter((setting: Setting) => setting.flag === undefined);
  const format = command.createHelp();
  return [
    ...secrets.map(({ variable, help }) => format.formatItem(variable, 25, help, format)),
    '  Every flag is also a variable: --cache-seconds is AD_LIBRARY_CACHE_SECONDS.',
  ];
}

/** Examples in the help of each command, by its words. Tests read them all, and run one of each command. */
export const examples: Readonly<Record<string, readonly string[]>> = {
  '': ['ad-library-mcp --demo', 'AD_LIBRARY_API_KEY=svc_live_… ad-library-mcp --base-url https://api.example'],
  stdio: ['ad-library-mcp stdio --demo', 'ad-library-mcp stdio --tools search_ads,get_ad --read-only'],
  http: [
    'ad-library-mcp http --demo',
    'ad-library-mcp http --base-url https://api.example.com --port 8080',
    'ad-library-mcp http --demo --host 0.0.0.0 --allowed-hosts ads.example.com',
  ],
  library: [
    'ad-library-mcp library import ads.jsonl',
    'ad-library-mcp library key create --name Laptop',
    'ad-library-mcp library serve',
  ],
  call: [
    `ad-library-mcp call search_ads '{"filters": {"countries": ["DE"]}, "limit": 5}' --demo`,
    `ad-library-mcp call check_watches '{"maxCredits": 20}' --files my-ads`,
    'ad-library-mcp call view_ads - --files my-ads --out sheet.jpg < ids.json',
  ],
  files: ['ad-library-mcp files clear --files my-ads'],
  'files clear': ['ad-library-mcp files clear --files my-ads'],
  state: ['ad-library-mcp state accept --state-url redis://state.internal:6379'],
  'state accept': ['ad-library-mcp state accept --state-url redis://state.internal:6379'],
  'library filters': ['ad-library-mcp library filters > filters.json'],
  'library serve': [
    'ad-library-mcp library serve --demo',
    'ad-library-mcp library serve --database ads.db --port 4000',
  ],
  'library pictures': [
    'ad-library-mcp library pictures',
    'ad-library-mcp library pictures --folder pictures --max-mb 500',
  ],
  'library import': [
    'ad-library-mcp library import ads.jsonl pages.jsonl --database ads.db',
    'cat ads.jsonl | ad-library-mcp library import -',
    'ad-library-mcp library import ads.jsonl --pictures',
  ],
  'library key': ['ad-library-mcp library key create --name Laptop', 'ad-library-mcp library key list'],
  'library key create': [
    'ad-library-mcp library key create --name Laptop --database ads.db',
    'ad-library-mcp library key create --name Archive --unmetered',
    'ad-library-mcp library key create --scopes ads:read,pages:read --credits 500',
  ],
  'library key list': ['ad-library-mcp library key list --database ads.db'],
  'library key revoke': ['ad-library-mcp library key revoke svc_live_1a2b3c4d'],
};

const prefix = 'ad-library-mcp: ';
const maxProblem = 400;
const maxOwners = 3;

export const everyCommand = (command: Command): Command[] => [command, ...command.commands.flatMap(everyCommand)];

/** `['ad-library-mcp', 'library', 'serve']` */
const wordsOf = (command: Command): string[] => [...(command.parent ? wordsOf(command.parent) : []), command.name()];

const nameOf = (command: Command): string => wordsOf(command).slice(1).join(' ');

/** One line with our prefix, from `error: …\n(Did you mean …?)\n`. Words of the command line may hold anything. */
export function problemText(text: string, program: Command): string {
  const [given = '', similar] = text.trim().split(/\n(?=\(Did you mean [^\n]*\)$)/);
  const problem = given.replace(/^error: /, '');
  const known = knownCommand(problem, program) ?? knownOption(problem, program);
  const shown = known ?? [problem.slice(0, maxProblem), similar].filter(Boolean).join(' ');
  return `${prefix}${printable(shown.replaceAll('\n', ' '))}\n`;
}

/** What to say where the unknown word is a command elsewhere. */
function knownCommand(problem: string, program: Command): string | undefined {
  const [, word] = /^unknown command '([\w-]+)'$/.exec(problem) ?? [];
  const [command] = everyCommand(program).filter((one) => one.parent && one.name() === word);
  return command && `${problem} (Did you mean ${nameOf(command)}?)`;
}

/** What to say where the unknown flag is one of other commands, or a switch that was given a value. */
function knownOption(problem: string, program: Command): string | undefined {
  const [, flag, value] = /^unknown option '(--[\w-]+)(=.*)?'$/s.exec(problem) ?? [];
  const owners = everyCommand(program).filter(({ options }) => options.some(({ long }) => long === flag));
  if (owners.length === 0) return undefined;
  const isSwitch = owners.every(({ options }) =>
    options.some((one) => one.long === flag && !one.required && !one.optional),
  );
  if (value !== undefined && isSwitch) return `${flag} takes no value`;
  const names = owners.slice(0, maxOwners).map(nameOf).filter(Boolean);
  return `unknown option '${flag}' (it belongs to ${names.join(', ')}${owners.length > maxOwners ? ', …' : ''})`;
}
