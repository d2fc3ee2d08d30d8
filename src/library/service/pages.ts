import type { ItemType } from '../../api/schemas.ts';
import { viewCards } from '../../present/ad-media.ts';
import { adFields, pageFields } from '../../present/fields.ts';
import { count } from '../../present/lists.ts';
import { type Fields, isNumber, textOf } from '../../present/view.ts';
import { type CardAd, cardHtml, cardOf, runText } from '../../reports/card.ts';
import { escaped, numberText, pageHtml, paragraphs, text } from '../../reports/page.ts';
import { readSearch, runSearch, type SearchContext } from '../search/search-request.ts';
import { ApiError } from './request.ts';

/** A library as its pages read it. */
export type PageContext = SearchContext & {
  /** Records as the API sends them. */
  read(kind: ItemType, numbers: number[]): Fields[];
  /** The address of the library's own pictures: a page loads pictures from no other host. */
  origin: string;
  isDemo: boolean;
};

const perPage = 24;
/** Characters of a record as it came. */
const maxRecord = 200_000;
const textTokens = 20_000;

/**
 * `/`: ads or advertisers, by words and in an order. Its query is `type` (`ads` or `pages`), `query`, `sort`, and the
 * `cursor` of the page before.
 */
export function listPage(searchParams: URLSearchParams, context: PageContext): string {
  const kind: ItemType = searchParams.get('type') === 'pages' ? 'pages' : 'ads';
  const [query, sort] = [searchParams.get('query')?.trim() ?? '', searchParams.get('sort') ?? ''];
  const filters = { ...(query && { query }), ...(sort in orders[kind] && { sort }) };
  const found = search(kind, filters, searchParams, context);
  const tab = (one: ItemType, name: string) =>
    `<a href="/?type=${one}"${one === kind ? ' aria-current="page"' : ''}>${name}</a>`;
  const option = ([value, name]: [string, string]) =>
    `<option value="${value}"${value === sort ? ' selected' : ''}>${name}</option>`;
  const form = `<form action="/" role="search"><input type="hidden" name="type" value="${kind}"><label>Words <input type="search" name="query" maxlength="300" value="${text(query)}"></label><label>Order <select name="sort">${Object.entries(orders[kind]).map(option).join('')}</select></label><button>Search</button></form>`;
  const header = `<header><nav class="tabs" aria-label="What is listed">${tab('ads', 'Ads')}${tab('pages', 'Advertisers')}</nav><h1>${query ? `“${text(query)}”` : kind === 'ads' ? 'Ads' : 'Advertisers'}</h1>${form}</header>`;
  return document(query || 'Ad library', [
    context.isDemo && demoNotice,
    header,
    found(new URLSearchParams({ type: kind, query, sort })),
  ]);
}

/** The orders of a list; the first is the default. */
const orders = {
  ads: {
    startedAt: 'Newest first',
    daysRunning: 'Longest running',
    duplicates: 'Most copies',
    lastSeenAt: 'Seen last',
  },
  pages: { adsAmount: 'Most ads', pageLikes: 'Most likes', audienceReach: 'Largest reach' },
} satisfies Record<ItemType, Record<string, string>>;

/** Finds one page of records; the function that it returns writes them, with a link to the next page. */
function search(kind: ItemType, filters: object, searchParams: URLSearchParams, context: PageContext) {
  const cursor = searchParams.get('cursor');
  const body = cursor ? { cursor, limit: perPage } : { ...filters, limit: perPage };
  try {
    const found = runSearch(readSearch(kind, body, context), context);
    return (kept: URLSearchParams) => {
      const nouns = kind === 'ads' ? ['ad', 'ads'] : ['advertiser', 'advertisers'];
      const all = `<h2>${numberText(found.totalHits)} ${nouns[found.totalHits === 1 ? 0 : 1]}</h2>${found.totalHits === 0 ? '<p class="soft">Nothing matches.</p>' : ''}`;
      const items = context.read(kind, found.numbers);
      const cards = items.map((item) => (kind === 'ads' ? cardHtml(adCard(item, context)) : advertiserHtml(item)));
      const next = new URLSearchParams([...kept].filter(([, value]) => value));
      if (found.cursor) next.set('cursor', found.cursor);
      const more = found.cursor ? `<p class="more"><a href="?${escaped(String(next))}">Next page</a></p>` : '';
      return `<section>${all}<ul class="cards">${cards.join('')}</ul>${more}</section>`;
    };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return () => `<section><p class="problem" role="alert">${text(error.message)}</p></section>`;
  }
}

/** An ad as a card of a list, whose picture is one of this library, or is named as missing. */
function adCard(ad: Fields, { now, origin }: PageContext): CardAd {
  const { card, address } = cardOf(ad, { id: String(ad.id), at: now(), now: now() });
  if (address === undefined) return { ...card, href: hrefOf('ads', ad.id) };
  const isOwn = address.startsWith(`${origin}/`);
  const picture = isOwn ? { src: address.slice(origin.length) } : { reason: 'it is not kept in this library' };
  return { ...card, picture, href: hrefOf('ads', ad.id) };
}

const hrefOf = (kind: ItemType, id: unknown): string => `/${kind}/${encodeURIComponent(String(id))}`;

function advertiserHtml(page: Fields): string {
  const facts = [
    // The number is the record's own; the library may hold fewer ads.
    isNumber(page.adsAmount) && `${count(page.adsAmount, 'ad')} in its record`,
    isNumber(page.pageLikes) && `${numberText(page.pageLikes)} likes`,
  ];
  return `<li class="card"><div class="facts"><h3 class="clamp" dir="auto"><a href="${hrefOf('pages', page.pageId)}">${text(textOf(page.pageName, 60) ?? 'Name unknown')}</a></h3><p class="soft">${facts.filter(Boolean).join(' · ')}</p><p class="id">${text(String(page.pageId))}</p></div></li>`;
}

/** `/ads/<id>` */
export function adPage(ad: Fields, context: PageContext): string {
  const card = adCard(ad, context);
  const { views: cards, more } = viewCards(ad);
  const name = card.title ?? card.line ?? 'Ad without words';
  const advertiser = ad.pageId
    ? `<a href="${hrefOf('pages', ad.pageId)}">${text(card.pageName ?? 'Advertiser')}</a>`
    : text(card.pageName ?? 'Advertiser unknown');
  const words = [ad.body, ad.linkDescription].flatMap((copy) => paragraphs(textOf(copy, textTokens) ?? ''));
  const parts = cards.map(
    ({ card: number, title = '', body = '', landingUrl = '' }) =>
      `<li><p class="soft">Card ${number}</p>${[title, body, landingUrl].flatMap(paragraphs).join('')}</li>`,
  );
  return document(name, [
    `<header>${home}<p dir="auto">${advertiser}</p><h1 dir="auto">${text(name)}</h1><p class="run">${runText(card)}</p></header>`,
    `<section><h2>The ad</h2><div class="ad"><ul class="cards">${cardHtml({ ...card, href: undefined })}</ul><div>${words.join('') || '<p class="soft">The ad has no copy of its own.</p>'}</div></div></section>`,
    parts.length > 0 &&
      `<section><h2>Cards</h2><ol class="parts">${parts.join('')}</ol>${more > 0 ? `<p class="soft">${count(more, 'card')} more in the record below.</p>` : ''}</section>`,
    recordHtml(ad, adFields),
  ]);
}

/** `/pages/<id>`, with the ads of that advertiser. */
export function advertiserPage(page: Fields, context: PageContext, searchParams: URLSearchParams): string {
  const name = textOf(page.pageName, 100) ?? String(page.pageId);
  const found = search('ads', { pageId: [String(page.pageId)] }, searchParams, context);
  return document(name, [
    `<header>${home}<h1 dir="auto">${text(name)}</h1></header>`,
    found(new URLSearchParams()),
    recordHtml(page, pageFields),
  ]);
}

const demoNotice = '<p class="notice">Demo data: every advertiser and ad is generated and fictional.</p>';

const home = '<nav aria-label="Back"><a href="/">Ad library</a></nav>';

/** The fields of a record under the names of the API, and the whole record as it came. */
function recordHtml(record: Fields, fields: object): string {
  const rows = Object.keys(fields).flatMap((name) => {
    const value = record[name];
    if (value === null || value === undefined || (typeof value === 'object') !== Array.isArray(value)) return [];
    const words = Array.isArray(value) ? value.filter((one) => typeof one === 'string').join(', ') : String(value);
    const shown = textOf(words, 300);
    return shown === undefined || long.includes(name)
      ? []
      : `<tr><th scope="row">${name}</th><td><bdi>${text(shown)}</bdi></td></tr>`;
  });
  const json = JSON.stringify(record, null, 1).replace(/[^\P{C}\n]/gu, asEscapes);
  const cut =
    json.length > maxRecord ? `<p class="soft">${numberText(json.length - maxRecord)} more characters.</p>` : '';
  return `<section><h2>Fields</h2><div class="table" role="region" aria-label="Fields" tabindex="0"><table><tbody>${rows.join('')}</tbody></table></div><details><summary>The record as it came</summary><pre tabindex="0"><code>${escaped(json.slice(0, maxRecord))}</code></pre>${cut}</details></section>`;
}

/** Writes invisible characters as JSON escapes. */
const asEscapes = (invisible: string): string =>
  invisible
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');

/** Fields whose long texts are shown above the table. */
const long = ['headline', 'body', 'linkDescription'];

const document = (title: string, body: (string | false)[]) =>
  pageHtml({ title, body: body.filter((part) => part !== false), policy, styles });

/** The content policy of the pages: they load nothing from other hosts, and run no script. */
export const policy =
  "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'";

const styles = `
main { gap: 28px }
header { padding-bottom: 20px }
.tabs { display: flex; gap: 18px; font-size: 14px }
.tabs [aria-current] { font-weight: 650; text-decoration-color: var(--accent) }
form { display: flex; flex-wrap: wrap; gap: 12px; align-items: end; font-size: 13px; color: var(--soft) }
form label { display: grid; gap: 3px }
form label:first-of-type { flex: 1 1 220px }
input, select, button { font: inherit; font-size: 15px; color: var(--ink); background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 9px 12px; min-height: 44px; min-width: 0 }
button { background: var(--accent); border-color: var(--accent); color: light-dark(#fff, #1a1917); font-weight: 650 }
.card a { text-decoration: none } .card a:hover { text-decoration: underline }
.ad { display: grid; grid-template-columns: minmax(200px, 320px) 1fr; gap: 28px }
.ad .cards { grid-template-columns: 1fr }
.ad > div { display: grid; gap: 14px; align-content: start }
.parts { display: grid; gap: 18px } .parts li { display: grid; gap: 4px }
.more a { display: inline-block; padding: 10px 18px; border: 1px solid var(--line); border-radius: 99px; text-decoration: none }
tbody th { vertical-align: top; font-weight: 500; width: 12em }
tbody tr:first-child > * { border-top: 0 } th { border-top: 1px solid var(--line) }
summary { cursor: pointer; padding: 10px 0 }
@media (max-width: 640px) { .ad { display: grid; grid-template-columns: 1fr } }
`;

export const missingPage = document('Not in this library', [
  `<header>${home}<h1>Not in this library</h1><p>No ad or advertiser has this id.</p></header>`,
]);
