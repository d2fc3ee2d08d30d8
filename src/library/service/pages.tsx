import type { ItemType } from '../../api/schemas.ts';
import { VariantIndex } from '../../dataset/variants.ts';
import { cardOf } from '../../reports/card.ts';
import { AdCard, type CardAd, cardStyles, RunText } from '../../ui/ad-card.tsx';
import { barStyles } from '../../ui/bars.tsx';
import {
  formatConstant,
  formatCount,
  formatCountry,
  formatDay,
  formatLanguage,
  formatShortNumber,
} from '../../ui/formats.ts';
import type { Content } from '../../ui/jsx.d.ts';
import { Form, Link } from '../../ui/links.tsx';
import { demoNotice, Page, renderPage } from '../../ui/page.tsx';
import { proseStyles } from '../../ui/prose.tsx';
import { groupBy } from '../../views/lists.ts';
import { sanitizeLine } from '../../views/safe-text.ts';
import { type Fields, isNumber, readText } from '../../views/view.ts';
import { recordTypes } from '../search/ads-and-pages.ts';
import { commonValues } from '../search/notes.ts';
import { readSearch, runSearch, type SearchContext } from '../search/search-request.ts';
import { ApiError } from './request.ts';

export type PageContext = SearchContext & {
  /** Records as the API sends them. */
  read(kind: ItemType, numbers: number[]): Fields[];
  /** The address of the library's own pictures: a page loads pictures from no other host. */
  origin: string;
  pagesPath: string;
  isDemo: boolean;
};

const perPage = 60;

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

/** The filters of the page, by their keys in the API: what they are called, and how a value of them reads. */
const filterNames: Record<string, readonly [title: string, read: (value: string) => string]> = {
  query: ['Words', sanitizeLine],
  active: ['State', (value) => (value === 'true' ? 'Running' : 'Ended')],
  displayFormat: ['Format', formatConstant],
  countries: ['Country', formatCountry],
  language: ['Language', formatLanguage],
  advertiser: ['Advertiser', sanitizeLine],
  startedAtFrom: ['Started from', (day) => formatDay(day) || sanitizeLine(day)],
  startedAtTo: ['Started until', (day) => formatDay(day) || sanitizeLine(day)],
};

/** `/`: ads or advertisers. Its query is `type` (`ads` or `pages`), `sort`, `cursor`, and filters of the API. */
export function listPage(searchParams: URLSearchParams, context: PageContext): string {
  const kind: ItemType = searchParams.get('type') === 'pages' ? 'pages' : 'ads';
  const keys = ['sort', ...(kind === 'ads' ? Object.keys(filterNames) : ['query'])];
  const given = keys.flatMap((key) => [[key, searchParams.get(key)?.trim() ?? ''] as const]);
  const kept = Object.fromEntries([['type', kind], ...given.filter(([, value]) => value !== '')]);
  const { type: _, active, sort = '', ...filters } = kept;
  const { query = '' } = filters;
  const body = { ...filters, ...(active && { active: active === 'true' }), ...(sort in orders[kind] && { sort }) };
  const listed = { kept, context };
  return document(
    query || 'Ad library',
    <>
      {context.isDemo && demoNotice}
      <header>
        <nav class="tabs" aria-label="What is listed">
          {(['ads', 'pages'] as const).map((one) => (
            <Link to={linkTo({ type: one })} isCurrent={kind === one}>
              {one === 'ads' ? 'Ads' : 'Advertisers'}
            </Link>
          ))}
        </nav>
        <h1 dir="auto">{query ? `“${sanitizeLine(query)}”` : kind === 'ads' ? 'Ads' : 'Advertisers'}</h1>
        <SearchForm kind={kind} {...listed} />
        {kind === 'ads' && <Choices {...listed} />}
      </header>
      <Found kind={kind} filters={body} cursor={searchParams.get('cursor')} {...listed} />
    </>,
  );
}

interface ListProps {
  /** The query of the page, without its cursor. */
  kept: Record<string, string>;
  context: PageContext;
}

/** The same page with another query; what is empty is left out. */
const linkTo = (query: Record<string, string>): string =>
  `?${new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''))}`;

function SearchForm({ kind, kept, context }: ListProps & { kind: ItemType }) {
  const Field = ({ name, type }: { name: string; type: 'date' | 'search' | 'text' }) => (
    <label>
      {filterNames[name]?.[0]} <input type={type} name={name} maxLength={300} value={sanitizeLine(kept[name] ?? '')} />
    </label>
  );
  const Choice = ({ name, choices }: { name: string; choices: readonly (readonly [string, string])[] }) => (
    <label>
      {filterNames[name]?.[0] ?? 'Order'}{' '}
      <select name={name}>
        {choices.map(([value, text]) => (
          <option value={value} selected={value === kept[name]}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
  const Values = ({ name }: { name: string }) => (
    <Choice name={name} choices={[['', 'Any'], ...valuesOf(name, context)]} />
  );
  return (
    <Form to={`${context.pagesPath}/`}>
      {['type', ...(kind === 'ads' ? ['active', 'displayFormat'] : [])].map((name) => (
        <input type="hidden" name={name} value={kept[name] ?? ''} />
      ))}
      <Field name="query" type="search" />
      <Choice name="sort" choices={Object.entries(orders[kind])} />
      {kind === 'ads' && (
        <details>
          <summary>Advertiser, country, language, dates</summary>
          <div>
            <Field name="advertiser" type="text" />
            <Values name="countries" />
            <Values name="language" />
            <Field name="startedAtFrom" type="date" />
            <Field name="startedAtTo" type="date" />
          </div>
        </details>
      )}
      <button type="submit">Search</button>
    </Form>
  );
}

const valuesOf = (key: string, context: PageContext): (readonly [value: string, text: string])[] =>
  commonValues(key, recordTypes.ads, context.database)
    .map((value) => [value, filterNames[key]?.[1](value) ?? value] as const)
    .sort(([, left], [, right]) => left.localeCompare(right, 'en'));

/** States and formats as links, and the other filters that are set, each with a link that takes it back. */
function Choices({ kept, context }: ListProps) {
  const rows = {
    active: [['true', 'Running'] as const, ['false', 'Ended'] as const],
    displayFormat: valuesOf('displayFormat', context),
  };
  const set = Object.keys(kept).filter((key) => key in filterNames && !(key in rows) && key !== 'query');
  return (
    <>
      {Object.entries(rows).map(([key, values]) => (
        <nav class="chips" aria-label={filterNames[key]?.[0]}>
          <span>{filterNames[key]?.[0]}</span>
          {[['', 'All'] as const, ...values].map(([value, text]) => (
            <Link to={linkTo({ ...kept, [key]: value })} isCurrent={value === (kept[key] ?? '')}>
              {text}
            </Link>
          ))}
        </nav>
      ))}
      {set.length > 0 && (
        <nav class="chips" aria-label="Filters to take back">
          {set.map((key) => (
            <Link to={linkTo({ ...kept, [key]: '' })} isCurrent>
              {filterNames[key]?.[0]}: <bdi>{filterNames[key]?.[1](kept[key] ?? '')}</bdi> ✕
            </Link>
          ))}
        </nav>
      )}
    </>
  );
}

interface FoundProps extends ListProps {
  kind: ItemType;
  filters: object;
  cursor: string | null;
}

/** One page of a search, with a link to the next one. */
export function Found({ kind, filters, cursor, kept, context }: FoundProps) {
  try {
    const body = { ...(cursor ? { cursor } : filters), limit: perPage };
    const found = runSearch(readSearch(kind, body, context), context);
    const items = context.read(kind, found.numbers);
    return (
      <section>
        <h2>{formatCount(found.totalHits, kind === 'ads' ? 'ad' : 'advertiser')}</h2>
        {found.totalHits === 0 && <p class="soft">Nothing matches.</p>}
        {kind === 'ads' ? <Messages ads={items.map((ad) => shownAd(ad, context))} /> : null}
        {kind === 'pages' && <ul class="cards">{items.map((page) => advertiserCard(page, context))}</ul>}
        {found.cursor && (
          <p class="more">
            <Link to={linkTo({ ...kept, cursor: found.cursor })}>Next page</Link>
          </p>
        )}
      </section>
    );
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return (
      <p class="problem" role="alert">
        {sanitizeLine(error.message)}
      </p>
    );
  }
}

type ShownAd = ReturnType<typeof shownAd>;

/** The paths of the pictures that a library serves. */
const picturePath = /^\/media\/(?:demo|kept)\/[\w.-]+$/;

/** Returns an ad as pages show it: with a picture that this library serves, or with the reason why there is none. */
export function shownAd(ad: Fields, context: PageContext) {
  const { now, origin } = context;
  const { card, address, copy } = cardOf(ad, { id: String(ad.id), at: now(), now: now() });
  const path = address?.startsWith(`${origin}/`) ? address.slice(origin.length) : '';
  const picture = picturePath.test(path) ? { src: path } : { reason: 'it is not kept in this library' };
  const shown: CardAd = { ...card, path: pathOf('ads', ad.id, context), ...(address !== undefined && { picture }) };
  return { card: shown, pageId: ad.pageId, copy, format: readText(ad.displayFormat, 12) };
}

export const pathOf = (kind: ItemType, id: unknown, { pagesPath }: PageContext): string =>
  `${pagesPath}/${kind}/${encodeURIComponent(String(id))}`;

/** The ads of each message: ads of one advertiser whose words are nearly the same. In the order of their first ads. */
export function messagesIn(ads: readonly ShownAd[]): ShownAd[][] {
  const indexes = new Map<unknown, VariantIndex>();
  const messageOf = ({ card: { id }, pageId, copy }: ShownAd) => {
    const index = indexes.get(pageId) ?? new VariantIndex();
    indexes.set(pageId, index);
    return index.add(id, copy) ?? id;
  };
  return [...groupBy(ads, messageOf).values()];
}

/** A card for each message, which names the other ads that have it. */
const Messages = ({ ads }: { ads: readonly ShownAd[] }) => (
  <ul class="cards">
    {messagesIn(ads).map(([first, ...others]) => {
      if (first === undefined) return null;
      if (others.length === 0) return <AdCard ad={first.card} />;
      return (
        <AdCard ad={first.card} corner={<b class="times">×{others.length + 1}</b>}>
          <details>
            <summary>{formatCount(others.length, 'more ad')} with this message</summary>
            <ul>
              {others.map(({ card }) => (
                <li>
                  <Link to={card.path ?? ''}>
                    <RunText ad={card} />
                  </Link>
                </li>
              ))}
            </ul>
          </details>
        </AdCard>
      );
    })}
  </ul>
);

const advertiserCard = (page: Fields, context: PageContext) => (
  <li class="card">
    <div class="facts">
      <h3 class="clamp" dir="auto">
        <Link to={pathOf('pages', page.pageId, context)}>{readText(page.pageName, 60) ?? 'Name unknown'}</Link>
      </h3>
      <p class="about">{advertiserFacts(page)}</p>
    </div>
  </li>
);

/** The number of ads is the record's own; the library may hold fewer. */
export const advertiserFacts = ({ adsAmount, pageLikes }: Fields): string =>
  [
    isNumber(adsAmount) && `${formatCount(adsAmount, 'ad')} on record`,
    isNumber(pageLikes) && `${formatShortNumber(pageLikes)} ${pageLikes === 1 ? 'like' : 'likes'}`,
  ]
    .filter(Boolean)
    .join(' · ');

export const Home = ({ pagesPath }: PageContext) => (
  <nav class="tabs" aria-label="Back">
    <Link to={`${pagesPath}/`}>Ad library</Link>
  </nav>
);

export const document = (title: string, children: Content): string =>
  renderPage(
    <Page title={title} contentSecurityPolicy={policy} styles={styles}>
      {children}
    </Page>,
  );

/** The content policy of the pages: they load nothing from other hosts, and run no script. */
export const policy =
  "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'";

const styles = `${cardStyles}${proseStyles}${barStyles}
main { gap: 28px }
header { padding-bottom: 20px }
.tabs { display: flex; gap: 18px; font-size: 14px }
.tabs [aria-current] { font-weight: 650; text-decoration-color: var(--accent) }
form, form details div { display: flex; flex-wrap: wrap; gap: 12px; align-items: end; font-size: 13px; color: var(--soft) }
form details { order: 9; flex-basis: 100% } form details div { padding-top: 4px }
label { display: grid; gap: 3px; flex: 0 1 auto; min-width: 0 } label:has([type=search]) { flex: 1 1 220px }
input, select, button, textarea { font: inherit; font-size: 15px; color: var(--ink); background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 9px 12px; min-height: 44px; min-width: 0; max-width: 100% }
button { background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 650 }
.chips { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; font-size: 13px } .chips span { color: var(--soft); min-width: 4em }
.chips a, .more a { padding: 5px 12px; border: 1px solid var(--line); border-radius: 99px; text-decoration: none; overflow-wrap: anywhere }
.chips [aria-current] { background: var(--accent-soft); border-color: var(--accent) }
.card a, .shares a { text-decoration: none } :is(.card, .shares) a:hover { text-decoration: underline }
.card details { border-top: 1px solid var(--line); padding: 2px 12px 6px; font-size: 12.5px }
.card details li { padding: 3px 0 }
.times { font-size: 12px; color: var(--accent) }
.ad { display: grid; grid-template-columns: minmax(200px, 320px) minmax(0, 1fr); gap: 28px; align-items: start }
.ad .frame { border-radius: 12px } .ad .poster { display: none } .ad .frame:has(.reason) { aspect-ratio: auto }
.ad > :last-child, .parts, .parts li { display: grid; gap: 14px; align-content: start } .parts li { gap: 4px }
.words { white-space: pre-line; unicode-bidi: plaintext; overflow-wrap: anywhere }
.address { display: grid } textarea { resize: none; field-sizing: content; font: 12.5px / 1.4 ui-monospace, Menlo, Consolas, monospace }
.fact-list { max-width: 640px; font-size: 14px } .fact-list dd { text-align: start }
@media (max-width: 640px) { .ad { grid-template-columns: minmax(0, 1fr) } label { flex: 1 1 40% } }
@media print { .tabs, .more, .card details, .chips:has(span + [aria-current]), .chips a:not([aria-current]) { display: none } section.ad { display: grid } }
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
