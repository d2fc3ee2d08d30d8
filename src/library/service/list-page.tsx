import type { ItemType } from '../../api/schemas.ts';
import { VariantIndex } from '../../dataset/variants.ts';
import { buildReportCard } from '../../reports/card.ts';
import { AdCard, type AdCardContent, cardStyles, RunText } from '../../ui/ad-card.tsx';
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
import { groupBy } from '../../views/group-by.ts';
import { sanitizeLine } from '../../views/safe-text.ts';
import { isFiniteNumber, readText, type UntypedFields } from '../../views/view.ts';
import { listCommonValues } from '../search/notes.ts';
import { parseSearchRequest, runSearch, type SearchContext } from '../search/search-request.ts';
import { recordTypes } from '../search/searchable-records.ts';
import { ApiError } from './request.ts';

/** The dependencies of the functions that render the HTML pages of a library. */
export type HtmlPageContext = SearchContext & {
  /** Reads the records with these row numbers, in the format of API responses. */
  readItems(itemType: ItemType, rowNumbers: number[]): UntypedFields[];
  /** The origin of the request, e.g. `http://localhost:4000`. The HTML pages only show pictures from this origin. */
  origin: string;
  /**
   * The path under which the library serves its HTML pages. The path contains a random word, so that nobody can guess
   * it.
   */
  htmlPagesPath: string;
  isDemo: boolean;
};

const itemsPerPage = 60;

/**
 * The sort orders that users can choose in each list, with their labels. The keys are values of the `sort` filter, and
 * the first key is the default.
 */
const sortOrders = {
  ads: {
    startedAt: 'Newest first',
    daysRunning: 'Longest running',
    duplicates: 'Most copies',
    lastSeenAt: 'Seen last',
  },
  pages: { adsAmount: 'Most ads', pageLikes: 'Most likes', audienceReach: 'Largest reach' },
} satisfies Record<ItemType, Record<string, string>>;

/** The filters of the list page by their key in the API, each with a title and a function that formats its value. */
const filtersOfListPage: Record<string, readonly [title: string, formatValue: (value: string) => string]> = {
  query: ['Words', sanitizeLine],
  active: ['State', (value) => (value === 'true' ? 'Running' : 'Ended')],
  displayFormat: ['Format', formatConstant],
  countries: ['Country', formatCountry],
  language: ['Language', formatLanguage],
  advertiser: ['Advertiser', sanitizeLine],
  startedAtFrom: ['Started from', (day) => formatDay(day) || sanitizeLine(day)],
  startedAtTo: ['Started until', (day) => formatDay(day) || sanitizeLine(day)],
};

/**
 * Renders the list of ads or advertisers. If a filter is invalid, the page explains the problem.
 *
 * @param searchParams the query parameters: `type` (`ads` or `pages`), `sort`, `cursor`, and filters
 */
export function renderListPage(searchParams: URLSearchParams, context: HtmlPageContext): string {
  const itemType: ItemType = searchParams.get('type') === 'pages' ? 'pages' : 'ads';
  const queryKeys = ['sort', ...(itemType === 'ads' ? Object.keys(filtersOfListPage) : ['query'])];
  const paramEntries = queryKeys.map((key) => [key, searchParams.get(key)?.trim() ?? ''] as const);
  const queryParams = Object.fromEntries([['type', itemType], ...paramEntries.filter(([, value]) => value !== '')]);
  const { type: _, active, sort = '', ...textFilters } = queryParams;
  const { query: searchWords = '' } = textFilters;
  const filters = {
    ...textFilters,
    ...(active && { active: active === 'true' }),
    ...(Object.hasOwn(sortOrders[itemType], sort) && { sort }),
  };
  const listProps = { queryParams, context };
  return renderDocument(
    searchWords || 'Ad library',
    <>
      {context.isDemo && demoNotice}
      <header>
        <nav class="tabs" aria-label="What is listed">
          {(['ads', 'pages'] as const).map((type) => (
            <Link to={buildRelativeLink({ type })} isCurrent={itemType === type}>
              {type === 'ads' ? 'Ads' : 'Advertisers'}
            </Link>
          ))}
        </nav>
        <h1 dir="auto">
          {searchWords ? `“${sanitizeLine(searchWords)}”` : itemType === 'ads' ? 'Ads' : 'Advertisers'}
        </h1>
        <SearchForm itemType={itemType} {...listProps} />
        {itemType === 'ads' && <FilterLinks {...listProps} />}
      </header>
      <SearchResults itemType={itemType} filters={filters} cursor={searchParams.get('cursor')} {...listProps} />
    </>,
  );
}

interface ListProps {
  /**
   * The query parameters of the current page without the cursor, e.g. its filters. Links to other result pages repeat
   * them.
   */
  queryParams: Record<string, string>;
  context: HtmlPageContext;
}

/** Builds a relative link to the same page with different query parameters. Omits empty parameters. */
const buildRelativeLink = (queryParams: Record<string, string>): string =>
  `?${new URLSearchParams(Object.entries(queryParams).filter(([, value]) => value !== ''))}`;

/**
 * A form for the search words, the sort order and less common filters. When the user submits the form, the page keeps
 * the state and format that the user selected in `FilterLinks`.
 */
function SearchForm({ itemType, queryParams, context }: ListProps & { itemType: ItemType }) {
  const InputField = ({ name, type }: { name: string; type: 'date' | 'search' | 'text' }) => (
    <label>
      {filtersOfListPage[name]?.[0]}{' '}
      <input type={type} name={name} maxLength={300} value={sanitizeLine(queryParams[name] ?? '')} />
    </label>
  );
  const SelectField = ({ name, choices }: { name: string; choices: readonly (readonly [string, string])[] }) => (
    <label>
      {filtersOfListPage[name]?.[0] ?? 'Order'}{' '}
      <select name={name}>
        {choices.map(([value, text]) => (
          <option value={value} selected={value === queryParams[name]}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
  const FilterSelect = ({ name }: { name: string }) => (
    <SelectField name={name} choices={[['', 'Any'], ...listFilterChoices(name, context)]} />
  );
  return (
    <Form to={`${context.htmlPagesPath}/`}>
      {['type', ...(itemType === 'ads' ? ['active', 'displayFormat'] : [])].map((name) => (
        <input type="hidden" name={name} value={queryParams[name] ?? ''} />
      ))}
      <InputField name="query" type="search" />
      <SelectField name="sort" choices={Object.entries(sortOrders[itemType])} />
      {itemType === 'ads' && (
        <details>
          <summary>Advertiser, country, language, dates</summary>
          <div>
            <InputField name="advertiser" type="text" />
            <FilterSelect name="countries" />
            <FilterSelect name="language" />
            <InputField name="startedAtFrom" type="date" />
            <InputField name="startedAtTo" type="date" />
          </div>
        </details>
      )}
      <button type="submit">Search</button>
    </Form>
  );
}

/** Returns the most common values of a filter as choices for users, with labels and sorted by label. */
const listFilterChoices = (filterKey: string, context: HtmlPageContext): (readonly [value: string, text: string])[] =>
  listCommonValues(filterKey, recordTypes.ads, context.database)
    .map((value) => [value, filtersOfListPage[filterKey]?.[1](value) ?? value] as const)
    .sort(([, leftText], [, rightText]) => leftText.localeCompare(rightText, 'en'));

/** Links that filter the ads by state or format, and links that remove the other active filters. */
function FilterLinks({ queryParams, context }: ListProps) {
  const choicesByFilter = {
    active: [['true', 'Running'] as const, ['false', 'Ended'] as const],
    displayFormat: listFilterChoices('displayFormat', context),
  };
  const otherKeys = Object.keys(queryParams).filter(
    (key) => key in filtersOfListPage && !(key in choicesByFilter) && key !== 'query',
  );
  return (
    <>
      {Object.entries(choicesByFilter).map(([key, values]) => (
        <nav class="chips" aria-label={filtersOfListPage[key]?.[0]}>
          <span>{filtersOfListPage[key]?.[0]}</span>
          {[['', 'All'] as const, ...values].map(([value, text]) => (
            <Link
              to={buildRelativeLink({ ...queryParams, [key]: value })}
              isCurrent={value === (queryParams[key] ?? '')}
            >
              {text}
            </Link>
          ))}
        </nav>
      ))}
      {otherKeys.length > 0 && (
        <nav class="chips" aria-label="Filters to remove">
          {otherKeys.map((key) => (
            <Link to={buildRelativeLink({ ...queryParams, [key]: '' })} isCurrent>
              {filtersOfListPage[key]?.[0]}: <bdi>{filtersOfListPage[key]?.[1](queryParams[key] ?? '')}</bdi> ✕
            </Link>
          ))}
        </nav>
      )}
    </>
  );
}

interface SearchResultsProps extends ListProps {
  itemType: ItemType;
  filters: object;
  cursor: string | null;
}

/**
 * One page of search results, with a link to the next page. If the search is invalid, shows an error message instead.
 */
export function SearchResults({ itemType, filters, cursor, queryParams, context }: SearchResultsProps) {
  try {
    const requestBody = { ...(cursor ? { cursor } : filters), limit: itemsPerPage };
    const searchResult = runSearch(parseSearchRequest(itemType, requestBody, context), context);
    const items = context.readItems(itemType, searchResult.rowNumbers);
    return (
      <section>
        <h2>{formatCount(searchResult.totalHits, itemType === 'ads' ? 'ad' : 'advertiser')}</h2>
        {searchResult.totalHits === 0 && <p class="soft">Nothing matches.</p>}
        {itemType === 'ads' ? <VariantCards ads={items.map((ad) => toDisplayedAd(ad, context))} /> : null}
        {itemType === 'pages' && <ul class="cards">{items.map((page) => renderAdvertiserCard(page, context))}</ul>}
        {searchResult.cursor && (
          <p class="more">
            <Link to={buildRelativeLink({ ...queryParams, cursor: searchResult.cursor })}>Next page</Link>
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

type DisplayedAd = ReturnType<typeof toDisplayedAd>;

/** Matches the paths of pictures on this server, e.g. `/media/kept/1f3a.jpg`. */
const picturePathPattern = /^\/media\/(?:demo|kept)\/[\w.-]+$/;

/**
 * Converts an ad to the form in which HTML pages show it. The result contains the path of a picture on this server, or
 * the reason why the page cannot show the picture.
 */
export function toDisplayedAd(ad: UntypedFields, context: HtmlPageContext) {
  const { now, origin } = context;
  const { card, pictureUrl, adText } = buildReportCard(ad, { id: String(ad.id), at: now(), now: now() });
  const path = pictureUrl?.startsWith(`${origin}/`) ? pictureUrl.slice(origin.length) : '';
  const picture = picturePathPattern.test(path) ? { src: path } : { reason: 'it is not kept in this library' };
  const adCard: AdCardContent = {
    ...card,
    path: buildRecordPath('ads', ad.id, context),
    ...(pictureUrl !== undefined && { picture }),
  };
  return { card: adCard, pageId: ad.pageId, adText, format: readText(ad.displayFormat, 12) };
}

/** Returns the path of the HTML page for an ad or an advertiser. */
export const buildRecordPath = (itemType: ItemType, id: unknown, { htmlPagesPath }: HtmlPageContext): string =>
  `${htmlPagesPath}/${itemType}/${encodeURIComponent(String(id))}`;

/**
 * Groups the ads of an advertiser whose texts are nearly the same. Sorts the groups by their first ad. The HTML pages
 * call such a group a "message".
 */
export function groupByVariant(ads: readonly DisplayedAd[]): DisplayedAd[][] {
  const variantIndexByPage = new Map<unknown, VariantIndex>();
  const findVariant = ({ card: { id }, pageId, adText }: DisplayedAd) => {
    const variantIndex = variantIndexByPage.get(pageId) ?? new VariantIndex();
    variantIndexByPage.set(pageId, variantIndex);
    return variantIndex.addAd(id, adText) ?? id;
  };
  return [...groupBy(ads, findVariant).values()];
}

/**
 * Shows a card for each group of ads with nearly the same text. The card shows the first ad, and links to the other
 * ads.
 */
const VariantCards = ({ ads }: { ads: readonly DisplayedAd[] }) => (
  <ul class="cards">
    {groupByVariant(ads).map(([firstAd, ...otherAds]) => {
      if (firstAd === undefined) return null;
      if (otherAds.length === 0) return <AdCard ad={firstAd.card} />;
      return (
        <AdCard ad={firstAd.card} cornerContent={<b class="times">×{otherAds.length + 1}</b>}>
          <details>
            <summary>{formatCount(otherAds.length, 'more ad')} with this message</summary>
            <ul>
              {otherAds.map(({ card }) => (
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

const renderAdvertiserCard = (page: UntypedFields, context: HtmlPageContext) => (
  <li class="card">
    <div class="facts">
      <h3 class="clamp" dir="auto">
        <Link to={buildRecordPath('pages', page.pageId, context)}>{readText(page.pageName, 60) ?? 'Name unknown'}</Link>
      </h3>
      <p class="about">{formatAdvertiserFacts(page)}</p>
    </div>
  </li>
);

/**
 * Formats the numbers of ads and likes of an advertiser, e.g. `120 ads on record · 4K likes`. The number of ads comes
 * from the advertiser's record. This library may contain fewer ads of the advertiser.
 */
export const formatAdvertiserFacts = ({ adsAmount, pageLikes }: UntypedFields): string =>
  [
    isFiniteNumber(adsAmount) && `${formatCount(adsAmount, 'ad')} on record`,
    isFiniteNumber(pageLikes) && `${formatShortNumber(pageLikes)} ${pageLikes === 1 ? 'like' : 'likes'}`,
  ]
    .filter(Boolean)
    .join(' · ');

/** A link back to the list of ads, for the page of an ad or advertiser. */
export const HomeLink = ({ htmlPagesPath }: HtmlPageContext) => (
  <nav class="tabs" aria-label="Back">
    <Link to={`${htmlPagesPath}/`}>Ad library</Link>
  </nav>
);

/** Renders a complete HTML page with the library's styles and content security policy. */
export const renderDocument = (title: string, children: Content): string =>
  renderPage(
    <Page title={title} contentSecurityPolicy={contentSecurityPolicy} styles={styles}>
      {children}
    </Page>,
  );

/** The content security policy of the HTML pages. The pages load nothing from other hosts and run no scripts. */
export const contentSecurityPolicy =
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

/** Renders the page that is shown for an unknown ad or advertiser. */
export const renderMissingPage = (context: HtmlPageContext): string =>
  renderDocument(
    'Not in this library',
    <header>
      <HomeLink {...context} />
      <h1>Not in this library</h1>
      <p>No ad or advertiser has this id.</p>
    </header>,
  );
