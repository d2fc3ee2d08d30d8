import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { withExamples } from '../../scripts/docs/examples.ts';
import { withHosts } from '../../scripts/docs/hosts-table.ts';
import { withInstallLinks } from '../../scripts/docs/install-links.ts';
import { replaceMarked } from '../../scripts/docs/marked.ts';
import { withQuestions } from '../../scripts/docs/questions.ts';
import { withSessions } from '../../scripts/docs/sessions.ts';
import { withSettings } from '../../scripts/docs/settings-table.ts';
import { firstSentences, withTools, withToolsInFull } from '../../scripts/docs/tools-table.ts';
import { withTypes } from '../../scripts/docs/types.ts';
import { settings } from '../../src/config/settings.ts';
import { tools } from '../../src/tools/catalog.ts';

// `npm run docs` writes all of these anew.
const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const readme = read('README.md');
const page = read('docs/tools.md');

test('README fits on a few screens', () => {
  expect(readme.split('\n').length).toBeLessThan(191);
});

test('the tools, and which cost credits, are listed as the code has them', () => {
  expect(withTools(readme)).toBe(readme);
  expect(withToolsInFull(page)).toBe(page);
  for (const { name } of tools) for (const text of [readme, page]) expect(text).toContain(`| \`${name}\` |`);
});

test('README has as many whole sentences of a description as fit', () => {
  expect(firstSentences('One. Two.')).toBe('One. Two.');
  expect(firstSentences(`One. ${'x'.repeat(160)}.`)).toBe('One.');
  expect(firstSentences(`${'x'.repeat(200)}. Two.`)).toBe(`${'x'.repeat(200)}.`);
});

test('the hosts are listed as the code knows them', () => {
  const page = read('docs/host-evidence.md');
  expect(withHosts(page)).toBe(page);
});

test('the types of the package are shown as they are', () => {
  const page = read('docs/programs.md');
  expect(withTypes(page)).toBe(page);
});

test('the settings are listed as the code has them', () => {
  const list = read('docs/settings.md');
  expect(withSettings(list)).toBe(list);
  for (const { variable } of Object.values(settings)) expect(list).toContain(`| \`${variable}\` |`);
});

test('results are shown as demo mode gives them', async () => {
  for (const { name } of tools) expect(page).toContain(`<summary><code>${name}</code></summary>`);
  expect(await withExamples(page)).toBe(page);
});

test('README’s questions are answered as the demo answers them', async () => {
  expect(await withQuestions(readme)).toBe(readme);
});

test('README’s figures are those of the benchmarks, to the hundred', () => {
  const row = /search_ads, brief[^|]*\| (\d+) tokens an item +\| (\d+) as the service/.exec(read('BENCHMARKS.md'));
  const [ours, service] = (row ?? [])
    .slice(1)
    .map((tokens) => (100 * Math.round(Number(tokens) / 100)).toLocaleString('en-US'));
  const [text, sent] =
    /takes about (\S+) tokens as text.*, and (\S+) as the service sends it/.exec(readme)?.slice(1) ?? [];
  expect([text, sent]).toEqual([ours, service]);
});

test('README’s links are those of the script', () => {
  expect(withInstallLinks(readme)).toBe(readme);
});

test('what troubleshooting quotes is what the server says', () => {
  const files = readdirSync(new URL('../../src', import.meta.url), { recursive: true, encoding: 'utf8' });
  const sources = files
    .filter((file) => file.endsWith('.ts'))
    .map((file) => read(`src/${file.replaceAll('\\', '/')}`))
    .join('\n');
  const cells = read('docs/troubleshooting.md')
    .split('\n')
    .map((line) => line.split('|')[1] ?? '');
  const quoted = cells.flatMap((cell) => [...cell.matchAll(/"([^"…]+?) ?…?"/g)].map(([, text = '']) => text));
  expect(quoted.length).toBeGreaterThan(15);
  expect(quoted.filter((text) => !sources.includes(text))).toEqual([]);
});

test('the sessions are those that the demo gives', async () => {
  const page = read('docs/sessions.md');
  expect(await withSessions(page)).toBe(page);
});

test('a part that lost its place is missed', () => {
  expect(replaceMarked('a\n<!-- x -->\nold\n<!-- /x -->\nb', 'x', 'new')).toBe('a\n<!-- x -->\nnew\n<!-- /x -->\nb');
  for (const text of ['', '<!-- x -->', '<!-- /x --> <!-- x -->'])
    expect(() => replaceMarked(text, 'x', '')).toThrow('<!-- x -->');
});
