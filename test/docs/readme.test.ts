import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { tools } from '../../src/tools/catalog.ts';
import { withSettings } from './settings-table.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

test('README lists the settings as the code has them (npm run docs writes them)', () => {
  expect(withSettings(readme)).toBe(readme);
});

test('README names every tool', () => {
  for (const { name } of tools) expect(readme).toContain(`\`${name}\``);
});
