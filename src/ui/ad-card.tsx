import { sanitizeLine } from '../views/safe-text.ts';
import { Link, Picture } from './addresses.tsx';
import { constantText, english, type Formats } from './formats.ts';
import type { Content } from './jsx.d.ts';

export interface CardAd {
  id: string;
  pageName?: string | undefined;
  title?: string | undefined;
  line?: string | undefined;
  format?: string | undefined;
  domain?: string | undefined;
  startedAt?: string | undefined;
  lastSeenAt?: string | undefined;
  daysRunning?: number | undefined;
  active?: boolean | undefined;
  copies?: number | undefined;
  labels?: readonly string[] | undefined;
  path?: string | undefined;
  /** A picture by its address, such as `data:image/jpeg;base64,…`, or why there is none; undefined while it may come. */
  picture?: { src: string } | { reason: string } | undefined;
}

/** The facts of an ad that its card shows. */
export interface AdFacts {
  id: string;
  pageName?: string | undefined;
  headline?: string | undefined;
  /** The line of the ad text that a reader sees first. */
  firstLine?: string | undefined;
  cards?: readonly { title?: string | undefined }[] | undefined;
  displayFormat?: string | undefined;
  /** Pictures, videos and cards in words, such as `15 s` or `5 cards`. */
  creative?: string | undefined;
  domain?: string | undefined;
  startedAt?: string | undefined;
  lastSeenAt?: string | undefined;
  daysRunning?: number | undefined;
  active?: boolean | undefined;
  duplicates?: number | undefined;
  labels?: readonly { label: string; value?: string | undefined }[] | undefined;
  /** A watch saw the ad for the first time. */
  isNew?: boolean | undefined;
}

/** Returns an ad as the card of a report, of a page of the library or of the board shows it, without its picture. */
export function cardOf(facts: AdFacts): CardAd {
  const { headline, firstLine, cards, displayFormat = '', creative, duplicates, labels, isNew, ...shown } = facts;
  const { id, pageName, domain, startedAt, lastSeenAt, daysRunning, active } = shown;
  return {
    ...{ id, pageName, domain, startedAt, lastSeenAt, daysRunning, active },
    title: [headline, cards?.[0]?.title, firstLine].find((text) => text && !isTemplate(text)) ?? headline,
    line: firstLine,
    // The cards alone for an ad with cards.
    format: [isNew && 'New', creative?.includes('card') ? '' : constantText(displayFormat), creative]
      .filter(Boolean)
      .join(' · '),
    copies: duplicates,
    labels: labels?.map(({ label, value }) => (value === undefined ? label : `${label}: ${value}`)),
  };
}

const isTemplate = (text: string): boolean => text.includes('{{');

/** The headline of an ad, or the text that replaces it; no template such as `{{product.name}}`. */
export const titleOf = ({ title, line }: Pick<CardAd, 'title' | 'line'>): string =>
  sanitizeLine([title, line].find((text) => text && !isTemplate(text)) ?? 'Ad without words');

interface AdCardProps {
  ad: CardAd;
  formats?: Formats;
  class?: string;
  /** In place of the picture and of the heading. */
  frame?: Content;
  name?: Content;
  /** Beside the advertiser, in a column of its own. */
  corner?: Content;
  /** Between the picture and the words, and below all else. */
  bar?: Content;
  children?: Content;
}

/** A card of a list; one without an id has a link that says the same. */
export function AdCard({ ad, formats = english, class: kind, frame, name, corner, bar, children }: AdCardProps) {
  const { id, pageName, title, line, format, domain, labels = [], path } = ad;
  const about = [format, domain].filter(Boolean).join(' · ');
  return (
    <li class={kind ? `card ${kind}` : 'card'}>
      {frame ?? <Frame ad={ad} formats={formats} />}
      {bar}
      <div class="facts">
        <div class="top">
          <p class="page" dir="auto">
            {sanitizeLine(pageName ?? 'Advertiser unknown')}
          </p>
          {corner}
        </div>
        {name ?? (
          <h3 class="clamp" dir="auto">
            {path === undefined ? titleOf(ad) : <Link to={path}>{titleOf(ad)}</Link>}
          </h3>
        )}
        {line !== undefined && line !== title && title !== undefined && (
          <p class="line clamp" dir="auto">
            {sanitizeLine(line)}
          </p>
        )}
        <Labels labels={labels} />
        <Run ad={ad} formats={formats} />
        {about && <p class="about">{sanitizeLine(about)}</p>}
        {path === undefined && children === undefined && <p class="id">{sanitizeLine(id)}</p>}
      </div>
      {children}
    </li>
  );
}

export const Labels = ({ labels }: { labels: readonly string[] }) =>
  labels.length === 0 ? null : (
    <p class="labels">
      {labels.map((label) => (
        <span dir="auto">{sanitizeLine(label)}</span>
      ))}
    </p>
  );

/** The whole picture, or why there is none, with the first line of the copy. */
export function Frame({ ad, formats = english }: { ad: CardAd; formats?: Formats }) {
  const { id, pageName, picture, line } = ad;
  return (
    <div class={`frame hue${hueOf(pageName ?? id)}`}>
      {picture !== undefined && 'src' in picture && <Picture from={picture.src} />}
      {picture !== undefined && 'reason' in picture && (
        <>
          <p class="poster" dir="auto">
            {sanitizeLine(line ?? titleOf(ad))}
          </p>
          <p class="reason">{reasonText(picture.reason, formats)}</p>
        </>
      )}
    </div>
  );
}

const reasonText = (reason: string, { dayText }: Formats): string =>
  reason === 'the ad has no picture'
    ? 'No picture'
    : `No picture: ${sanitizeLine(reason).replace(/\b\d{4}-\d\d-\d\d\b/, (day) => dayText(day) || day)}`;

/** `92 days, running · since 21 Aug 2026 · 3 copies`; for an ad whose state is not known, the day it was last seen. */
export function Run({ ad, formats = english }: { ad: CardAd; formats?: Formats }) {
  const { daysRunning, active, startedAt, lastSeenAt, copies = 1 } = ad;
  const { countText, dayText, shortNumber } = formats;
  const state = active === undefined ? '' : active ? 'running' : 'ended';
  const run = [daysRunning ? countText(daysRunning, 'day') : '', state].filter(Boolean).join(', ');
  const [start, seen] = [startedAt, active === undefined && lastSeenAt].map((day) =>
    day ? onOneLine(dayText(day)) : '',
  );
  const facts = [
    start && `${active === false ? 'from' : 'since'} ${start}`,
    seen && `last seen ${seen}`,
    copies > 1 && onOneLine(`${shortNumber(copies)} copies`),
  ].filter(Boolean);
  if (run === '' && facts.length === 0) facts.push('Dates unknown');
  return (
    <p class="run">
      {run && <b class={active ? 'running' : undefined}>{run}</b>}
      <span>
        {run && facts.length > 0 && ' · '}
        {facts.join(' · ')}
      </span>
    </p>
  );
}

const onOneLine = (text: string): string => text.replaceAll(' ', '\u00a0');

/** One of twelve colours, the same for the same advertiser. */
function hueOf(name: string): number {
  let hash = 7;
  for (const letter of name) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) % 360;
  return Math.floor(hash / 30);
}

const hues = Array.from({ length: 12 }, (_, hue) => `.hue${hue} { --hue: ${hue * 30 + 15} }`).join('\n');

export const cardStyles = `
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(198px, 46%), 1fr)); gap: 14px }
.card { position: relative; border: 1px solid var(--line); border-radius: 12px; overflow: hidden; display: flex; flex-direction: column; min-width: 0; background: var(--paper) }
.frame { position: relative; aspect-ratio: 1; overflow: hidden;
  background: linear-gradient(160deg, light-dark(hsl(var(--hue) 34% 91%), hsl(var(--hue) 16% 24%)), light-dark(hsl(var(--hue) 30% 84%), hsl(var(--hue) 18% 17%))) }
${hues}
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
