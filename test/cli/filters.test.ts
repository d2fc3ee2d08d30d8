import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/config/read-config.ts';
import { run } from '../support/process.ts';
import { startServer } from '../support/server.ts';

test('what library filters prints is a file that describes the demo to a model as the demo does', async () => {
  const { code, stdout, stderr } = await run(['library', 'filters']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const folder = mkdtempSync(join(tmpdir(), 'library-filters-'));
  const file = join(folder, 'filters.json');
  writeFileSync(file, stdout);
  const { searchFilters } = readConfig({ AD_LIBRARY_SEARCH_FILTERS: file });
  rmSync(folder, { recursive: true });
  const [described, demo] = await Promise.all([
    startServer({ config: { searchFilters } }),
    startServer({ config: { demo: true } }),
  ]);
  expect(await described.client.listTools()).toEqual(await demo.client.listTools());
  await Promise.all([described.close(), demo.close()]);
});
