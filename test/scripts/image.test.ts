import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { settings } from '../../src/config/settings.ts';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const dockerfile = read('Dockerfile');

test('both stages of the image have the same base, pinned by digest', () => {
  const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
  expect(bases).toHaveLength(2);
  expect(new Set(bases).size).toBe(1);
  expect(bases[0]).toMatch(/^node:\d+-alpine@sha256:[0-9a-f]{64}$/);
});

test('compose passes on every setting that http takes and the image does not fix', () => {
  const variables = Object.values(settings).map(({ variable }) => variable);
  // The key is each caller's own; files and the local library are not for http; host and port are the image's.
  const others = ['API_KEY', 'FILES', 'DATABASE', 'SEARCH_FILTERS', 'HOST', 'PORT'].map((name) => `AD_LIBRARY_${name}`);
  const passed = [...read('compose.yaml').matchAll(/^ +(AD_LIBRARY_\w+): \$\{(\w+):-/gm)];
  for (const [, name, source] of passed) expect(source).toBe(name);
  expect(passed.map(([, name]) => name).sort()).toEqual(variables.filter((name) => !others.includes(name)).sort());
});
