import { describe, expect } from 'vitest';
import { operations } from '../../src/api/call.ts';
import { filtersExtension, SearchFilters } from '../../src/api/search-filters.ts';
import { libraryFilters } from '../../src/library/search/filter-keys.ts';
import { describedFilters } from '../../src/library/search/filters.ts';
import { libraryTest as test } from './support/fixtures.ts';

describe('the interface described', () => {
  test('is OpenAPI 3.1, version 1.0.0, with every operation and every filter key', async ({ served }) => {
    const { status, body } = await served.ask('GET', '/openapi.json');
    expect(status).toBe(200);
    expect(body).toMatchObject({ openapi: '3.1.0', info: { version: '1.0.0' } });
    for (const { name, method, path } of Object.values(operations))
      expect(body.paths[path][method.toLowerCase()].operationId).toBe(name);
    const { AdSearchRequest, PageSearchRequest } = body.components.schemas;
    const keys = (filters: { key: string }[]) => ['limit', 'cursor', 'countBy', ...filters.map(({ key }) => key)];
    expect(Object.keys(AdSearchRequest.properties)).toEqual(keys(libraryFilters.ads));
    expect(Object.keys(PageSearchRequest.properties)).toEqual(keys(libraryFilters.pages));
    const used = [...JSON.stringify(body).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name = '']) => name);
    expect(new Set(used)).toEqual(new Set(Object.keys(body.components.schemas)));
    expect(body.info.license).toEqual({ name: 'MIT', identifier: 'MIT' });
    expect(body[filtersExtension]).toEqual(describedFilters());
  });

  test('the library’s filters have the documented form', () => {
    const described = describedFilters();
    expect(SearchFilters.parse(described)).toEqual(described);
    expect(SearchFilters.safeParse({ ads: [{ key: 'a', type: 'text', description: 'b' }] }).success).toBe(false);
    const twice = { key: 'a', type: 'string', description: 'b' };
    expect(SearchFilters.safeParse({ ads: [twice, twice] }).success).toBe(false);
  });
});
