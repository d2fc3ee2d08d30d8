import { sanitizeLine } from '../views/safe-text.ts';
import { englishFormatters, type Formatters, formatConstant } from './formats.ts';
import type { Content } from './jsx.d.ts';
import { Link, Picture } from './links.tsx';

/** The fields of an ad that a card in a list of ads shows. */
export interface AdCardContent {
  id: string;
  pageName?: string | undefined;
  title?: string | undefined;
  /** The first line of the ad text. */
  firstLine?: string | undefined;
  mediaText?: string | undefined;
  domain?: string | undefined;
  startedAt?: string | undefined;
  lastSeenAt?: string | undefined;
  daysRunning?: number | undefined;
  active?: boolean | undefined;
  duplicates?: number | undefined;
  labels?: readonly string[] | undefined;
  /** The URL path of the page about this ad. The heading of the card links to that page. */
  path?: string | undefined;
  /**
   * The URL of the picture, e.g. `data:image/jpeg;base64,…`, or the reason why the ad has no picture. Undefined while
   * the picture is loading.
   */
  picture?: { src: string } | { reason: string } | undefined;
}

/** The fields of an ad that `buildAdCardContent` converts to the content of a card. */
export interface AdCardInput {
  id: string;
  pageName?: string | undefined;
  headline?: string | undefined;
  /** The first line of the ad text. */
  firstLine?: string | undefined;
  cards?: readonly { title?: string | undefined }[] | undefined;
  displayFormat?: string | undefined;
  /** The number of media files or their length, e.g. `5 cards` or `15 s`. */
  creative?: string | undefined;
  domain?: string | undefined;
  startedAt?: string | undefined;
  lastSeenAt?: string | undefined;
  daysRunning?: number | undefined;
  active?: boolean | undefined;
  duplicates?: number | undefined;
  labels?: readonly { label: string; value?: string | undefined }[] | undefined;
  /** True if a watch (a search that is repeated to find new ads) found this ad since its previous check. */
  isNew?: boolean | undefined;
}

/**
 * Builds the content of an ad card, except for the picture. Reports, the ad board and the pages of the local library
 * use this function.
 */
export function buildAdCardContent(adFields: AdCardInput): AdCardContent {
  const {
    headline,
    firstLine,
    cards,
    displayFormat = '',
    creative,
    duplicates,
    labels,
    isNew,
    ...remainingFields
  } = adFields;
  const { id, pageName, domain, startedAt, lastSeenAt, daysRunning, active } = remainingFields;
  return {
    ...{ id, pageName, domain, startedAt, lastSeenAt, daysRunning, active },
    title: [headline, cards?.[0]?.title, firstLine].find((text) => text && !hasPlaceholder(text)) ?? headline,
    firstLine,
    // Omit the format of a carousel ad, because `creative` already states the number of cards, e.g. `5 cards`.
    mediaText: [isNew && 'New', creative?.includes('card') ? '' : formatConstant(displayFormat), creative]
      .filter(Boolean)
      .join(' · '),
    duplicates,
    labels: labels?.map(({ label, value }) => (value === undefined ? label : `${label}: ${value}`)),
  };
}

/** Returns true if a text contains a placeholder that was not filled in, e.g. `{{product.name}}`. */
const hasPlaceholder = (text: string): boolean => text.includes('{{');

/**
 * Returns the title of an ad. If the title is missing or contains a placeholder that was not filled in, returns the
 * first line of the ad text.
 */
export const pickTitle = ({ title, firstLine }: Pick<AdCardContent, 'title' | 'firstLine'>): string =>
  sanitizeLine([title, firstLine].find((text) => text && !hasPlaceholder(text)) ?? 'Ad without words');

interface AdCardProps {
  ad: AdCardContent;
  formatters?: Formatters;
  class?: string;
  /** Content to show instead of the ad's picture, e.g. a picture that is loaded only when it becomes visible. */
  pictureFrame?: Content;
  /** Content to show instead of the heading of the card, e.g. a button that opens the ad. */
  heading?: Content;
  /** Content to the right of the advertiser's name, e.g. a checkbox on the board. */
  cornerContent?: Content;
  /** Content between the picture and the texts, e.g. a bar that shows when the ad ran. */
  runBar?: Content;
  /** Content at the bottom of the card, e.g. buttons. */
  children?: Content;
}

/**
 * Shows an ad as a card in a list. The card shows the ad id only if it has neither a link nor content at the bottom,
 * because then nothing else identifies the ad.
 */
export function AdCard({
  ad,
  formatters = englishFormatters,
  class: className,
  pictureFrame,
  heading,
  cornerContent,
  runBar,
  children,
}: AdCardProps) {
  const { id, pageName, title, firstLine, mediaText, domain, labels = [], path } = ad;
  const description = [mediaText, domain].filter(Boolean).join(' · ');
  return (
    <li class={className ? `card ${className}` : 'card'}>
      {pictureFrame ?? <PictureFrame ad={ad} formatters={formatters} />}
      {runBar}
      <div class="facts">
        <div class="top">
          <p class="page" dir="auto">
            {sanitizeLine(pageName ?? 'Advertiser unknown')}
          </p>
          {cornerContent}
        </div>
        {heading ?? (
          <h3 class="clamp" dir="auto">
            {path === undefined ? pickTitle(ad) : <Link to={path}>{pickTitle(ad)}</Link>}
          </h3>
        )}
        {firstLine !== undefined && firstLine !== title && title !== undefined && (
          <p class="line clamp" dir="auto">
            {sanitizeLine(firstLine)}
          </p>
        )}
        <Labels labels={labels} />
        <RunText ad={ad} formatters={formatters} />
        {description && <p class="about">{sanitizeLine(description)}</p>}
        {path === undefined && children === undefined && <p class="id">{sanitizeLine(id)}</p>}
      </div>
      {children}
    </li>
  );
}

/** Shows the labels of an ad, or nothing if there are no labels. */
export const Labels = ({ labels }: { labels: readonly string[] }) =>
  labels.length === 0 ? null : (
    <p class="labels">
      {labels.map((label) => (
        <span dir="auto">{sanitizeLine(label)}</span>
      ))}
    </p>
  );

/** Shows the picture of an ad. If the ad has no picture, shows the first line of the ad text and the reason. */
export function PictureFrame({ ad, formatters = englishFormatters }: { ad: AdCardContent; formatters?: Formatters }) {
  const { id, pageName, picture, firstLine } = ad;
  return (
    <div class={`frame hue${pickHueIndex(pageName ?? id)}`}>
      {picture !== undefined && 'src' in picture && <Picture url={picture.src} />}
      {picture !== undefined && 'reason' in picture && (
        <>
          <p class="poster" dir="auto">
            {sanitizeLine(firstLine ?? pickTitle(ad))}
          </p>
          <p class="reason">{formatReason(picture.reason, formatters)}</p>
        </>
      )}
    </div>
  );
}

const formatReason = (reason: string, { formatDay }: Formatters): string =>
  reason === 'the ad has no picture'
    ? 'No picture'
    : `No picture: ${sanitizeLine(reason).replace(/\b\d{4}-\d\d-\d\d\b/, (day) => formatDay(day) || day)}`;

/**
 * Shows how long an ad has run, e.g. `92 days, running · since 21 Aug 2026 · 3 copies`. If it is unknown whether an ad
 * is still running, shows the day on which the ad was last seen.
 */
export function RunText({ ad, formatters = englishFormatters }: { ad: AdCardContent; formatters?: Formatters }) {
  const { daysRunning, active, startedAt, lastSeenAt, duplicates = 1 } = ad;
  const { formatCount, formatDay, formatShortNumber } = formatters;
  const runStateText = active === undefined ? '' : active ? 'running' : 'ended';
  const durationAndRunState = [daysRunning ? formatCount(daysRunning, 'day') : '', runStateText]
    .filter(Boolean)
    .join(', ');
  const [startDay, lastSeenDay] = [startedAt, active === undefined && lastSeenAt].map((day) =>
    day ? makeSpacesNonBreaking(formatDay(day)) : '',
  );
  const facts = [
    startDay && `${active === false ? 'from' : 'since'} ${startDay}`,
    lastSeenDay && `last seen ${lastSeenDay}`,
    duplicates > 1 && makeSpacesNonBreaking(`${formatShortNumber(duplicates)} copies`),
  ].filter(Boolean);
  if (durationAndRunState === '' && facts.length === 0) facts.push('Dates unknown');
  return (
    <p class="run">
      {durationAndRunState && <b class={active ? 'running' : undefined}>{durationAndRunState}</b>}
      <span>
        {durationAndRunState && facts.length > 0 && ' · '}
        {facts.join(' · ')}
      </span>
    </p>
  );
}

/** Replaces spaces with non-breaking spaces, so that the text stays on one line. */
const makeSpacesNonBreaking = (text: string): string => text.replaceAll(' ', '\u00a0');

/**
 * Chooses one of twelve background hues (0 to 11) from a hash of the advertiser's name, or of the ad id if the name is
 * unknown. The same advertiser therefore always gets the same hue.
 */
function pickHueIndex(advertiserNameOrAdId: string): number {
  let hash = 7;
  for (const letter of advertiserNameOrAdId) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) % 360;
  return Math.floor(hash / 30);
}

const hueStyles = Array.from({ length: 12 }, (_, hue) => `.hue${hue} { --hue: ${hue * 30 + 15} }`).join('\n');

/** The CSS for `AdCard` and the components that it contains. */
export const cardStyles = `
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(198px, 46%), 1fr)); gap: 14px }
.card { position: relative; border: 1px solid var(--line); border-radius: 12px; overflow: hidden; display: flex; flex-direction: column; min-width: 0; background: var(--paper) }
.frame { position: relative; aspect-ratio: 1; overflow: hidden;
  background: linear-gradient(160deg, light-dark(hsl(var(--hue) 34% 91%), hsl(var(--hue) 16% 24%)), light-dark(hsl(var(--hue) 30% 84%), hsl(var(--hue) 18% 17%))) }
${hueStyles}
.frame:has(.reason) { display: flex; flex-direction: column; justify-content: space-between; gap: 8px; padding: 16px 14px 10px; color: light-dark(hsl(var(--hue) 38% 24%), hsl(var(--hue) 22% 86%)) }
.frame img { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: contain }
.poster { font-size: 15px; line-height: 1.35; overflow: hidden; overflow-wrap: anywhere; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 5; min-height: 0 }
.reason { margin-top: auto; font-size: 11.5px; line-height: 1.35; overflow-wrap: anywhere }
.card:has(.reason) .line { display: none }
.facts { flex: 1; padding: 9px 12px 11px; display: flex; flex-direction: column; gap: 3px; font-size: 13px; line-height: 1.4; overflow-wrap: anywhere }
.top { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 6px; align-items: center }
.page { color: var(--soft); overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.line, .about { color: var(--soft) }
.clamp { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden }
.labels { display: flex; flex-wrap: wrap; gap: 4px; margin-top: 3px }
.labels span { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 0 6px; font-size: 11.5px; max-width: 100%; overflow: hidden; text-overflow: ellipsis }
.run { color: var(--soft); margin-top: auto; padding-top: 3px }
.run b { color: var(--ink); font-weight: 600 } .run .running { color: var(--run) }
.id { color: var(--soft); font: 11px / 1.4 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere }
@media (max-width: 560px) { .cards { gap: 10px } .facts { padding: 8px 10px 10px } .poster { -webkit-line-clamp: 3 } }
`;
