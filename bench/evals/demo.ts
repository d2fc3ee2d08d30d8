import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import type { Ad, Page } from '../../src/api/schemas.ts';
import { openApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { openDemoLibrary } from '../../src/library/demo/demo.ts';
import { libraryFilters } from '../../src/library/search/filters.ts';
import { createLogger } from '../../src/logging/log.ts';
import { createSdkV1Server } from '../../src/mcp/sdk-v1.ts';
import { type Result, readResult } from '../../test/support/server.ts';

/**
 * The time at which the clock of every evaluation starts. The demo data depends only on the date, so a fixed date makes
 * the results of different runs comparable.
 */
const startTime = Date.UTC(2026, 0, 15, 12);

const countTextTokens = (text: string): number =>
  countTokens(text, { allowedSpecial: new Set(), disallowedSpecial: new Set() });

/** The costs of all tool calls since `takeCosts` was last called. */
export interface CallCosts {
  callCount: number;
  credits: number;
  /** The number of tokens in the result texts that a model reads. */
  tokenCount: number;
  /** The number of tokens in the responses of the ad service, or 0 if these tokens are not counted. */
  rawTokenCount: number;
}

/** A client that is connected to a server with demo data. */
export interface Demo {
  client: Client;
  /**
   * Calls a tool and returns its structured result.
   * @throws Error if the tool call fails
   */
  call(name: string, args?: object): Promise<Result['data']>;
  takeCosts(): CallCosts;
  advanceWeek(): void;
  close(): Promise<void>;
}

/**
 * Starts a server with demo data. If `countsRawTokens` is true, the server calls the demo library as if it were a
 * remote service, so that the tokens of the library's responses can be counted. Tool results then contain no pictures.
 */
export async function openDemo({ countsRawTokens = false } = {}): Promise<Demo> {
  let currentTime = startTime;
  const now = () => currentTime;
  const { library, apiKey } = await openDemoLibrary({ now });
  const noCosts = { callCount: 0, credits: 0, tokenCount: 0, rawTokenCount: 0 };
  let costs: CallCosts = { ...noCosts };
  const service = {
    baseUrl: 'https://library.demo.example',
    searchFilters: libraryFilters,
    mediaHosts: { allowsPublicHosts: false, listedHosts: [] },
  };
  const app = await openApp({
    config: { ...readConfig({}), ...(countsRawTokens ? service : { demo: true }) },
    log: createLogger('silent', () => {}),
    ...{ now, monotonicNow: now, random: () => 0 },
    ...(countsRawTokens && {
      fetch: async (url, request) => {
        const response = await library.fetch(new Request(url, request as RequestInit));
        costs.rawTokenCount += countTextTokens(await response.clone().text());
        return response;
      },
    }),
  });
  const [serverTransport, clientTransport] = InMemoryTransport.createLinkedPair();
  await createSdkV1Server(app.catalog, countsRawTokens ? { apiKey, tenantId: apiKey } : app.credentials).connect(
    serverTransport,
  );
  const client = new Client({ name: 'evals', version: '1' });
  await client.connect(clientTransport);
  await client.listTools();
  return {
    client,
    async call(name, args = {}) {
      const result = readResult(await client.callTool({ name, arguments: { ...args } }));
      if (result.isError) throw new Error(`${name}: ${result.text}`);
      costs.callCount++;
      costs.tokenCount += countTextTokens(result.text);
      costs.credits += result.data.receipt.charged ?? 0;
      return result.data;
    },
    takeCosts() {
      const takenCosts = costs;
      costs = { ...noCosts };
      return takenCosts;
    },
    advanceWeek() {
      currentTime += 7 * 86_400_000;
    },
    async close() {
      await client.close();
      await app.close();
      library.close();
    },
  };
}

/**
 * All data of the demo service, as the service sends it. The evaluations compute the correct answers from this data and
 * compare the answers of the tools with them.
 */
export interface RawDemoData {
  ads: Ad[];
  pages: Page[];
  collections: { id: string; name: string; adCount: number }[];
  readCollection(name: string): Promise<Ad[]>;
}

/** Reads all data of the demo service through its API. */
export async function readRawDemo(): Promise<RawDemoData> {
  const { library, apiKey } = await openDemoLibrary({ now: () => startTime });
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const requestJson = async <Answer>(path: string, init: RequestInit = {}) => {
    const response = await library.fetch(new Request(`https://library.demo.example${path}`, { ...init, headers }));
    return (await response.json()) as Answer;
  };
  const readAllItems = async <Item>(path: string): Promise<Item[]> => {
    const items: Item[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const body = JSON.stringify({ limit: 100, cursor });
      const page: { items: Item[]; cursor: string | null } = await requestJson(path, { method: 'POST', body });
      items.push(...page.items);
      cursor = page.cursor;
    }
    return items;
  };
  const { items: collections } = await requestJson<{ items: RawDemoData['collections'] }>('/v1/collections');
  return {
    ads: await readAllItems('/v1/ads/search'),
    pages: await readAllItems('/v1/pages/search'),
    collections,
    async readCollection(name) {
      const { id } = collections.find((collection) => collection.name === name) ?? { id: '' };
      return (await requestJson<{ items: Ad[] }>(`/v1/collections/${id}/items?itemType=ads&limit=100`)).items;
    },
  };
}
