import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import type { Ad, Page } from '../../src/api/schemas.ts';
import { openApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { openDemoLibrary } from '../../src/library/demo/demo.ts';
import { libraryFilters } from '../../src/library/search/filters.ts';
import { createLog } from '../../src/logging/log.ts';
import { bindV1 } from '../../src/mcp/sdk-v1.ts';
import { type Result, readResult } from '../../test/support/server.ts';

/** The demo's data are the same on the same day. */
const start = Date.UTC(2026, 0, 15, 12);

const tokensOf = (text: string): number =>
  countTokens(text, { allowedSpecial: new Set(), disallowedSpecial: new Set() });

/** What was spent since the last time it was asked for. */
export interface Spent {
  calls: number;
  credits: number;
  /** Of the results' text, as a model reads it. */
  tokens: number;
  /** Of the service's answers that were needed, where they are counted. */
  rawTokens: number;
}

/** A client of the server in demo mode. */
export interface Demo {
  client: Client;
  /** Throws where the result is an error. */
  call(name: string, args?: object): Promise<Result['data']>;
  spent(): Spent;
  passWeek(): void;
  close(): Promise<void>;
}

/**
 * In demo mode, as everybody can start it. With `counted`, before the same library as a service of its own, whose answers
 * can be counted; it has no pictures then.
 */
export async function openDemo({ counted = false } = {}): Promise<Demo> {
  let time = start;
  const now = () => time;
  const { library, apiKey } = await openDemoLibrary({ now });
  const nothing = { calls: 0, credits: 0, tokens: 0, rawTokens: 0 };
  let spent: Spent = { ...nothing };
  const service = {
    baseUrl: 'https://library.demo.example',
    searchFilters: libraryFilters,
    mediaHosts: { public: false, listed: [] },
  };
  const app = await openApp({
    config: { ...readConfig({}), ...(counted ? service : { demo: true }) },
    log: createLog('silent', () => {}),
    ...{ now, elapsed: now, random: () => 0 },
    ...(counted && {
      fetch: async (url, request) => {
        const answer = await library.fetch(new Request(url, request as RequestInit));
        spent.rawTokens += tokensOf(await answer.clone().text());
        return answer;
      },
    }),
  });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await bindV1(app.catalog, counted ? { apiKey, tenantId: apiKey } : app.credentials).connect(ours);
  const client = new Client({ name: 'evals', version: '1' });
  await client.connect(theirs);
  await client.listTools();
  return {
    client,
    async call(name, args = {}) {
      const result = readResult(await client.callTool({ name, arguments: { ...args } }));
      if (result.isError) throw new Error(`${name}: ${result.text}`);
      spent.calls++;
      spent.tokens += tokensOf(result.text);
      spent.credits += result.data.receipt.charged ?? 0;
      return result.data;
    },
    spent() {
      const sum = spent;
      spent = { ...nothing };
      return sum;
    },
    passWeek() {
      time += 7 * 86_400_000;
    },
    async close() {
      await client.close();
      await app.close();
      library.close();
    },
  };
}

/** Everything the demo's service holds, as it sends it: what answers are checked against. */
export interface RawDemo {
  ads: Ad[];
  pages: Page[];
  collections: { id: string; name: string; adCount: number }[];
  inCollection(name: string): Promise<Ad[]>;
}

export async function readRawDemo(): Promise<RawDemo> {
  const { library, apiKey } = await openDemoLibrary({ now: () => start });
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const ask = async <Answer>(path: string, init: RequestInit = {}) => {
    const answer = await library.fetch(new Request(`https://library.demo.example${path}`, { ...init, headers }));
    return (await answer.json()) as Answer;
  };
  const everyItem = async <Item>(path: string): Promise<Item[]> => {
    const items: Item[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const body = JSON.stringify({ limit: 100, cursor });
      const page: { items: Item[]; cursor: string | null } = await ask(path, { method: 'POST', body });
      items.push(...page.items);
      cursor = page.cursor;
    }
    return items;
  };
  const { items: collections } = await ask<{ items: RawDemo['collections'] }>('/v1/collections');
  return {
    ads: await everyItem('/v1/ads/search'),
    pages: await everyItem('/v1/pages/search'),
    collections,
    async inCollection(name) {
      const { id } = collections.find((one) => one.name === name) ?? { id: '' };
      return (await ask<{ items: Ad[] }>(`/v1/collections/${id}/items?itemType=ads&limit=100`)).items;
    },
  };
}
