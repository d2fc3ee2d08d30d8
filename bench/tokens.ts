/**
 * Measures the length of tool results in tokens of o200k_base, in three forms: the response of the service, our text,
 * and our structured content. Exits with code 1 if a promised fact is missing or a limit is exceeded.
 *
 * Run it with `npm run bench:tokens`. It uses real ads if they are available, and demo data otherwise.
 */
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { libraryFilters } from '../src/library/search/filters.ts';
import { describeTool } from '../src/mcp/described-tools.ts';
import { buildInstructions } from '../src/mcp/instructions.ts';
import { listTools } from '../src/mcp/list-tools.ts';
import { tools } from '../src/tools/catalog.ts';
import { getMaxItemTokens } from '../src/tools/pager.ts';
import type { Tool } from '../src/tools/tool.ts';
import { buildAdView, formatAd, formatAdList } from '../src/views/ad.ts';
import { buildPageView, formatPage, formatPageList } from '../src/views/page.ts';
import { estimateTokens } from '../src/views/tokens.ts';
import { listPromisedFacts, selectLinesAboutAd } from './promised-facts.ts';
import { computeQuantile, printRow } from './row.ts';
import { readDemoSamples, readRealSamples } from './samples.ts';

const now = Date.UTC(2026, 10, 20);
const asOf = '2026-11-20';
const pageSize = 50;
const maxTokens = 8000;
const { dataDescription, isReal, ads, pages } = readRealSamples() ?? (await readDemoSamples(now));
const printLine = (line = '') => process.stdout.write(`${line}\n`);
const problems: string[] = [];
const checkLimit = (measurement: string, value: number, maxValue: number) => {
  printLine(
    `  ${(value <= maxValue ? 'ok' : 'BROKEN').padEnd(7)}${measurement}: ${value.toFixed(2)} (at most ${maxValue})`,
  );
  if (value > maxValue) problems.push(`${measurement} is ${value.toFixed(2)}, more than ${maxValue}`);
};
/**
 * Checks a token limit that depends on the ads. Such limits are guaranteed only for real ads, so demo data skips this
 * check.
 */
const checkRealLimit: typeof checkLimit = (...limitArguments) => (isReal ? checkLimit(...limitArguments) : undefined);

const countTextTokens = (text: string) =>
  countTokens(text, { allowedSpecial: new Set(), disallowedSpecial: new Set() });

/**
 * Counts the tokens of a result in three forms: the response of the service (`raw`), our text, and our structured
 * content. Also returns the number of items in the result, and our estimate of the tokens of the text.
 */
const countFormTokens = ({
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
  raw: countTextTokens(JSON.stringify(raw)),
  text: countTextTokens(text),
  structured: countTextTokens(JSON.stringify(structured)),
  estimate: estimateTokens(text),
});
type TokenCounts = ReturnType<typeof countFormTokens>;
const sumCounts = (allCounts: TokenCounts[], form: keyof TokenCounts) =>
  allCounts.reduce((total, counts) => total + counts[form], 0);

function printTokenCounts(tool: string, allCounts: TokenCounts[]): void {
  const items = sumCounts(allCounts, 'items');
  printLine(`\n${tool}: ${allCounts.length} results, ${items} items; tokens per item`);
  printRow({
    measurement: `${tool}, ${isReal ? 'real' : 'generated'} data`,
    measuredText: `${(sumCounts(allCounts, 'text') / items).toFixed(0)} tokens an item`,
    baselineText: `${(sumCounts(allCounts, 'raw') / items).toFixed(0)} as the service sends it`,
    ratio: sumCounts(allCounts, 'text') / sumCounts(allCounts, 'raw'),
  });
  for (const name of Object.keys(allCounts[0] ?? {}).slice(1) as (keyof TokenCounts)[]) {
    const countsPerItem = allCounts.map((counts) => counts[name] / counts.items);
    const quantileTexts = [0.5, 0.95, 1].map((quantile) =>
      computeQuantile(countsPerItem, quantile).toFixed(0).padStart(7),
    );
    printLine(
      `  ${name.padEnd(11)}mean ${(sumCounts(allCounts, name) / items).toFixed(1).padStart(7)}   p50, p95, max ${quantileTexts.join('')}`,
    );
  }
}

const splitIntoPages = <Item>(items: Item[]): Item[][] =>
  Array.from({ length: Math.ceil(items.length / pageSize) }, (_, i) => items.slice(i * pageSize, (i + 1) * pageSize));

/** A sample cursor of typical length. It contains the cursor of the service, here `eyJwIjoxfQ`. */
const cursor = '@50.q83vEjRWeJA:eyJwIjoxfQ';
const listFields = { cursor, hasMore: true, totalHits: 1204, asOf };
const priceText = '5 credits';
const buildAdList = (apiAds: typeof ads) => {
  const adViews = apiAds.map((ad) => buildAdView(ad, { detail: 'brief', now }));
  return {
    raw: { items: apiAds },
    text: formatAdList({ items: adViews, ...listFields, priceText }),
    structured: { items: adViews, ...listFields },
    items: apiAds.length,
  };
};

function measureSearchAds(): void {
  const tokenCounts = splitIntoPages(ads).map((page) => countFormTokens(buildAdList(page)));
  printTokenCounts('search_ads, brief', tokenCounts);
  checkRealLimit('text per ad', sumCounts(tokenCounts, 'text') / ads.length, 110);
  checkRealLimit('% of the raw JSON', (100 * sumCounts(tokenCounts, 'text')) / sumCounts(tokenCounts, 'raw'), 6);
  checkRealLimit('structured content per ad', sumCounts(tokenCounts, 'structured') / ads.length, 175);
  checkRealLimit('text of any 50', Math.max(...tokenCounts.map(({ text }) => text)), maxTokens);
  checkLimit('actual / estimate', Math.max(...tokenCounts.map(({ text, estimate }) => text / estimate)), 1);
  const shuffledAds = ads.map((_, i) => ads[(i * 53) % ads.length] ?? {}) as typeof ads;
  const mixedTokenCounts = splitIntoPages(shuffledAds).map((page) => countFormTokens(buildAdList(page)));
  checkRealLimit('text per ad, advertisers mixed', sumCounts(mixedTokenCounts, 'text') / ads.length, 110);
}

function measureGetAd(): void {
  const tokenCounts = ads.map((ad) => {
    const view = buildAdView(ad, { detail: 'standard', now });
    return countFormTokens({ raw: ad, text: formatAd(view), structured: { ad: view }, items: 1 });
  });
  printTokenCounts('get_ad, standard', tokenCounts);
  checkLimit(
    'text of the median ad',
    computeQuantile(
      tokenCounts.map(({ text }) => text),
      0.5,
    ),
    700,
  );
}

function measureFullAds(): void {
  const maxAdTokens = getMaxItemTokens({ maxTextTokens: maxTokens - 160, maxTextBytes: Number.POSITIVE_INFINITY });
  const tokenCounts = ads.map((ad) => {
    const view = buildAdView(ad, { detail: 'full', now, maxTokens: maxAdTokens });
    return countFormTokens({ raw: ad, text: formatAd(view, 'full', maxAdTokens), structured: { ad: view }, items: 1 });
  });
  printTokenCounts('get_ad, full', tokenCounts);
  checkLimit('text of any ad', Math.max(...tokenCounts.map(({ text }) => text)), maxTokens);
  checkLimit('data of any ad', Math.max(...tokenCounts.map(({ structured }) => structured)), 2 * maxTokens);
}

function measureSearchPages(): void {
  const tokenCounts = splitIntoPages(pages).map((raw) => {
    const rows = raw.map((page) => buildPageView(page, { detail: 'brief' }));
    return countFormTokens({
      raw: { items: raw },
      text: formatPageList({ items: rows, ...listFields, priceText }),
      structured: { items: rows, ...listFields },
      items: raw.length,
    });
  });
  printTokenCounts('search_pages, brief', tokenCounts);
  checkRealLimit('text per page', sumCounts(tokenCounts, 'text') / pages.length, 50);
  checkRealLimit('structured content per page', sumCounts(tokenCounts, 'structured') / pages.length, 60);
}

function measureGetPage(): void {
  const tokenCounts = pages.map((page) => {
    const view = buildPageView(page, { detail: 'standard' });
    return countFormTokens({ raw: page, text: formatPage(view), structured: { page: view }, items: 1 });
  });
  printTokenCounts('get_page, standard', tokenCounts);
}

/** Returns true for research tools. Unlike other tools, they make several API calls or none. */
const isResearchTool = ({ operations, makesSeveralApiCalls }: Tool) =>
  makesSeveralApiCalls === true || operations.length === 0;

/**
 * Prints the number of tokens of the tool list and of the instructions. Every conversation includes both before the
 * first call.
 */
function measureToolList(): void {
  const listToolsForModel = (isDemo: boolean) =>
    listTools(tools.map(describeTool), {
      includesOutputSchemas: true,
      ...(isDemo && { filters: libraryFilters }),
    });
  const researchToolNames = new Set(tools.filter(isResearchTool).map(({ name }) => name));
  const countListTokens = (isDemo: boolean, listedTools = listToolsForModel(isDemo)) =>
    countTextTokens(
      JSON.stringify(listedTools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))),
    );
  printLine(`\ntools/list: ${tools.length} tools; tokens of the whole list`);
  const operationTools = listToolsForModel(true).filter(({ name }) => !researchToolNames.has(name));
  checkLimit('name, description, inputSchema', countListTokens(false), 3700);
  checkLimit('the same in demo mode, with filters', countListTokens(true), 4200);
  checkLimit('of those, the tools of the ten operations', countListTokens(true, operationTools), 2000);
  printLine(`  all that is listed, output schemas too: ${countTextTokens(JSON.stringify(listToolsForModel(false)))}`);
  printLine(`  the same in demo mode: ${countTextTokens(JSON.stringify(listToolsForModel(true)))}`);
  printLine(`  instructions: ${countTextTokens(buildInstructions({ offeredTools: tools, cachesAnswers: true }))}`);
}

/**
 * Checks that both the text and the structured content state every promised fact about every ad, such as its start
 * date.
 */
function checkFacts(): void {
  let checkedFactCount = 0;
  for (const page of splitIntoPages(ads)) {
    const { text, structured } = buildAdList(page);
    for (const [index, ad] of page.entries()) {
      const lines = selectLinesAboutAd(ad, text);
      const json = JSON.stringify(structured.items[index]);
      for (const [name, isStated] of Object.entries(listPromisedFacts(ad, now))) {
        checkedFactCount++;
        if (!isStated(lines)) problems.push(`${ad.id}: the text does not say ${name}`);
        if (!isStated(json)) problems.push(`${ad.id}: the structured content does not say ${name}`);
      }
    }
  }
  printLine(
    `\nfacts: ${checkedFactCount} looked for in text and structured content, ${problems.length} problems so far`,
  );
}

printLine(`tokens of o200k_base on ${dataDescription}: ${ads.length} ads, ${pages.length} pages`);
measureToolList();
measureSearchAds();
measureGetAd();
measureFullAds();
measureSearchPages();
measureGetPage();
checkFacts();
for (const problem of problems) printLine(`PROBLEM ${problem}`);
process.exitCode = problems.length > 0 ? 1 : 0;
