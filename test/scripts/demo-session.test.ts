import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

const demo = async (...args: string[]) => {
  const command = ['--import', 'tsx', 'scripts/demo-session.ts', ...args];
  return (await promisify(execFile)(process.execPath, command, { cwd: root })).stdout.split('\n');
};

test('the demo answers its questions on two screens of 80 columns, and ends on what was found and what it cost', async () => {
  const lines = await demo();
  expect(lines.filter((line) => [...line].length > 80)).toEqual([]);
  expect(lines.length).toBeLessThan(80);
  const marked = lines.filter((line) => /^[QA] {2}/.test(line)).map(([mark]) => mark);
  expect(marked).toEqual(['Q', 'A', 'Q', 'A', 'Q', 'A', 'Q', 'A']);
  expect(lines.join(' ')).not.toMatch(/undefined|NaN/);
  const sheet =
    lines
      .find((line) => line.endsWith('sheet.jpg'))
      ?.split(' ')
      .at(-1) ?? '';
  expect(existsSync(sheet)).toBe(true);
  expect(lines.slice(-3)).toEqual([
    expect.stringMatching(/^Finding: in Germany, videos run [1-9]\d*\.\d times as long as other ads/),
    expect.stringMatching(/^Cost: \d+ credits for 5 tool calls/),
    '',
  ]);
}, 60_000);

test('--full shows the texts whole', async () => {
  const [folded, full] = [await demo(), await demo('--full')];
  expect(full.length).toBeGreaterThan(1.5 * folded.length);
  expect(full.join('\n')).toContain('Months started');
}, 60_000);
