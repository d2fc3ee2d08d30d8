import { readFileSync } from 'node:fs';
import { Hono } from 'hono';
import { expect, test } from 'vitest';
import { createMetrics } from '../../../src/serve/http/metrics.ts';

test('docs/replicas.md lists every metric of this server, and no other', async () => {
  const metrics = createMetrics();
  metrics.show(() => ({ running: 0, waiting: 0 }));
  metrics.showState(() => true);
  const page = await (await new Hono().get('/', metrics.page).request('/')).text();
  const served = [...page.matchAll(/^# TYPE (ad_library_\w+)/gm)].map(([, name]) => name);
  const text = readFileSync(new URL('../../../docs/replicas.md', import.meta.url), 'utf8');
  const listed = [...text.slice(text.indexOf('| metric |')).matchAll(/ad_library_\w+/g)].map(([name]) => name);
  expect(served.length).toBeGreaterThan(4);
  expect([...new Set(listed)].toSorted()).toEqual(served.toSorted());
});
