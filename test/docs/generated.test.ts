import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { withExamples } from '../../scripts/docs/examples.ts';
import { withHosts } from '../../scripts/docs/hosts-table.ts';
import { withInstallLinks } from '../../scripts/docs/install-links.ts';
import { replaceMarked } from '../../scripts/docs/marked.ts';
import { withQuestions } from '../../scripts/docs/questions.ts';
import { withResults } from '../../scripts/docs/results.ts';
import { withSessions } from '../../scripts/docs/sessions.ts';
import { withPassedSettings, withSettings } from '../../scripts/docs/settings-table.ts';
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

/** Each page with what writes a part of it. */
const generated: [part: string, file: string, write: (page: string) => string | Promise<string>][] = [
  ['the tools, and which cost credits', 'README.md', withTools],
  ['the tools in full', 'docs/tools.md', withToolsInFull],
  ['the results, as demo mode gives them', 'docs/tools.md', withExamples],
  ['the hosts', 'docs/host-evidence.md', withHosts],
  ['the types of the package', 'docs/programs.md', withTypes],
  ['the settings', 'docs/settings.md', withSettings],
  ['the settings that are passed on', 'compose.yaml', withPassedSettings],
  ['the questions, as the demo answers them', 'README.md', withQuestions],
  ['the links that install', 'README.md', withInstallLinks],
  ['the sessions, as the demo gives them', 'docs/sessions.md', withSessions],
  ['the reference of results', 'docs/results.md', withResults],
];

test.each(generated)('%s of %s are as the code has them', async (_, file, write) => {
  expect(await write(read(file))).toBe(read(file));
});

test('every tool and every setting is listed', () => {
  for (const { name } of tools) for (const text of [readme, page]) expect(text).toContain(`| \`${name}\` |`);
  for (const { name } of tools) expect(page).toContain(`<summary><code>${name}</code></summary>`);
  for (const { variable } of Object.values(settings)) expect(read('docs/settings.md')).toContain(`| \`${variable}\` |`);
});

test('README has as many whole sentences of a description as fit', () => {
  expect(firstSentences('One. Two.')).toBe('One. Two.');
  expect(firstSentences(`One. ${'x'.repeat(160)}.`)).toBe('One.');
  expect(firstSentences(`${'x'.repeat(200)}. Two.`)).toBe(`${'x'.repeat(200)}.`);
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

test('a part that lost its place is missed', () => {
  expect(replaceMarked('a\n<!-- x -->\nold\n<!-- /x -->\nb', 'x', 'new')).toBe('a\n<!-- x -->\nnew\n<!-- /x -->\nb');
  for (const text of ['', '<!-- x -->', '<!-- /x --> <!-- x -->'])
    expect(() => replaceMarked(text, 'x', '')).toThrow('<!-- x -->');
});
