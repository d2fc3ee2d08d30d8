import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { initialize } from '../serve/stdio/session.ts';
import { connectStdio } from '../support/clients.ts';
import { test } from '../support/fixtures.ts';
import { callOf, until } from '../support/http.ts';
import { run, start } from '../support/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = join(temporaryFolder(), 'files');

/** Asks a server for some ads, and kills it as soon as it has answered. */
async function askAndKill(env: Record<string, string>, limit: number): Promise<string[]> {
  const { child, stdout, ended } = start([], env);
  const asked = [initialize('2025-11-25'), callOf('search_ads', { limit })];
  child.stdin?.write(asked.map((message) => `${JSON.stringify(message)}\n`).join(''));
  await until(() => stdout().split('\n').length > asked.length);
  child.kill('SIGKILL');
  await ended;
  const answer = JSON.parse(stdout().trim().split('\n').at(-1) ?? '');
  const { items } = answer.result.structuredContent as { items: { id: string }[] };
  return items.map(({ id }) => id);
}

test('what a server answered before it was killed is there for the next one, until it is cleared', async ({
  service,
}) => {
  const env = { AD_LIBRARY_BASE_URL: service.baseUrl, AD_LIBRARY_API_KEY: service.apiKey, AD_LIBRARY_FILES: folder };
  const [few, more] = await Promise.all([askAndKill(env, 2), askAndKill(env, 5)]);
  const client = await connectStdio('v1', [], env);
  for (const adId of [...few, ...more]) {
    const { data } = await client.call('get_ad', { adId, seen: true });
    expect(data.receipt).toMatchObject({ charged: 0, cached: true });
  }
  const cleared = await run(['files', 'clear', '--files', folder]);
  expect(cleared.stdout).toContain(': 5 ads, no pages, no gatherings, ');
  expect(cleared).toMatchObject({ code: 0, stderr: '' });
  const asked = await client.call('get_ad', { adId: few[0], seen: true });
  expect(asked.data.receipt).toMatchObject({ charged: 1, cached: false });
  await client.close();
  expect(existsSync(folder)).toBe(true);
});
