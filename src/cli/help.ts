import { styleText } from 'node:util';
import type { Command } from 'commander';
import { type Setting, settings } from '../config/settings.ts';
import { examples } from './examples.ts';
import { prefix, wordsOf } from './wrong-use.ts';

/** Commander drops the styles where the output is no terminal or NO_COLOR is set. */
export const style = { styleTitle: (title: string) => styleText('bold', title) };

export const importHelp = `
Formats, found by content, each plain or compressed (.gz):
  JSON   ads and pages in the shapes of the API, or ads of the public ad
         library: JSON Lines, a list, an object with a list in
         "data" or "items", or one record; on one line or on many
  CSV    of the public ad library: ads (column ad_archive_id), or the
         advertisers of its report (column Page ID)

A record replaces an earlier one with the same id. Records that cannot be used
are skipped, and named by line or path with the reason; the exit code is then 1.`;

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
