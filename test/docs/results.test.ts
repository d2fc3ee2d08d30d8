import { afterAll, beforeAll, expect, test } from 'vitest';
import { always } from '../../scripts/docs/result-fields.ts';
import { allObjects, fieldsOf, typeAndMeaning } from '../../scripts/docs/results.ts';
import { tools } from '../../src/tools/catalog.ts';
import type { FieldMeanings } from '../../src/tools/tool.ts';
import { makeDemoCalls } from '../support/demo-calls.ts';
import { startServer, type TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ config: { demo: true }, now: () => Date.UTC(2026, 0, 15, 12) });
});
afterAll(() => server.close());

test('every field that the schemas list is described, and not in the list, which every conversation pays for', async () => {
  const { tools: listed } = await server.client.listTools();
  const undescribed = listed
    .filter(({ name }) => tools.some((tool) => tool.name === name))
    .flatMap(({ name, outputSchema }) => missingIn(outputSchema as Schema, { ...fieldsOf(name), ...always }, name));
  expect(undescribed).toEqual([]);
  expect(JSON.stringify(listed.map(({ outputSchema }) => outputSchema))).not.toContain('"description"');
});

test('results hold what is described, with those types, and nothing else', async () => {
  const called = await makeDemoCalls(server.call);
  const ids = called[0]?.result.data.items.map(({ id }) => id) ?? [];
  const question = { filters: { countries: ['GB'] } };
  const more: [string, Record<string, unknown>][] = [
    ['gather_ads', { filters: { countries: ['DE'] }, maxCredits: 0 }],
    ['gather_ads', { filters: { countries: ['NZ'] }, maxCredits: 50 }],
    ['gather_ads', { filters: { countries: ['NZ'] }, maxCredits: 50, fresh: true }],
    ['gather_ads', { ...question, split: [{ displayFormat: ['VIDEO'] }], maxCredits: 1 }],
    ['count_ads', { ...question, by: 'active' }],
    ['count_ads', { ...question, split: [{ displayFormat: ['DCO'] }, { displayFormat: ['IMAGE'] }], maxCredits: 1 }],
    ['query_ads', { sql: 'SELECT pageName, count(*) FROM ads GROUP BY 1', chart: 'bar' }],
    ['search_ads', { limit: 40 }],
    ['get_ad', { adId: ids[0], seen: true }],
    ['export_ads', { format: 'xlsx' }],
    ['view_ads', { adIds: [ids[0], '11111111-1111-4111-8111-111111111111'] }],
    ['watch_ads', { name: 'Parts', split: [{ displayFormat: ['VIDEO'] }], maxAds: 10, maxCredits: 5 }],
    ['check_watches', { maxCredits: 30 }],
    ['check_watches', { maxCredits: 1 }],
    ['label_ads', { labels: [{ adId: '11111111-1111-4111-8111-111111111111', label: 'hook' }] }],
    ['write_report', { title: 'Report', sections: [{ heading: 'A', sql: 'SELECT nothing' }] }],
  ];
  const results = called.map(({ name, result }) => ({ name, result }));
  for (const [name, args] of more) results.push({ name, result: await server.call(name, args) });
  const wrong = results.flatMap(({ name, result: { isError, text, data } }) =>
    isError ? [`${name}: ${text}`] : mismatches(data, { ...fieldsOf(name), ...always }, name),
  );
  expect([...new Set(wrong)]).toEqual([]);
});

interface Schema {
  properties?: Record<string, Schema>;
  items?: Schema;
}

/** The objects of a type, `[]` and null aside. */
const objectOf = (type: string): FieldMeanings | undefined => allObjects[/^[A-Z]\w*/.exec(type)?.[0] ?? ''];

function described(fields: FieldMeanings, name: string): string | undefined {
  const text = fields[name] ?? fields[`${name}?`];
  return text && typeAndMeaning(text)[0];
}

function missingIn({ properties = {} }: Schema, fields: FieldMeanings, path: string): string[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const type = described(fields, name);
    if (type === undefined) return [`${path}.${name}`];
    const inner = objectOf(type);
    return inner ? missingIn(schema.items ?? schema, inner, `${path}.${name}`) : [];
  });
}

function mismatches(value: object, fields: FieldMeanings, path: string): string[] {
  const missing = Object.keys(fields)
    .filter((name) => !name.endsWith('?') && !(name in value))
    .map((name) => `${path}.${name} is missing`);
  return missing.concat(
    Object.entries(value).flatMap(([name, one]) => {
      const type = described(fields, name);
      return type === undefined ? [`${path}.${name} is not described`] : ofType(one, type, `${path}.${name}`);
    }),
  );
}

function ofType(value: unknown, type: string, path: string): string[] {
  const [plain = '', orNull] = type.split(' | ');
  if (value === null) return orNull || plain === 'any' ? [] : [`${path} is null`];
  if (plain.endsWith('[]')) {
    if (!Array.isArray(value)) return [`${path} is no list`];
    return value.flatMap((one) => ofType(one, plain.slice(0, -2), `${path}[]`));
  }
  const inner = objectOf(plain);
  if (inner) return mismatches(value as object, inner, path);
  return plain === 'any' || typeof value === plain ? [] : [`${path} is a ${typeof value}`];
}
