import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { PictureFrame, pickTitle, RunText } from '../../ui/ad-card.tsx';
import { ChartFrame, CommonValuesChart, FactList, LaunchesChart, ShareBars } from '../../ui/bars.tsx';
import {
  formatConstant,
  formatCount,
  formatCountry,
  formatDay,
  formatLanguage,
  formatNumber,
} from '../../ui/formats.ts';
import { Link } from '../../ui/links.tsx';
import { buildCardViews } from '../../views/ad-media.ts';
import { formatColumnTitle } from '../../views/column-title.ts';
import { type ApiField, adFields, pageFields } from '../../views/fields.ts';
import { sanitize, sanitizeLine } from '../../views/safe-text.ts';
import { cleanUrl } from '../../views/urls.ts';
import { isFiniteNumber, readText, type UntypedFields } from '../../views/view.ts';
import { findResultPage } from '../search/search.ts';
import { recordTypes } from '../search/searchable-records.ts';
import {
  buildRecordPath,
  formatAdvertiserFacts,
  groupByVariant,
  HomeLink,
  type HtmlPageContext,
  renderDocument,
  SearchResults,
  toDisplayedAd,
} from './list-page.tsx';

/** The maximum length of the raw JSON on the page of an ad or advertiser, in characters. */
const maxJsonLength = 200_000;
const maxTextTokens = 20_000;
const maxUrlTokens = 500;

/** Renders the HTML page `/ads/<id>`, which shows an ad with all its fields. */
export function renderAdPage(ad: UntypedFields, context: HtmlPageContext): string {
  const { card } = toDisplayedAd(ad, context);
  const { cardViews: cards, omittedCount } = buildCardViews(ad);
  const adTitle = pickTitle(card);
  const advertiserName = sanitizeLine(card.pageName ?? 'Advertiser unknown');
  const adTexts = [ad.body, ad.linkDescription].flatMap((text) => readText(text, maxTextTokens) ?? []);
  const landingUrl = cleanUrl(ad.offerLink, maxUrlTokens);
  return renderDocument(
    adTitle,
    <>
      <header>
        <HomeLink {...context} />
        <p dir="auto">
          {ad.pageId ? <Link to={buildRecordPath('pages', ad.pageId, context)}>{advertiserName}</Link> : advertiserName}
        </p>
        <h1 dir="auto">{adTitle}</h1>
        <RunText ad={card} />
      </header>
      <section class="ad">
        <PictureFrame ad={card} />
        <div>
          {adTexts.map((text) => (
            <Text text={text} />
          ))}
          {adTexts.length === 0 && <p class="soft">The ad has no further text.</p>}
          {landingUrl && (
            <label class="address">
              Landing page (to copy) <textarea name="address" readOnly value={landingUrl} />
            </label>
          )}
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
                  <Text text={text} />
                ))}
              </li>
            ))}
          </ol>
          {omittedCount > 0 && <p class="soft">{formatCount(omittedCount, 'card')} more in the record below.</p>}
        </section>
      )}
      <RecordFacts record={ad} fields={displayableAdFields} id={ad.id} />
    </>,
  );
}

const Text = ({ text }: { text: string }) =>
  text && (
    <p class="words" dir="auto">
      {sanitize(text)}
    </p>
  );

/**
 * The maximum number of ads in the charts of an advertiser. If the advertiser has more ads, the charts show the newest
 * ads.
 */
const maxChartedAds = 1000;
/** The number of ads to process before the server handles other requests. */
const adsPerEventLoopTurn = 50;

/**
 * Renders the HTML page `/pages/<id>` of an advertiser. The page contains a summary of the ads, the list of ads, and
 * the advertiser's record.
 */
export async function renderAdvertiserPage(
  page: UntypedFields,
  context: HtmlPageContext,
  searchParams: URLSearchParams,
) {
  const advertiserName = readText(page.pageName, 100) ?? String(page.pageId);
  const filters = { pageId: [String(page.pageId)] };
  const cursor = searchParams.get('cursor');
  const search = { recordType: recordTypes.ads, filters, searchTimeMs: context.now() };
  const { rowNumbers, hasMore } = findResultPage(context.database, search, cursor ? 0 : maxChartedAds);
  const ads = [];
  for (let start = 0; start < rowNumbers.length; start += adsPerEventLoopTurn, await yieldToEventLoop())
    for (const ad of context.readItems('ads', rowNumbers.slice(start, start + adsPerEventLoopTurn)))
      ads.push(toDisplayedAd(ad, context));
  return renderDocument(
    advertiserName,
    <>
      <header>
        <HomeLink {...context} />
        <h1 dir="auto">{sanitizeLine(advertiserName)}</h1>
        <p class="soft">{formatAdvertiserFacts(page)}</p>
      </header>
      {ads.length > 0 && <AdvertiserSummary ads={ads} hasMore={hasMore} now={context.now()} />}
      <SearchResults itemType="ads" filters={filters} cursor={cursor} queryParams={{}} context={context} />
      <RecordFacts record={page} fields={pageFields} id={page.pageId} />
    </>,
  );
}

/** The maximum number of rows in each chart of an advertiser's summary. */
const maxChartRows = 6;

/**
 * Charts that summarize the ads of an advertiser: launches over time, formats, texts that several ads share, and the
 * ads that ran longest.
 */
function AdvertiserSummary({
  ads,
  hasMore,
  now,
}: {
  ads: ReturnType<typeof toDisplayedAd>[];
  hasMore: boolean;
  now: number;
}) {
  const cards = ads.map(({ card }) => card);
  const runningCount = cards.filter(({ active }) => active).length;
  const variants = groupByVariant(ads).sort((left, right) => right.length - left.length);
  const pastRuns = cards.filter(({ daysRunning = 0 }) => daysRunning > 0);
  pastRuns.sort((left, right) => (right.daysRunning ?? 0) - (left.daysRunning ?? 0));
  const repeatedVariants = variants.filter(({ length }) => length > 1);
  const facts = [
    hasMore ? `The newest ${formatNumber(ads.length)} ads` : formatCount(ads.length, 'ad'),
    runningCount > 0 && `${formatNumber(runningCount)} running`,
    formatCount(variants.length, 'message'),
  ];
  const toChartRow = (value: number, card = cards[0]) => ({
    name: card ? pickTitle(card) : '',
    path: card?.path,
    value,
  });
  return (
    <section>
      <h2>At a glance</h2>
      <p class="soft">{facts.filter(Boolean).join(' · ')}</p>
      <div class="charts">
        <LaunchesChart ads={cards} readAt={new Date(now).toISOString()} />
        <CommonValuesChart title="Formats" values={ads.map(({ format }) => format)} />
        {repeatedVariants.length > 0 && (
          <ChartFrame title="Messages in most ads">
            <ShareBars
              total={ads.length}
              shares={repeatedVariants
                .slice(0, maxChartRows)
                .map((variant) => toChartRow(variant.length, variant[0]?.card))}
            />
          </ChartFrame>
        )}
        {pastRuns.length > 0 && (
          <ChartFrame title="Longest runs" note="days">
            <ShareBars
              total={pastRuns[0]?.daysRunning ?? 1}
              shares={pastRuns.slice(0, maxChartRows).map((card) => toChartRow(card.daysRunning ?? 0, card))}
            />
          </ChartFrame>
        )}
      </div>
    </section>
  );
}

/**
 * The fields that the page of an ad can show. `languages` and `bylines` exist only in imported ads and are not part of
 * the API.
 */
const displayableAdFields: Record<string, ApiField> = {
  ...adFields,
  languages: { type: 'textList', description: 'Languages of the ad.' },
  bylines: { type: 'text', description: 'Who paid for the ad.' },
};

/**
 * The fields that the table of facts omits, because the page shows them elsewhere or because users do not need them.
 */
const omittedFields = [
  'headline',
  'body',
  'linkDescription',
  'offerLink',
  'pageName',
  'appUrl',
  'sourcePageExternalId',
];
/** Titles for fields whose names would be unclear to users. */
const fieldTitles: Record<string, string> = {
  startedAt: 'Started',
  lastSeenAt: 'Last seen',
  endDate: 'End date (past or planned)',
  duplicates: 'Copies',
  ctaType: 'Button',
  displayFormat: 'Format',
  publisherPlatform: 'Platforms',
  productTitle: 'Product',
  productCreatedAt: 'Product listed',
  isStorePlatformBestSeller: 'Best seller of its shop',
  bylines: 'Paid for by',
  adsAmount: 'Ads',
  adsTotalDuplicates: 'Copies of all ads',
  averageDuplicates: 'Copies per ad',
  pageCreatedAt: 'Page created',
  createdAt: 'First seen',
  detailsEstimated: 'Numbers are estimates',
  technologySlugs: 'Shop built with',
};
/**
 * Functions that format the values of some fields for users. For example, a country code becomes the name of the
 * country.
 */
const valueFormatters: Record<string, (value: string) => string> = {
  countries: formatCountry,
  languages: formatLanguage,
  publisherPlatform: formatConstant,
  ctaType: formatConstant,
  displayFormat: formatConstant,
};

/**
 * Creates a row for the table of facts: the title of a field, and its value as text. Returns undefined if the field has
 * no value to show.
 */
function createFact(
  fieldName: string,
  { type, phrase }: ApiField,
  record: UntypedFields,
): [string, string] | undefined {
  const value = record[fieldName];
  const title = fieldTitles[fieldName] ?? formatColumnTitle(phrase ?? fieldName).replace(/ min$/, '');
  if (fieldName.endsWith('Max')) return undefined;
  if (fieldName.endsWith('Min')) {
    const bounds = [value, record[fieldName.replace(/Min$/, 'Max')]].filter(isFiniteNumber);
    return bounds.length > 0 ? [title, [...new Set(bounds)].map(formatNumber).join(' to ')] : undefined;
  }
  if (isFiniteNumber(value)) return [title, formatNumber(value)];
  if (type === 'boolean') return typeof value === 'boolean' ? [title, value ? 'Yes' : 'No'] : undefined;
  const texts = [value].flat().filter((text) => typeof text === 'string' && text.trim() !== '') as string[];
  const formatValue = type === 'date' ? (day: string) => formatDay(day) : (valueFormatters[fieldName] ?? sanitizeLine);
  const text = readText(texts.map(formatValue).join(', '), 300);
  return text ? [title, text] : undefined;
}

/** Shows an ad or advertiser page as a table of facts, followed by its id and its complete JSON. */
function RecordFacts({ record, fields, id }: { record: UntypedFields; fields: Record<string, ApiField>; id: unknown }) {
  const fieldEntries = Object.entries(fields).filter(([name]) => !omittedFields.includes(name));
  const facts = fieldEntries
    .map(([name, field]) => createFact(name, field, record))
    .filter((fact) => fact !== undefined);
  const json = JSON.stringify(record, null, 1).replace(/[^\P{C}\n]/gu, escapeInvisibleCharacter);
  return (
    <section>
      <h2>Facts</h2>
      <FactList facts={facts} />
      <p class="id">{sanitizeLine(String(id))}</p>
      <details>
        <summary>The record as JSON</summary>
        <pre>
          <code>{json.slice(0, maxJsonLength)}</code>
        </pre>
        {json.length > maxJsonLength && (
          <p class="soft">{formatNumber(json.length - maxJsonLength)} more characters.</p>
        )}
      </details>
    </section>
  );
}

/** Converts an invisible character to JSON escapes such as `\u200b`, so that users can see it. */
const escapeInvisibleCharacter = (invisibleCharacter: string): string =>
  invisibleCharacter
    .split('')
    .map((codeUnit) => `\\u${codeUnit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
