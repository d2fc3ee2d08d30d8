import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { toolNames } from '../../src/app.ts';
import { commandsByName, parseCommandLine } from '../../src/cli/parse.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { type Setting, settings } from '../../src/config/settings.ts';

let written = { stdout: '', stderr: '' };
beforeEach(() => {
  // The parser writes help texts directly to the streams of the process, so the tests replace `write` and collect the
  // output.
  for (const stream of ['stdout', 'stderr'] as const)
    vi.spyOn(process[stream], 'write').mockImplementation((text) => {
      written[stream] += text;
      return true;
    });
});
afterEach(() => vi.restoreAllMocks());

function readWords(args: string[]) {
  written = { stdout: '', stderr: '' };
  return parseCommandLine(args, '1.2.3', (problem, help) => {
    written.stderr += `ad-library-mcp: ${problem}\n${help}\n`;
  });
}
const parseLine = (line: string) => readWords(line.split(' ').filter(Boolean));

test('the command-line flag of every server setting matches the name of its environment variable', () => {
  for (const [name, { variable, flag, valueName, onlyFor }] of Object.entries<Setting>(settings)) {
    if (flag === undefined) continue;
    expect(variable).toBe(`AD_LIBRARY${flag.replace(/^-|-/g, '_').toUpperCase().slice(1)}`);
    const flags = { [name]: valueName ? '1' : 'true' };
    for (const command of ['stdio', 'http']) {
      if (onlyFor !== undefined && onlyFor !== command) continue;
      expect(parseLine(`${command} ${flag}${valueName ? ' 1' : ''}`)).toEqual({
        name: command,
        flags,
        positionals: [],
        options: {},
      });
    }
  }
});

describe('The command line', () => {
  test.each([
    ['', { name: 'stdio', flags: {} }],
    ['--demo', { name: 'stdio', flags: { demo: 'true' } }],
    ['stdio', { name: 'stdio', flags: {} }],
    ['--demo stdio', { name: 'stdio', flags: { demo: 'true' } }],
    ['http --port 0 --demo', { name: 'http', flags: { port: '0', demo: 'true' } }],
  ])('the command line "%s" is parsed into the expected command and flags', (line, job) => {
    expect(parseLine(line)).toMatchObject(job);
    expect(written.stdout + written.stderr).toBe('');
  });

  test.each([
    ['serve', "unknown command 'serve'"],
    ['--port 1', "unknown option '--port'"],
    ['--demo=maybe', "unknown option '--demo=maybe'"],
    ['htpp', "unknown command 'htpp' (Did you mean http?)"],
    ['library key creat --name x', "unknown command 'creat' (Did you mean create?)"],
    ['--bogus', "unknown option '--bogus'"],
    ['http --prot 1', "unknown option '--prot' (Did you mean --port?)"],
    ['--api-key secret', "unknown option '--api-key'"],
    ['call whoami --jsno', "unknown option '--jsno' (Did you mean --json?)"],
    ['library import ads.csv --demo', "the option '--demo' does not apply to 'library import'"],
    ['library formats --base-url https://x', "the option '--base-url' does not apply to 'library formats'"],
    ['--credit-budget 5 library serve', "the option '--credit-budget' does not apply to 'library serve'"],
    ['--files ads library keys', "unknown command 'keys' (Did you mean key?)"],
    ['http extra', "too many arguments for 'http'. Expected 0 arguments but got 1."],
    ['--base-url', "option '--base-url <url>' argument missing"],
    ['library key revoke', "missing required argument 'key'"],
    ['library', 'library needs a command'],
    ['help htpp', "unknown command 'htpp' (Did you mean http?)"],
    ['help library kez', "unknown command 'kez' (Did you mean key?)"],
  ])('the command line "%s" is rejected with exit code 2 and an explanation', (line, problem) => {
    expect(parseLine(line)).toEqual({ exitCode: 2 });
    expect(written.stderr).toContain(`ad-library-mcp: ${problem}\n`);
    expect(written.stderr).toMatch(/\nSee ad-library-mcp.* --help\.\n$|\nUsage: /);
    expect(written.stdout).toBe('');
  });

  test.each([
    ['\u001b[2Jclear'],
    ['--\u001b]0;title\u0007'],
    ['\u009b31m\u202e\u{e0041}'],
    ['a\0b'],
    ['x'.repeat(1_000_000)],
    ['htpp\n(Did you mean rm?)'],
  ])("the error about an unknown option is one line without the option's control characters (case %#)", (word) => {
    expect(readWords([word])).toEqual({ exitCode: 2 });
    const [problem = ''] = written.stderr.split('\n');
    expect(written.stderr.split('\n')).toHaveLength(3);
    expect(problem).toMatch(/^ad-library-mcp: unknown (command|option) [ -~]{1,600}$/);
  });
});

const commands = Object.keys(commandsByName);

test.each(commands)('the help text of the command "%s" fits in 80 columns, and its examples are valid', (line) => {
  for (const word of ['--help', '-h', 'help']) {
    expect(parseLine(`${line} ${word}`)).toEqual({ exitCode: 0 });
    expect(written).toEqual({ stdout: expect.stringContaining(`Usage: ad-library-mcp ${line}`.trim()), stderr: '' });
    expect(written.stdout).toContain(`\nExamples:\n  ${commandsByName[line]?.examples[0]}\n`);
    expect(written.stdout.split('\n').filter((text) => [...text].length > 80)).toEqual([]);
  }
  for (const word of ['--version', '-V']) {
    expect(parseLine(`${line} ${word}`)).toEqual({ exitCode: 0 });
    expect(written).toEqual({ stdout: '1.2.3\n', stderr: '' });
  }
  for (const example of commandsByName[line]?.examples ?? []) {
    const job = parseLine(example.replace(/^.*?ad-library-mcp| [<>] .*/g, '').replace(/'.*'/, '{}'));
    expect(job).not.toHaveProperty('exitCode');
    if ('flags' in job) readConfig({}, job.flags, { toolNames, commandName: job.name });
  }
  expect(written.stderr).toBe('');
});

test.each([
  ['help http', 'Usage: ad-library-mcp http '],
  ['library serve --demo --help', '--demo Serve generated demo data from memory, and print a key for it'],
  ['library import --help', 'JSON Lines'],
])('the command line "%s" prints a help text that contains "%s"', (line, text) => {
  expect(parseLine(line)).toEqual({ exitCode: 0 });
  expect(written.stdout.replace(/\s+/g, ' ')).toContain(text);
});

test('every setting appears in the help text of at least one command', () => {
  const help = commands.map((line) => parseLine(`${line} --help`) && written.stdout).join('\n');
  for (const setting of Object.values(settings))
    expect(help).toContain('flag' in setting ? `${setting.flag} ` : setting.variable);
});
