import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { initialize, request } from '../serve/stdio/session.ts';
import { start } from '../support/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const root = temporaryFolder();
const own = `ad-library-${process.getuid?.()}`;

function newMachine() {
  const home = mkdtempSync(join(root, 'home-'));
  const temporary = mkdtempSync(join(root, 'tmp-'));
  return { home, temporary, kept: join(temporary, own) };
}

/** A session without any setting but demo data: exports under a name, and reads what it wrote as a resource. */
async function exportIn(
  { home, temporary }: { home: string; temporary: string },
  { bytes = 10, within }: { bytes?: number; within?: string[] } = {},
) {
  const { child, stdout, ended } = start(['--demo'], { HOME: home, TMPDIR: temporary }, within);
  const answers = () =>
    stdout()
      .trim()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  const ask = async (message: { id: unknown }) => {
    child.stdin?.write(`${JSON.stringify(message)}\n`);
    const find = () => answers().find(({ id }) => id === message.id)?.result;
    for (const stop = Date.now() + 60_000; !find() && Date.now() < stop; )
      await new Promise((resolve) => setTimeout(resolve, 20));
    return find();
  };
  await ask(initialize('2025-11-25'));
  const sql = `SELECT '${'x'.repeat(bytes)}' AS filler`;
  const { content, structuredContent: data } = await ask(
    request(1, 'tools/call', { name: 'export_ads', arguments: { name: 'tea', sql } }),
  );
  const { contents } = await ask(request(2, 'resources/read', { uri: data.uri }));
  child.stdin?.end();
  expect((await ended).code).toBe(0);
  expect(contents[0].text).toContain('x'.repeat(bytes));
  return { text: content[0].text as string, file: data.file as string | undefined };
}

test('without a setting an export lies among the downloads', async () => {
  const machine = newMachine();
  mkdirSync(join(machine.home, 'Downloads'));
  const { file = '', text } = await exportIn(machine);
  expect(file).toBe(join(machine.home, 'Downloads', 'Ad Library', 'tea.csv'));
  expect(readFileSync(file, 'utf8')).toContain('xxx');
  expect(text).toContain(`It is in "${file}", with tea-methods.md beside it, until somebody deletes it`);
  expect(existsSync(machine.kept)).toBe(false);
});

test('without downloads it lies in a folder of its owner for seven days', async () => {
  const machine = newMachine();
  const { kept } = machine;
  mkdirSync(kept, { mode: 0o755 });
  const target = join(machine.temporary, 'target');
  const [old, young, link] = ['old.csv', 'young.csv', 'link.csv'].map((name) => join(kept, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [target, old, young]) writeFileSync(path, 'mine');
  symlinkSync(target, link);
  const days = (count: number) => Date.now() / 1000 - count * 86_400;
  utimesSync(old, days(7.1), days(7.1));
  utimesSync(target, days(8), days(8));
  utimesSync(young, days(6.9), days(6.9));
  const { file = '', text } = await exportIn(machine);
  expect(file).toBe(join(kept, 'tea.csv'));
  expect(text).toContain('for 7 days');
  expect([statSync(kept).mode & 0o777, statSync(file).mode & 0o777]).toEqual([0o700, 0o600]);
  expect(readdirSync(kept).sort()).toEqual(['link.csv', 'tea-methods.md', 'tea.csv', 'young.csv']);
  expect(readFileSync(target, 'utf8')).toBe('mine');
});

test.each([
  ['a link in its place', { before: 'link' }],
  ['a file in its place', { before: 'file' }],
  ['no temporary folder', { before: 'none' }],
  ['a full disk', { within: ['sh', '-c', 'ulimit -f 1; exec "$@"', 'sh'], bytes: 3000 }],
] as const)(
  '%s: no file, and how to get one',
  async (_, { before, ...options }: { before?: string; within?: readonly string[]; bytes?: number }) => {
    const machine = newMachine();
    const target = join(machine.home, 'target');
    mkdirSync(target);
    if (before === 'link') symlinkSync(target, machine.kept);
    if (before === 'file') writeFileSync(machine.kept, '');
    const place = before === 'none' ? { ...machine, temporary: join(machine.temporary, 'none') } : machine;
    const { within, bytes } = options;
    const { text, file } = await exportIn(place, { ...(bytes && { bytes }), ...(within && { within: [...within] }) });
    expect(file).toBeUndefined();
    expect(text).toContain(`No file can be written in ${join(place.temporary, own)}: `);
    expect(text).toContain('To get a file, set AD_LIBRARY_FILES to a folder');
    expect(readdirSync(target)).toEqual([]);
    if (before === undefined) expect(readdirSync(machine.kept)).toEqual([]);
  },
);
