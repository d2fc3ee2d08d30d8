import type { ItemType } from '../../api/schemas.ts';
import { AdCard, type CardAd, cardStyles, Frame, Run, titleOf } from '../../looks/ad-card.tsx';
import { Form, Link } from '../../looks/addresses.tsx';
import { countText, numberText } from '../../looks/formats.ts';
import type { Content } from '../../looks/jsx.d.ts';
import { demoNotice, Page, renderPage } from '../../looks/page.tsx';
import { Paragraphs, proseStyles } from '../../looks/prose.tsx';
import { cellText, tableStyles } from '../../looks/table.tsx';
import { viewCards } from '../../present/ad-media.ts';
import { columnTitle } from '../../present/column-title.ts';
import { adFields, pageFields } from '../../present/fields.ts';
import { sanitizeLine } from '../../present/safe-text.ts';
import { type Fields, isNumber, textOf } from '../../present/view.ts';
import { cardOf } from '../../reports/card.ts';
import { readSearch, runSearch, type SearchContext } from '../search/search-request.ts';
import { ApiError } from './request.ts';

/** A library as its pages read it. */
export type PageContext = SearchContext & {
  /** Records as the API sends them. */
  read(kind: ItemType, numbers: number[]): Fields[];
  /** The address of the library's own pictures: a page loads pictures from no other host. */
  origin: string;
  /** The path below which the pages are. */
  pagesPath: string;
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
  const heading = query ? `“${query}”` : kind === 'ads' ? 'Ads' : 'Advertisers';
  return document(
    query || 'Ad library',
    <>
      {context.isDemo && demoNotice}
      <header>
        <nav class="tabs" aria-label="What is listed">
          <Link to={`${context.pagesPath}/?type=ads`} isCurrent={kind === 'ads'}>
            Ads
          </Link>
          <Link to={`${context.pagesPath}/?type=pages`} isCurrent={kind === 'pages'}>
            Advertisers
          </Link>
        </nav>
        <h1>{sanitizeLine(heading)}</h1>
        <Form to={`${context.pagesPath}/`}>
          <input type="hidden" name="type" value={kind} />
          <label>
            Words <input type="search" name="query" maxLength={300} value={sanitizeLine(query)} />
          </label>
          <label>
            Order{' '}
            <select name="sort">
              {Object.entries(orders[kind]).map(([value, name]) => (
                <option value={value} selected={value === sort}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <button type="submit">Search</button>
        </Form>
      </header>
      {search(kind, filters, { searchParams, kept: { type: kind, query, sort }, context })}
    </>,
  );
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

interface ListQuery {
  searchParams: URLSearchParams;
  /** What the link to the next page keeps. */
  kept: Record<string, string>;
  context: PageContext;
}

/** One page of records, with a link to the next one. */
function search(kind: ItemType, filters: object, { searchParams, kept, context }: ListQuery) {
  const cursor = searchParams.get('cursor');
  const body = cursor ? { cursor, limit: perPage } : { ...filters, limit: perPage };
  try {
    const found = runSearch(readSearch(kind, body, context), context);
    const items = context.read(kind, found.numbers);
    const next = new URLSearchParams(Object.entries(kept).filter(([, value]) => value));
    if (found.cursor) next.set('cursor', found.cursor);
    return (
      <section>
        <h2>{countText(found.totalHits, kind === 'ads' ? 'ad' : 'advertiser')}</h2>
        {found.totalHits === 0 && <p class="soft">Nothing matches.</p>}
        <ul class="cards">
          {items.map((item) =>
            kind === 'ads' ? <AdCard ad={adCard(item, context)} /> : <Advertiser page={item} context={context} />,
          )}
        </ul>
        {found.cursor && (
          <p class="more">
            <Link to={`?${next}`}>Next page</Link>
          </p>
        )}
      </section>
    );
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return (
      <section>
        <p class="problem" role="alert">
          {sanitizeLine(error.message)}
        </p>
      </section>
    );
  }
}

/** An ad as a card of a list, whose picture is one of this library, or is named as missing. */
function adCard(ad: Fields, context: PageContext): CardAd {
  const { now, origin } = context;
  const { card, address } = cardOf(ad, { id: String(ad.id), at: now(), now: now() });
  const path = pathOf('ads', ad.id, context);
  if (address === undefined) return { ...card, path };
  const isOwn = address.startsWith(`${origin}/`);
  const picture = isOwn ? { src: address.slice(origin.length) } : { reason: 'it is not kept in this library' };
  return { ...card, picture, path };
}

const pathOf = (kind: ItemType, id: unknown, { pagesPath }: PageContext): string =>
  `${pagesPath}/${kind}/${encodeURIComponent(String(id))}`;

function Advertiser({ page, context }: { page: Fields; context: PageContext }) {
  return (
    <li class="card">
      <div class="facts">
        <h3 class="clamp" dir="auto">
          <Link to={pathOf('pages', page.pageId, context)}>{textOf(page.pageName, 60) ?? 'Name unknown'}</Link>
        </h3>
        <p class="soft">{advertiserFacts(page)}</p>
      </div>
    </li>
  );
}

const advertiserFacts = (page: Fields): string =>
  [
    // The number is the record's own; the library may hold fewer ads.
    isNumber(page.adsAmount) && `${countText(page.adsAmount, 'ad')} by its record`,
    isNumber(page.pageLikes) && countText(page.pageLikes, 'like'),
  ]
    .filter(Boolean)
    .join(' · ');

/** `/ads/<id>` */
export function adPage(ad: Fields, context: PageContext): string {
  const card = adCard(ad, context);
  const { views: cards, more } = viewCards(ad);
  const name = titleOf(card);
  const advertiser = sanitizeLine(card.pageName ?? 'Advertiser unknown');
  const copy = [ad.body, ad.linkDescription].flatMap((words) => textOf(words, textTokens) ?? []);
  return document(
    name,
    <>
      <header>
        <Home {...context} />
        <p dir="auto">{ad.pageId ? <Link to={pathOf('pages', ad.pageId, context)}>{advertiser}</Link> : advertiser}</p>
        <h1 dir="auto">{name}</h1>
        <Run ad={card} />
        <p class="id">{sanitizeLine(card.id)}</p>
      </header>
      <section>
        <h2>The ad</h2>
        <div class="ad">
          <Frame ad={card} />
          <div>
            {copy.map((text) => (
              <Paragraphs text={text} />
            ))}
            {copy.length === 0 && <p class="soft">The ad has no copy of its own.</p>}
          </div>
        </div>
      </section>
      {cards.length > 0 && (
        <section>
          <h2>Cards</h2>
          <ol class="parts">
            {cards.map(({ card: number, title = '', body = '', landingUrl = '' }) => (
              <li>
                <p class="soft">Card {number}</p>
                {[title, body, landingUrl].map((text) => (
                  <Paragraphs text={text} />
                ))}
              </li>
            ))}
          </ol>
          {more > 0 && <p class="soft">{countText(more, 'card')} more in the record below.</p>}
        </section>
      )}
      <RecordTable record={ad} fields={adFields} />
    </>,
  );
}

/** `/pages/<id>`, with the ads of that advertiser. */
export function advertiserPage(page: Fields, context: PageContext, searchParams: URLSearchParams): string {
  const name = textOf(page.pageName, 100) ?? String(page.pageId);
  return document(
    name,
    <>
      <header>
        <Home {...context} />
        <h1 dir="auto">{sanitizeLine(name)}</h1>
        <p class="soft">{advertiserFacts(page)}</p>
      </header>
      {search('ads', { pageId: [String(page.pageId)] }, { searchParams, kept: {}, context })}
      <RecordTable record={page} fields={pageFields} />
    </>,
  );
}

const Home = ({ pagesPath }: PageContext) => (
  <nav aria-label="Back">
    <Link to={`${pagesPath}/`}>Ad library</Link>
  </nav>
);

/** The fields of a record as people read them, and the whole record as it came. */
function RecordTable({ record, fields }: { record: Fields; fields: object }) {
  const rows = Object.keys(fields).flatMap((name) => {
    const value = record[name];
    if (value === null || value === undefined || (typeof value === 'object') !== Array.isArray(value)) return [];
    const words = Array.isArray(value) ? value.filter((one) => typeof one === 'string').join(', ') : value;
    const shown = isNumber(words) ? numberText(words) : textOf(String(words), 300);
    return shown === undefined || long.includes(name) ? [] : [{ name, shown: cellText(shown) }];
  });
  const json = JSON.stringify(record, null, 1).replace(/[^\P{C}\n]/gu, asEscapes);
  return (
    <section>
      <h2>Fields</h2>
      <div class="table">
        <table>
          <tbody>
            {rows.map(({ name, shown }) => (
              <tr>
                <th scope="row">{columnTitle(name)}</th>
                <td>
                  <bdi>{shown}</bdi>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <details>
        <summary>The record as it came</summary>
        <pre>
          <code>{json.slice(0, maxRecord)}</code>
        </pre>
        {json.length > maxRecord && <p class="soft">{numberText(json.length - maxRecord)} more characters.</p>}
      </details>
    </section>
  );
}

/** Writes invisible characters as JSON escapes. */
const asEscapes = (invisible: string): string =>
  invisible
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');

/** Fields whose long texts are shown above the table. */
const long = ['headline', 'body', 'linkDescription'];

const document = (title: string, children: Content): string =>
  renderPage(
    <Page title={title} policy={policy} styles={styles}>
      {children}
    </Page>,
  );

/** The content policy of the pages: they load nothing from other hosts, and run no script. */
export const policy =
  "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'";

const styles = `${cardStyles}${proseStyles}${tableStyles}
main { gap: 28px }
header { padding-bottom: 20px }
.tabs { display: flex; gap: 18px; font-size: 14px }
.tabs [aria-current] { font-weight: 650; text-decoration-color: var(--accent) }
form { display: flex; flex-wrap: wrap; gap: 12px; align-items: end; font-size: 13px; color: var(--soft) }
form label { display: grid; gap: 3px }
form label:first-of-type { flex: 1 1 220px }
input, select, button { font: inherit; font-size: 15px; color: var(--ink); background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 9px 12px; min-height: 44px; min-width: 0 }
button { background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 650 }
.card a { text-decoration: none } .card a:hover { text-decoration: underline }
.ad { display: grid; grid-template-columns: minmax(200px, 320px) 1fr; gap: 28px }
.ad .frame { border-radius: 12px }
.ad > :last-child { display: grid; gap: 14px; align-content: start }
.parts { display: grid; gap: 18px } .parts li { display: grid; gap: 4px }
.more a { display: inline-block; padding: 10px 18px; border: 1px solid var(--line); border-radius: 99px; text-decoration: none }
tbody th { vertical-align: top; font-weight: 500; width: 12em }
tbody tr:first-child > * { border-top: 0 } th { border-top: 1px solid var(--line) }
@media (max-width: 640px) { .ad { grid-template-columns: 1fr } }
`;

export const missingPage = (context: PageContext): string =>
  document(
    'Not in this library',
    <header>
      <Home {...context} />
      <h1>Not in this library</h1>
      <p>No ad or advertiser has this id.</p>
    </header>,
  );
