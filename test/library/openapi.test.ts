import { describe, expect } from 'vitest';
import { SearchFilters } from '../../src/api/search-filters.ts';
import { endpoints } from '../../src/library/endpoints.ts';
import { libraryFilters } from '../../src/library/filters.ts';
import { libraryTest as test } from './support/fixtures.ts';

describe('the interface described', () => {
  test('is OpenAPI 3.1, version 1.0.0, with every operation and every filter key', async ({ served }) => {
    const { status, body } = await served.ask('GET', '/openapi.json');
    expect(status).toBe(200);
    expect(body).toMatchObject({ openapi: '3.1.0', info: { version: '1.0.0' } });
    for (const [name, { method, path }] of Object.entries(endpoints)) {
      const operation = body.paths[path.replace(/:(\w+)/g, '{$1}')][method.toLowerCase()];
      expect(operation.operationId).toBe(name);
    }
    const { AdSearchRequest, PageSearchRequest } = body.components.schemas;
    const keys = (filters: { key: string }[]) => ['limit', 'cursor', ...filters.map(({ key }) => key)];
    expect(Object.keys(AdSearchRequest.properties)).toEqual(keys(libraryFilters.ads));
    expect(Object.keys(PageSearchRequest.properties)).toEqual(keys(libraryFilters.pages));
    for (const [, name = ''] of JSON.stringify(body).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      expect(body.components.schemas).toHaveProperty(name);
    }
  });

  test('the library’s filters have the documented form', () => {
    expect(SearchFilters.parse(libraryFilters)).toEqual(libraryFilters);
    expect(SearchFilters.safeParse({ ads: [{ key: 'a', type: 'text', description: 'b' }] }).success).toBe(false);
    const twice = { key: 'a', type: 'string', description: 'b' };
    expect(SearchFilters.safeParse({ ads: [twice, twice] }).success).toBe(false);
  });
});
