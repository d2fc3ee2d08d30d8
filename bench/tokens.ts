/**
 * Measures what a result costs a model, in tokens of o200k_base: the response of the service, our text, and our
 * structured content. Exits with code 1 if a promised fact is missing or a limit is exceeded.
 *
 * Run it with `npm run bench:tokens`. It uses real ads if they are available, and demo data otherwise.
 */
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { libraryFilters } from '../src/library/search/filters.ts';
import { describeTool } from '../src/mcp/described-tools.ts';
import { buildInstructions } from '../src/mcp/instructions.ts';
import { listTools } from '../src/mcp/list-tools.ts';
import { tools } from '../src/tools/catalog.ts';
import { getItemTokens } from '../src/tools/pager.ts';
import type { Tool } from '../src/tools/tool.ts';
import { formatAd, formatAdList, viewAd } from '../src/views/ad.ts';
import { formatPage, formatPageList, viewPage } from '../src/views/page.ts';
import { estimateTokens } from '../src/views/tokens.ts';
import { listPromisedFacts, selectLinesAbout } from './promised-facts.ts';
import { addRow, computeQuantile } from './row.ts';
import { readDemoSamples, readRealSamples } from './samples.ts';

const now = Date.UTC(2026, 10, 20);
const asOf = '2026-11-20';
const pageSize = 50;
const maxTokens = 8000;
const { source, real, ads, pages } = readRealSamples() ?? (await readDemoSamples(now));
const say = (line = '') => process.stdout.write(`${line}\n`);
const problems: string[] = [];
const limit = (what: string, value: number, most: number) => {
  say(`  ${(value <= most ? 'ok' : 'BROKEN').padEnd(7)}${what}: ${value.toFixed(2)} (at most ${most})`);
  if (value > most) problems.push(`${what} is ${value.toFixed(2)}, more than ${most}`);
};
/** Checks a limit that depends on the data. Such limits are guaranteed only for real ads. */
const realLimit: typeof limit = (...promise) => (real ? limit(...promise) : undefined);

const tokens = (text: string) => countTokens(text, { allowedSpecial: new Set(), disallowedSpecial: new Set() });

/** Counts the tokens of a result that contains several items. */
const costs = ({
  raw,
  text,
  structured,
  items,
}: {
  raw: unknown;
  text: string;
  structured: unknown;
  items: number;
}) => ({
  items,
  raw: tokens(JSON.stringify(raw)),
  text: tokens(text),
  structured: tokens(JSON.stringify(structured)),
  estimate: estimateTokens(text),
});
type Costs = ReturnType<typeof costs>;
const sum = (all: Costs[], name: keyof Costs) => all.reduce((total, cost) => total + cost[name], 0);

function report(tool: string, all: Costs[]): void {
  const items = sum(all, 'items');
  say(`\n${tool}: ${all.length} results, ${items} items; tokens per item`);
  addRow({
    what: `${tool}, ${real ? 'real' : 'generated'} data`,
    ours: `${(sum(all, 'text') / items).toFixed(0)} tokens an item`,
    beside: `${(sum(all, 'raw') / items).toFixed(0)} as the service sends it`,
    ratio: sum(all, 'text') / sum(all, 'raw'),
  });
  for (const name of Object.keys(all[0] ?? {}).slice(1) as (keyof Costs)[]) {
    const each = all.map((cost) => cost[name] / cost.items);
    const shares = [0.5, 0.95, 1].map((share) => computeQuantile(each, share).toFixed(0).padStart(7));
    say(
      `  ${name.padEnd(11)}mean ${(sum(all, name) / items).toFixed(1).padStart(7)}   p50, p95, max ${shares.join('')}`,
    );
  }
}

const chunks = <T>(items: T[]): T[][] =>
  Array.from({ length: Math.ceil(items.length / pageSize) }, (_, i) => items.slice(i * pageSize, (i + 1) * pageSize));

/** A cursor as long as ours for a service that uses the cursor `eyJwIjoxfQ`. */
const cursor = '@50.q83vEjRWeJA:eyJwIjoxfQ';
const frame = { cursor, credits: 5, hasMore: true, total: 1204, asOf };
const adList = (raw: typeof ads) => {
  const rows = raw.map((ad) => viewAd(ad, { detail: 'brief', now }));
  return {
    raw: { items: raw },
    text: formatAdList({ items: rows, ...frame }),
    structured: { items: rows, ...frame },
    items: raw.length,
  };
};

function searchAds(): void {
  const all = chunks(ads).map((page) => costs(adList(page)));
  report('search_ads, brief', all);
  realLimit('text per ad', sum(all, 'text') / ads.length, 110);
  realLimit('% of the raw JSON', (100 * sum(all, 'text')) / sum(all, 'raw'), 6);
  realLimit('structured content per ad', sum(all, 'structured') / ads.length, 175);
  realLimit('text of any 50', Math.max(...all.map(({ text }) => text)), maxTokens);
  limit('actual / estimate', Math.max(...all.map(({ text, estimate }) => text / estimate)), 1);
  const shuffled = ads.map((_, i) => ads[(i * 53) % ads.length] ?? {}) as typeof ads;
  const mixed = chunks(shuffled).map((page) => costs(adList(page)));
  realLimit('text per ad, advertisers mixed', sum(mixed, 'text') / ads.length, 110);
}

function getAd(): void {
  const all = ads.map((ad) => {
    const view = viewAd(ad, { detail: 'standard', now });
    return costs({ raw: ad, text: formatAd(view), structured: { ad: view }, items: 1 });
  });
  report('get_ad, standard', all);
  limit(
    'text of the median ad',
    computeQuantile(
      all.map(({ text }) => text),
      0.5,
    ),
    700,
  );
}

function fullAds(): void {
  const budget = getItemTokens({ resultTokens: maxTokens - 160, resultBytes: Number.POSITIVE_INFINITY });
  const all = ads.map((ad) => {
    const view = viewAd(ad, { detail: 'full', now, budget });
    return costs({ raw: ad, text: formatAd(view, 'full', budget), structured: { ad: view }, items: 1 });
  });
  report('get_ad, full', all);
  limit('text of any ad', Math.max(...all.map(({ text }) => text)), maxTokens);
  limit('data of any ad', Math.max(...all.map(({ structured }) => structured)), 2 * maxTokens);
}

function searchPages(): void {
  const all = chunks(pages).map((raw) => {
    const rows = raw.map((page) => viewPage(page, { detail: 'brief' }));
    return costs({
      raw: { items: raw },
      text: formatPageList({ items: rows, ...frame }),
      structured: { items: rows, ...frame },
      items: raw.length,
    });
  });
  report('search_pages, brief', all);
  realLimit('text per page', sum(all, 'text') / pages.length, 50);
  realLimit('structured content per page', sum(all, 'structured') / pages.length, 60);
}

function getPage(): void {
  const all = pages.map((page) => {
    const view = viewPage(page, { detail: 'standard' });
    return costs({ raw: page, text: formatPage(view), structured: { page: view }, items: 1 });
  });
  report('get_page, standard', all);
}

/** True for research tools, which do not correspond to a single API operation. */
const isForResearch = ({ operations, makesSeveralCalls }: Tool) =>
  makesSeveralCalls === true || operations.length === 0;

/**
 * Prints the tokens of the tool list and of the instructions. Every conversation pays for them before the first call.
 */
function toolList(): void {
  const list = (demo: boolean) =>
    listTools(tools.map(describeTool), {
      includesOutputSchemas: true,
      ...(demo && { filters: libraryFilters }),
    });
  const forResearch = new Set(tools.filter(isForResearch).map(({ name }) => name));
  const read = (demo: boolean, some = list(demo)) =>
    tokens(JSON.stringify(some.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))));
  say(`\ntools/list: ${tools.length} tools; tokens of the whole list`);
  const ofOperations = list(true).filter(({ name }) => !forResearch.has(name));
  limit('name, description, inputSchema', read(false), 3700);
  limit('the same in demo mode, with filters', read(true), 4200);
  limit('of those, the tools of the ten operations', read(true, ofOperations), 2000);
  say(`  all that is listed, output schemas too: ${tokens(JSON.stringify(list(false)))}`);
  say(`  the same in demo mode: ${tokens(JSON.stringify(list(true)))}`);
  say(`  instructions: ${tokens(buildInstructions({ offered: tools, cachesAnswers: true }))}`);
}

/** Checks that the text and the structured content state every promised fact of every ad. */
function checkFacts(): void {
  let checked = 0;
  for (const page of chunks(ads)) {
    const { text, structured } = adList(page);
    for (const [index, ad] of page.entries()) {
      const lines = selectLinesAbout(ad, text);
      const json = JSON.stringify(structured.items[index]);
      for (const [name, isIn] of Object.entries(listPromisedFacts(ad, now))) {
        checked++;
        if (!isIn(lines)) problems.push(`${ad.id}: the text does not say ${name}`);
        if (!isIn(json)) problems.push(`${ad.id}: the structured content does not say ${name}`);
      }
    }
  }
  say(`\nfacts: ${checked} looked for in text and structured content, ${problems.length} problems so far`);
}

say(`tokens of o200k_base on ${source}: ${ads.length} ads, ${pages.length} pages`);
toolList();
searchAds();
getAd();
fullAds();
searchPages();
getPage();
checkFacts();
for (const problem of problems) say(`PROBLEM ${problem}`);
process.exitCode = problems.length > 0 ? 1 : 0;
