import type { Command } from 'commander';
import { printable } from '../log/printable.ts';

export const prefix = 'ad-library-mcp: ';
const maxProblem = 400;
const maxOwners = 3;

export const everyCommand = (command: Command): Command[] => [command, ...command.commands.flatMap(everyCommand)];

/** `['ad-library-mcp', 'library', 'serve']` */
export const wordsOf = (command: Command): string[] => [
  ...(command.parent ? wordsOf(command.parent) : []),
  command.name(),
];

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
