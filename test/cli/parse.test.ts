import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { readCommand } from '../../src/cli/parse.ts';
import { settings } from '../../src/config/settings.ts';

const written = { stdout: '', stderr: '' };
beforeEach(() => {
  // The command writes to the process's own streams; what it writes is looked at instead of shown.
  for (const stream of ['stdout', 'stderr'] as const) {
    written[stream] = '';
    vi.spyOn(process[stream], 'write').mockImplementation((text) => {
      written[stream] += text;
      return true;
    });
  }
});
afterEach(() => vi.restoreAllMocks());

const read = (line: string) => readCommand(line.split(' ').filter(Boolean), '1.2.3');

describe('a command line', () => {
  test.each([
    ['', { name: 'stdio', flags: {} }],
    ['--demo', { name: 'stdio', flags: { demo: 'true' } }],
    [
      '--base-url https://x.example --credit-budget 50',
      { name: 'stdio', flags: { baseUrl: 'https://x.example', creditBudget: '50' } },
    ],
    ['http --port 0 --demo', { name: 'http', flags: { port: '0', demo: 'true' } }],
    ['http --allowed-hosts a.example,b.example', { name: 'http', flags: { allowedHosts: 'a.example,b.example' } }],
    ['library serve --database ads.db', { name: 'library serve', flags: { database: 'ads.db' } }],
    [
      'library import a.jsonl - --database ads.db',
      { name: 'library import', flags: { database: 'ads.db' }, files: ['a.jsonl', '-'] },
    ],
    [
      'library key create --name Ci --scopes ads:read --credits 5 --no-subscription --database x.db',
      {
        name: 'library key create',
        flags: { database: 'x.db' },
        options: { name: 'Ci', scopes: 'ads:read', credits: '5', subscription: false },
      },
    ],
    ['library key list', { name: 'library key list', flags: {} }],
    ['library key revoke abc', { name: 'library key revoke', flags: {}, key: 'abc' }],
  ])('"%s" is understood', (line, job) => {
    expect(read(line)).toMatchObject(job);
    expect(written.stdout + written.stderr).toBe('');
  });

  test.each([
    ['serve', /unknown command 'serve'/],
    ['--log-level info serve', /unknown command 'serve'/],
    ['--bogus', /unknown option '--bogus'/],
    ['--api-key secret', /unknown option '--api-key'/],
    ['http extra', /too many arguments/],
    ['--base-url', /argument missing/],
    ['library import', /missing required argument/],
    ['library key revoke', /missing required argument/],
  ])('"%s" is wrong use: explained on standard error, exit 2', (line, problem) => {
    expect(read(line)).toEqual({ exit: 2 });
    expect(written.stderr).toMatch(problem);
    expect(written.stdout).toBe('');
  });

  test.each(['library', 'library key', 'files'])('"%s" alone is wrong use, and is told what there is', (line) => {
    expect(read(line)).toEqual({ exit: 2 });
    expect(written.stderr).toContain(`error: ${line} needs a command: `);
    expect(written.stdout).toBe('');
  });
});

const commands = [
  '',
  'http',
  'files',
  'files clear',
  'library',
  'library serve',
  'library import',
  'library key',
  'library key create',
  'library key list',
  'library key revoke',
];

test.each(commands)('"%s --help" prints help and exits 0', (line) => {
  expect(read(`${line} --help`)).toEqual({ exit: 0 });
  expect(written.stdout).toContain(`Usage: ad-library-mcp ${line}`.trim());
  expect(written.stderr).toBe('');
});

test.each(commands)('"%s --version" prints the version and exits 0', (line) => {
  expect(read(`${line} --version`)).toEqual({ exit: 0 });
  expect(written.stdout).toBe('1.2.3\n');
});

test('help names every setting', () => {
  read('--help');
  for (const { variable } of Object.values(settings)) expect(written.stdout).toContain(variable);
});
