import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readConfig } from '../../src/config/read-config.ts';
import { startServer } from '../support/server.ts';

const folder = mkdtempSync(join(tmpdir(), 'search-filters-'));
afterAll(() => rmSync(folder, { recursive: true }));

const fileWith = (content: unknown) => {
  const file = join(folder, 'filters.json');
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
};

/** What a model reads of the `filters` argument. */
async function described(file: string): Promise<Record<string, string>> {
  const { searchFilters } = readConfig({ AD_LIBRARY_SEARCH_FILTERS: file });
  const server = await startServer({ config: { searchFilters } });
  const { tools } = await server.client.listTools();
  await server.close();
  const filtersOf = (name: string) => {
    const filters = tools.find((tool) => tool.name === name)?.inputSchema.properties?.filters;
    return String((filters as { description?: string } | undefined)?.description);
  };
  return { ads: filtersOf('search_ads'), pages: filtersOf('search_pages') };
}

test('a file that describes filters shows them to the model', async () => {
  const ads = [
    { key: 'query', type: 'string', description: 'words', example: 'tea' },
    { key: 'countries', type: 'strings', description: 'codes', values: ['DE', 'AT'] },
    { key: 'startedAtFrom', type: 'date', description: 'from' },
    { key: 'startedAtTo', type: 'date', description: 'to' },
    { key: 'active', type: 'boolean', description: 'still running' },
    { key: 'reach', type: 'integer', description: 'at least' },
  ];
  const { ads: told, pages } = await described(fileWith({ ads }));
  expect(told).toBe(
    'Keys: query (e.g. "tea"); countries (list: DE, AT); startedAtFrom/To (date); active (true/false); reach (number)',
  );
  expect(pages).toContain('sent to the service unchanged');
});

test.each([
  ['is no JSON', '{'],
  ['has another form', { adverts: [] }],
  ['names a key twice', { ads: ['a', 'a'].map((key) => ({ key, type: 'string', description: 'x' })) }],
  ['names a type there is not', { ads: [{ key: 'a', type: 'text', description: 'x' }] }],
])('a file that %s stops the server at the start, with the reason', async (_, content) => {
  const file = fileWith(content);
  await expect(described(file)).rejects.toThrow(`AD_LIBRARY_SEARCH_FILTERS names ${file}, which cannot be used: `);
});

test('a file that is not there stops the server at the start', async () => {
  await expect(described(join(folder, 'none.json'))).rejects.toThrow(/cannot be used: ENOENT/);
});
