import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

const command = ['--import', 'tsx', 'scripts/demo-session.ts'];
const lines = (await promisify(execFile)(process.execPath, command, { cwd: root })).stdout.split('\n');

test('the demo session that the README shows fits in 80 columns and ends with its cost', () => {
  // Ignore lines with the temporary folder, whose path is long on some systems.
  expect(lines.filter((line) => [...line].length > 80 && !line.includes(tmpdir()))).toEqual([]);
  expect(lines.length).toBeLessThan(90);
  const marked = lines.filter((line) => /^[QA] {2}/.test(line)).map(([mark]) => mark);
  expect(marked.join('')).toBe('QA'.repeat(6));
  expect(lines.join(' ')).not.toMatch(/undefined|NaN/);
  for (const name of ['sheet.jpg', 'ads-in-germany.csv', 'chart.\\w+', 'report\\S+html']) {
    const [file = ''] = new RegExp(`\\S+${name}`).exec(lines.join(' ')) ?? [];
    expect(existsSync(file), name).toBe(true);
  }
  expect(lines.join(' ')).toMatch(
    / Finding: in Germany, the median video has run [\d.]+ days, \d+\.\d times as long as the median other ad /,
  );
  expect(lines.slice(-2)).toEqual([expect.stringMatching(/^Cost: \d+ credits for 8 tool calls/), '']);
});

test('the first answer in the demo session names the advertiser of each ad', () => {
  const start = lines.findIndex((line) => line.startsWith('A  '));
  const end = lines.findIndex((line) => line.startsWith('   → '));
  const answer = lines.slice(start, end).join(' ').replace(/ +/g, ' ');
  const advertisers = lines.flatMap((line) => /│ "([^"]+)" [\da-f]{8}…$/.exec(line)?.[1] ?? []);
  expect(advertisers).toHaveLength(3);
  for (const name of advertisers) expect(answer).toContain(name);
});
