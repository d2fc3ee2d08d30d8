import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

test('CONTRIBUTING has a line for every dependency, and none for one that is gone', () => {
  const { dependencies = {}, devDependencies } = JSON.parse(read('package.json'));
  const named = [...read('CONTRIBUTING.md').matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell]) =>
    cell?.match(/[^`, ]+/g),
  );
  expect(dependencies).toEqual({});
  expect(named.sort()).toEqual(Object.keys(devDependencies).sort());
});
