import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { readConfig } from '../../src/config/read-config.ts';
import { connectCommand, connectHttp, type TestClient } from '../support/clients.ts';
import type { Stage } from './stage.ts';

interface ServerEntry {
  command?: string;
  args?: string[];
  env?: Record<string, string>;
  url?: string;
  headers?: Record<string, string>;
}

/** What a configuration asks the person for, or takes from their environment. */
const inputs = /\$\{(?:input|env):[\w-]+\}/g;

/** Starts or reaches every server of a configuration, as a host would, and calls it. Reads a file of filters. */
export async function runJson(text: string, stage: Stage): Promise<void> {
  const value = JSON.parse(stage.fill(text).replace(inputs, stage.key));
  if (value.ads && value.pages) return readFilters(text, stage);
  const servers: ServerEntry[] = Object.values(value.mcpServers ?? value.servers ?? { it: value });
  expect(servers).not.toEqual([]);
  for (const server of servers) await answersOnce(server, stage);
}

/** Hosts write the same server in different forms: each is started once. */
const answered = new Map<string, Promise<void>>();
function answersOnce(server: ServerEntry, stage: Stage): Promise<void> {
  const key = JSON.stringify(server);
  const answer = answered.get(key) ?? connect(server, stage).then(answers);
  answered.set(key, answer);
  return answer;
}

export async function answers(client: TestClient): Promise<void> {
  const { isError, text } = await client.call('whoami');
  expect({ isError, text }).toEqual({ isError: false, text: expect.stringContaining('authenticated by: api_key') });
  await client.close();
}

export function connect({ command, args = [], env, url, headers = {} }: ServerEntry, stage: Stage) {
  if (command) {
    // Where a block shows how to start the server and leaves out the settings, they are those of the others.
    const settings = env ?? { AD_LIBRARY_API_KEY: stage.key, AD_LIBRARY_BASE_URL: stage.fill('https://…') };
    return connectCommand('v1', { command, args, env: { HOME: stage.folder, ...settings }, cwd: stage.folder });
  }
  const [, key] = /^Bearer (\S+)$/.exec(headers.Authorization ?? '') ?? [];
  return connectHttp('v1', String(url), key);
}

function readFilters(text: string, { folder }: Stage): void {
  const file = join(folder, 'filters.json');
  writeFileSync(file, text);
  const { searchFilters } = readConfig({ AD_LIBRARY_SEARCH_FILTERS: file });
  expect(searchFilters?.ads.map(({ key }) => key)).toEqual(JSON.parse(text).ads.map(({ key }: { key: string }) => key));
}
