import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { generatedFiles } from '../../scripts/docs/write.ts';

const readFile = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const readme = readFile('README.md');

test.each(Object.entries(generatedFiles))(
  'the generated text in the file %s matches the code (run npm run docs to update it)',
  async (file, write) => {
    // `npm run docs` reformats JSON files, so compare only their values.
    const unformatted = (text: string) => (file.endsWith('.json') ? JSON.parse(text) : text);
    expect(unformatted(await write(readFile(file), JSON.parse(readFile('package.json'))))).toEqual(
      unformatted(readFile(file)),
    );
  },
);

test('the README states the same token counts as the benchmark results', () => {
  const row = /search_ads, brief[^|]*\| (\d+) tokens an item +\| (\d+) as the service/.exec(readFile('BENCHMARKS.md'));
  const [ours, service] = (row ?? [])
    .slice(1)
    .map((tokens) => (100 * Math.round(Number(tokens) / 100)).toLocaleString('en-US'));
  const [text, sent] =
    /takes about (\S+) tokens as text, and (\S+) as the service sends it/.exec(readme)?.slice(1) ?? [];
  expect([text, sent]).toEqual([ours, service]);
});

test('every message that the help page quotes occurs in the source code', () => {
  const files = readdirSync(new URL('../../src', import.meta.url), { recursive: true, encoding: 'utf8' });
  const sources = files
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => readFile(`src/${file.replaceAll('\\', '/')}`))
    .join('\n');
  const cells = readFile('docs/help.md')
    .split('\n')
    .map((line) => line.split('|')[1] ?? '');
  const quoted = cells.flatMap((cell) => [...cell.matchAll(/"([^"…]+?) ?…?"/g)].map(([, text = '']) => text));
  expect(quoted.length).toBeGreaterThan(10);
  expect(quoted.filter((text) => !sources.includes(text))).toEqual([]);
});
