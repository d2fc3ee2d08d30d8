import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { examples, withExamples } from '../../scripts/docs/examples.ts';
import { withSettings } from '../../scripts/docs/settings-table.ts';
import { withTools } from '../../scripts/docs/tools-table.ts';
import { tools } from '../../src/tools/catalog.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

test('README lists the settings as the code has them (npm run docs writes them)', () => {
  expect(withSettings(readme)).toBe(readme);
});

test('README lists the tools, and which are paid, as the code has them (npm run docs writes them)', () => {
  expect(withTools(readme)).toBe(readme);
  for (const { name } of tools) expect(readme).toContain(`| \`${name}\` |`);
});

test('README shows results as demo mode gives them (npm run docs writes them)', async () => {
  expect([...(await examples()).keys()]).toEqual(tools.map(({ name }) => name));
  expect(await withExamples(readme)).toBe(readme);
});
