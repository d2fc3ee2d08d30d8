import { setMaxListeners } from 'node:events';
import { readFile } from 'node:fs/promises';
import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import { AdLibraryError } from './api/errors.ts';
import { createPartition, type Partition } from './api/partition.ts';
import { SearchFilters } from './api/search-filters.ts';
import type { Send } from './api/send.ts';
import { undiciFetch } from './api/undici-fetch.ts';
import { type Fetch, sendOver } from './api/wire.ts';
import { withCache } from './api/with-cache.ts';
import { withMerging } from './api/with-merging.ts';
import { withRetries } from './api/with-retries.ts';
import { withSeenAds } from './api/with-seen-ads.ts';
import { type Config, SettingsError, settings } from './config.ts';
import type { Kept, ToolContext } from './context.ts';
import { type Books, createBooks } from './credits/books.ts';
import { spendingOf } from './credits/spending.ts';
import { withBalance } from './credits/with-balance.ts';
import { withBudget } from './credits/with-budget.ts';
import { withLedger } from './credits/with-ledger.ts';
import { withUsageWindows } from './credits/with-usage-windows.ts';
import type { Log } from './log.ts';
import { type Catalog, createCatalog } from './mcp/catalog.ts';
import { filterHints } from './mcp/filter-hints.ts';
import { prompts } from './prompts/catalog.ts';
import { tools } from './tools/catalog.ts';
import type { Tool } from './tools/define-tool.ts';
import { version } from './version.ts';

/** What the process serves, whichever way it is reached. */
export interface App {
  catalog: Catalog;
  /** The key calls are made with where the caller brings none: the person's own over stdio, the demo's in demo mode. */
  key: string | undefined;
  /** Aborts calls in flight and lets go of everything the app holds. */
  close(): Promise<void>;
}

export interface AppOptions {
  config: Config;
  log: Log;
  now: () => number;
  random: () => number;
}

/** The service behind the API's `fetch`: the real one, or the local library with demo data inside this process. */
interface Upstream {
  fetch: Fetch;
  baseUrl: string | undefined;
  key: string | undefined;
  notice?: string;
  filterHints?: Readonly<Record<string, string>> | undefined;
  close(): Promise<void> | void;
}

export async function openApp({ config, log, now, random }: AppOptions): Promise<App> {
  const upstream = await (config.demo ? openDemo(now) : openService(config));
  const closing = new AbortController();
  // Every call under way listens for it; Node takes more than ten for a leak and says so.
  setMaxListeners(0, closing.signal);
  const partition = createPartition();
  const books = createBooks(partition);
  const send = sendChain({ config, upstream, books, partition, now, random });
  const service = {
    tools: chosenTools(config),
    send,
    memoryOf: callerMemory({ books, partition, budget: config.creditBudget }),
    now,
    log,
    resultTokens: config.resultTokens,
    timeoutMs: config.timeoutMs,
    output: config.output,
    notice: upstream.notice,
    closing: closing.signal,
  };
  return {
    catalog: createCatalog({ service, prompts, version, filterHints: upstream.filterHints }),
    key: upstream.key,
    close: async () => {
      closing.abort();
      await upstream.close();
    },
  };
}

interface ChainOptions {
  config: Config;
  upstream: Upstream;
  books: Books;
  partition: Partition;
  now: () => number;
  random: () => number;
}

/** Everything between a tool and the network, the outermost last. */
function sendChain({ config, upstream, books, partition, now, random }: ChainOptions): Send {
  const { fetch, baseUrl } = upstream;
  const { creditBudget: budget } = config;
  const ttl = config.cacheSeconds * 1000;
  const wire = baseUrl === undefined ? unsent : sendOver(fetch, { baseUrl, userAgent: `ad-library-mcp/${version}` });
  const retried = withRetries(wire, { random });
  const booked = withLedger(retried, books);
  const budgeted = withBudget(booked, { books, budget });
  const windowed = withUsageWindows(budgeted, { books, now });
  const merged = withMerging(windowed, partition);
  const cached = withCache(merged, { ttl, now, partition });
  const remembered = withSeenAds(cached, { ttl, now, partition });
  return withBalance(remembered, { books, budget });
}

/** Without an address of the service nothing can be sent. */
const unsent: Send = async () => {
  throw new AdLibraryError({ kind: 'no_api_key', sent: false });
};

/** Most characters of the questions behind cursors that are remembered for all callers together. */
const largestMemory = 16 * 1024 * 1024;

/** What is remembered of callers, each apart from the others. */
function callerMemory(options: { books: Books; partition: Partition; budget: number | undefined }) {
  const { books, partition, budget } = options;
  const questions = new LRUCache<string, Kept>({
    maxSize: largestMemory,
    sizeCalculation: (kept, mark) => JSON.stringify(kept).length + mark.length,
  });
  return (key: string): Pick<ToolContext, 'spending' | 'asked'> => ({
    spending: () => spendingOf(books(key), budget),
    asked: {
      get: (mark) => questions.get(`${partition(key)} ${mark}`),
      set: (mark, kept) => questions.set(`${partition(key)} ${mark}`, kept),
    },
  });
}

async function openService({ baseUrl, apiKey, searchFilters }: Config): Promise<Upstream> {
  const hints = searchFilters === undefined ? undefined : filterHints(await readFilters(searchFilters));
  return { ...undiciFetch(), baseUrl, key: apiKey, filterHints: hints };
}

async function readFilters(file: string): Promise<SearchFilters> {
  try {
    return SearchFilters.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch (error) {
    const problem = error instanceof z.ZodError ? z.prettifyError(error) : (error as Error).message;
    throw new SettingsError([`${settings.searchFilters.variable} names ${file}, which cannot be used: ${problem}`]);
  }
}

async function openDemo(now: () => number): Promise<Upstream> {
  const [{ openDemoLibrary }, { libraryFilters }] = await Promise.all([
    import('./library/demo.ts'),
    import('./library/filters.ts'),
  ]);
  const { library, apiKey } = await openDemoLibrary({
    now,
    mediaUrl: 'https://media.demo.example/media',
    appUrl: 'https://app.demo.example',
  });
  return {
    fetch: (url, init) => library.fetch(new Request(url, init)),
    baseUrl: 'http://demo.invalid',
    key: apiKey,
    notice: 'DEMO DATA: generated, every advertiser and ad is fictional, no real credits are spent.',
    filterHints: filterHints(libraryFilters),
    close: () => library.close(),
  };
}

function chosenTools({ tools: names, readOnly }: Config): ReadonlyMap<string, Tool> {
  const unknown = names?.filter((name) => !tools.some((tool) => tool.name === name)) ?? [];
  if (unknown.length > 0) {
    const known = tools.map((tool) => tool.name).join(', ');
    throw new SettingsError([`${settings.tools.variable} names no tool: ${unknown.join(', ')}. Tools: ${known}`]);
  }
  const chosen = tools
    .filter((tool) => names?.includes(tool.name) ?? true)
    .filter((tool) => tool.annotations.readOnlyHint || !readOnly);
  return new Map(chosen.map((tool) => [tool.name, tool]));
}
