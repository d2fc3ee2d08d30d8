import { setImmediate as nextTurn } from 'node:timers/promises';
import { PictureFrame, pickTitle, RunText } from '../../ui/ad-card.tsx';
import { CommonValuesChart, FactList, Figure, LaunchesChart, ShareBars } from '../../ui/bars.tsx';
import {
  formatConstant,
  formatCount,
  formatCountry,
  formatDay,
  formatLanguage,
  formatNumber,
} from '../../ui/formats.ts';
import { Link } from '../../ui/links.tsx';
import { viewCards } from '../../views/ad-media.ts';
import { cleanUrl } from '../../views/addresses.ts';
import { formatColumnTitle } from '../../views/column-title.ts';
import { adFields, pageFields, type SentField } from '../../views/fields.ts';
import { sanitize, sanitizeLine } from '../../views/safe-text.ts';
import { type Fields, isNumber, readText } from '../../views/view.ts';
import { recordTypes } from '../search/ads-and-pages.ts';
import { findPage } from '../search/search.ts';
import { advertiserFacts, document, Found, Home, messagesIn, type PageContext, pathOf, shownAd } from './pages.tsx';

/** Characters of a record as it came. */
const maxRecord = 200_000;
const textTokens = 20_000;
const addressTokens = 500;

/** `/ads/<id>` */
export function adPage(ad: Fields, context: PageContext): string {
  const { card } = shownAd(ad, context);
  const { views: cards, more } = viewCards(ad);
  const name = pickTitle(card);
  const advertiser = sanitizeLine(card.pageName ?? 'Advertiser unknown');
  const copy = [ad.body, ad.linkDescription].flatMap((words) => readText(words, textTokens) ?? []);
  const landing = cleanUrl(ad.offerLink, addressTokens);
  return document(
    name,
    <>
      <header>
        <Home {...context} />
        <p dir="auto">{ad.pageId ? <Link to={pathOf('pages', ad.pageId, context)}>{advertiser}</Link> : advertiser}</p>
        <h1 dir="auto">{name}</h1>
        <RunText ad={card} />
      </header>
      <section class="ad">
        <PictureFrame ad={card} />
        <div>
          {copy.map((text) => (
            <Words text={text} />
          ))}
          {copy.length === 0 && <p class="soft">The ad has no further words of its own.</p>}
          {landing && (
            <label class="address">
              Where it leads, to copy <textarea name="address" readOnly value={landing} />
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
                  <Words text={text} />
                ))}
              </li>
            ))}
          </ol>
          {more > 0 && <p class="soft">{formatCount(more, 'card')} more in the record below.</p>}
        </section>
      )}
      <RecordFacts record={ad} fields={importedFields} id={ad.id} />
    </>,
  );
}

const Words = ({ text }: { text: string }) =>
  text && (
    <p class="words" dir="auto">
      {sanitize(text)}
    </p>
  );

/** How many ads an advertiser's charts count, the newest ones. */
const maxCounted = 1000;
const readAtOnce = 50;

/** `/pages/<id>`: what the advertiser's ads have in common, and then the ads. */
export async function advertiserPage(page: Fields, context: PageContext, searchParams: URLSearchParams) {
  const name = readText(page.pageName, 100) ?? String(page.pageId);
  const filters = { pageId: [String(page.pageId)] };
  const cursor = searchParams.get('cursor');
  const search = { recordType: recordTypes.ads, filters, asOf: context.now() };
  const { numbers, hasMore } = findPage(context.database, search, cursor ? 0 : maxCounted);
  const ads = [];
  for (let at = 0; at < numbers.length; at += readAtOnce, await nextTurn())
    for (const ad of context.read('ads', numbers.slice(at, at + readAtOnce))) ads.push(shownAd(ad, context));
  return document(
    name,
    <>
      <header>
        <Home {...context} />
        <h1 dir="auto">{sanitizeLine(name)}</h1>
        <p class="soft">{advertiserFacts(page)}</p>
      </header>
      {ads.length > 0 && <Summary ads={ads} hasMore={hasMore} now={context.now()} />}
      <Found kind="ads" filters={filters} cursor={cursor} kept={{}} context={context} />
      <RecordFacts record={page} fields={pageFields} id={page.pageId} />
    </>,
  );
}

const maxShares = 6;

function Summary({ ads, hasMore, now }: { ads: ReturnType<typeof shownAd>[]; hasMore: boolean; now: number }) {
  const cards = ads.map(({ card }) => card);
  const running = cards.filter(({ active }) => active).length;
  const messages = messagesIn(ads).sort((left, right) => right.length - left.length);
  const runs = cards.filter(({ daysRunning = 0 }) => daysRunning > 0);
  runs.sort((left, right) => (right.daysRunning ?? 0) - (left.daysRunning ?? 0));
  const repeated = messages.filter(({ length }) => length > 1);
  const facts = [
    hasMore ? `The newest ${formatNumber(ads.length)} ads` : formatCount(ads.length, 'ad'),
    running > 0 && `${formatNumber(running)} running`,
    formatCount(messages.length, 'message'),
  ];
  const linked = (value: number, card = cards[0]) => ({ name: card ? pickTitle(card) : '', path: card?.path, value });
  return (
    <section>
      <h2>At a glance</h2>
      <p class="soft">{facts.filter(Boolean).join(' · ')}</p>
      <div class="charts">
        <LaunchesChart ads={cards} readAt={new Date(now).toISOString()} />
        <CommonValuesChart title="Formats" values={ads.map(({ format }) => format)} />
        {repeated.length > 0 && (
          <Figure title="Messages in most ads">
            <ShareBars
              total={ads.length}
              shares={repeated.slice(0, maxShares).map((of) => linked(of.length, of[0]?.card))}
            />
          </Figure>
        )}
        {runs.length > 0 && (
          <Figure title="Longest runs" note="days">
            <ShareBars
              total={runs[0]?.daysRunning ?? 1}
              shares={runs.slice(0, maxShares).map((card) => linked(card.daysRunning ?? 0, card))}
            />
          </Figure>
        )}
      </div>
    </section>
  );
}

const importedFields: Record<string, SentField> = { ...adFields, languages: { is: 'words' }, bylines: { is: 'text' } };

const shownAbove = ['headline', 'body', 'linkDescription', 'offerLink', 'pageName', 'appUrl', 'sourcePageExternalId'];
const names: Record<string, string> = {
  startedAt: 'Started',
  lastSeenAt: 'Last seen',
  endDate: 'Ended, or is to end',
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
  averageDuplicates: 'Copies of an ad',
  pageCreatedAt: 'Page made',
  createdAt: 'First seen',
  detailsEstimated: 'Numbers are estimates',
  technologySlugs: 'Shop built with',
};
const readers: Record<string, (value: string) => string> = {
  countries: formatCountry,
  languages: formatLanguage,
  publisherPlatform: formatConstant,
  ctaType: formatConstant,
  displayFormat: formatConstant,
};

function factOf(name: string, { is, say }: SentField, record: Fields): [string, string] | undefined {
  const value = record[name];
  const title = names[name] ?? formatColumnTitle(say ?? name).replace(/ min$/, '');
  if (name.endsWith('Max')) return undefined;
  if (name.endsWith('Min')) {
    const ends = [value, record[name.replace(/Min$/, 'Max')]].filter(isNumber);
    return ends.length > 0 ? [title, [...new Set(ends)].map(formatNumber).join(' to ')] : undefined;
  }
  if (isNumber(value)) return [title, formatNumber(value)];
  if (is === 'flag') return typeof value === 'boolean' ? [title, value ? 'Yes' : 'No'] : undefined;
  const words = [value].flat().filter((one) => typeof one === 'string' && one.trim() !== '') as string[];
  const read = is === 'date' ? (day: string) => formatDay(day) : (readers[name] ?? sanitizeLine);
  const text = readText(words.map(read).join(', '), 300);
  return text ? [title, text] : undefined;
}

/** The fields of a record as people read them, its id, and all of it as it came. */
function RecordFacts({ record, fields, id }: { record: Fields; fields: Record<string, SentField>; id: unknown }) {
  const entries = Object.entries(fields).filter(([name]) => !shownAbove.includes(name));
  const facts = entries.map(([name, field]) => factOf(name, field, record)).filter((fact) => fact !== undefined);
  const json = JSON.stringify(record, null, 1).replace(/[^\P{C}\n]/gu, asEscapes);
  return (
    <section>
      <h2>Facts</h2>
      <FactList facts={facts} />
      <p class="id">{sanitizeLine(String(id))}</p>
      <details>
        <summary>The record as it came</summary>
        <pre>
          <code>{json.slice(0, maxRecord)}</code>
        </pre>
        {json.length > maxRecord && <p class="soft">{formatNumber(json.length - maxRecord)} more characters.</p>}
      </details>
    </section>
  );
}

const asEscapes = (invisible: string): string =>
  invisible
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
