import { type AdCardContent, cardStyles, PictureFrame, pickTitle } from '../ui/ad-card.tsx';
import { formatCount, formatDay } from '../ui/formats.ts';
import { demoNotice, Page, renderPage } from '../ui/page.tsx';
import { sanitizeLine } from '../views/safe-text.ts';

/**
 * The content of an email with the results of `check_watches`. Its texts may come from advertisers, so `renderMail`
 * sanitizes them.
 */
export interface MailContent {
  writtenAt: number;
  isDemo: boolean;
  version: string;
  watches: readonly {
    name: string;
    /**
     * Sentences about the check, e.g. how many ads it read, and how many new ads are typical for a period of this
     * length.
     */
    sentences: readonly string[];
    groups: readonly { title: string; totalCount: number; ads: readonly MailAd[] }[];
  }[];
}

interface MailAd {
  card: AdCardContent;
  /** The changes of the ad as text, e.g. `headline "old" → "new"`. */
  changes: readonly string[];
  appUrl: string | undefined;
}

/** Renders an email as one HTML file that contains no scripts and no links, and that causes no network requests. */
export const renderMail = ({ writtenAt, isDemo, version, watches }: MailContent): string =>
  renderPage(
    <Page
      title={`Ads on ${formatDay(writtenAt)}`}
      contentSecurityPolicy="default-src 'none'; img-src data:; style-src 'unsafe-inline'"
      styles={styles}
    >
      <header>
        {isDemo && demoNotice}
        <h1>Ads on {formatDay(writtenAt)}</h1>
      </header>
      {watches.map(({ name, sentences, groups }) => (
        <section>
          <h2 dir="auto">{sanitizeLine(name)}</h2>
          {sentences.map((line) => (
            <p>{sanitizeLine(line)}</p>
          ))}
          {groups.map(({ title, totalCount, ads }) => (
            <>
              <h3>{title}</h3>
              <ul class="news">
                {ads.map((ad) => (
                  <NewsItem ad={ad} />
                ))}
              </ul>
              {totalCount > ads.length && <p class="soft">and {formatCount(totalCount - ads.length, 'more ad')}</p>}
            </>
          ))}
        </section>
      ))}
      <footer>Written by ad-library-mcp {version}. Texts and pictures of ads belong to their advertisers.</footer>
    </Page>,
  );

function NewsItem({ ad: { card, changes, appUrl } }: { ad: MailAd }) {
  const details = [card.mediaText, card.startedAt && `started ${formatDay(card.startedAt)}`]
    .filter(Boolean)
    .join(' · ');
  return (
    <li>
      {card.picture && 'src' in card.picture && <PictureFrame ad={card} />}
      <div class="news-facts">
        <p class="soft" dir="auto">
          {sanitizeLine(card.pageName ?? 'Advertiser unknown')}
        </p>
        <p dir="auto">
          <b>{pickTitle(card)}</b>
        </p>
        {changes.map((change) => (
          <p dir="auto">{sanitizeLine(change)}</p>
        ))}
        {details && changes.length === 0 && <p>{sanitizeLine(details)}</p>}
        {appUrl && <p class="id">{sanitizeLine(appUrl)}</p>}
        {!appUrl?.includes(card.id) && <p class="id">{sanitizeLine(card.id)}</p>}
      </div>
    </li>
  );
}

const styles = `${cardStyles}
main { max-width: 680px }
.news li { display: flex; gap: 14px; padding: 10px 0; border-top: 1px solid var(--line) }
.news .frame { flex: none; width: 84px; height: 84px; border-radius: 8px }
.news-facts { min-width: 0; overflow-wrap: anywhere; font-size: 14px; line-height: 1.45 }
`;
