import { count } from '../present/lists.ts';
import { sanitizeLine } from '../present/safe-text.ts';
import { Link, Picture } from './addresses.tsx';
import { dayText } from './page.tsx';

/** An ad as a card shows it. */
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
  /** Labels that a person gave the ad, such as `hook: question`. */
  labels?: readonly string[] | undefined;
  /** The path of the ad's own page, where there is one. */
  path?: string | undefined;
  /** A picture by its address, such as `data:image/jpeg;base64,…`, or why there is none. */
  picture: { src: string } | { reason: string };
}

export const titleOf = ({ title, line }: CardAd): string => sanitizeLine(title ?? line ?? 'Ad without words');

/** A card of a list; one without an id has a link that says the same. */
export function AdCard({ ad }: { ad: CardAd }) {
  const { id, pageName, title, line, format, domain, labels = [], path } = ad;
  const name = titleOf(ad);
  const about = [format, domain].filter(Boolean).join(' · ');
  return (
    <li class="card">
      <Frame ad={ad} />
      <div class="facts">
        <p class="soft" dir="auto">
          {sanitizeLine(pageName ?? 'Advertiser unknown')}
        </p>
        <h3 class="clamp" dir="auto">
          {path === undefined ? name : <Link to={path}>{name}</Link>}
        </h3>
        {line !== undefined && line !== title && title !== undefined && (
          <p class="soft clamp" dir="auto">
            {sanitizeLine(line)}
          </p>
        )}
        {labels.length > 0 && (
          <p class="labels">
            {labels.map((label) => (
              <span dir="auto">{sanitizeLine(label)}</span>
            ))}
          </p>
        )}
        <Run ad={ad} />
        {about && <p class="soft">{sanitizeLine(about)}</p>}
        {path === undefined && <p class="id">{sanitizeLine(id)}</p>}
      </div>
    </li>
  );
}

/** The whole picture, or the words of the ad and why there is none. */
export function Frame({ ad }: { ad: CardAd }) {
  const { id, pageName, picture } = ad;
  return (
    <div class={`frame hue${hueOf(pageName ?? id)}`}>
      {'src' in picture ? (
        <Picture from={picture.src} />
      ) : (
        <>
          <p class="poster" dir="auto" aria-hidden="true">
            {sanitizeLine(ad.line ?? titleOf(ad))}
          </p>
          <p class="reason">{sanitizeLine(`No picture: ${picture.reason}`)}</p>
        </>
      )}
    </div>
  );
}

/** `92 days, running · since 21 Aug 2026 · ×3`; for an ad whose state is not known, the day it was last seen. */
export function Run({ ad: { daysRunning, active, startedAt, lastSeenAt, copies = 1 } }: { ad: CardAd }) {
  const state = active === undefined ? lastSeenAt && `last seen ${dayText(lastSeenAt)}` : active ? 'running' : 'ended';
  const run = [daysRunning ? count(daysRunning, 'day') : '', state].filter(Boolean).join(', ');
  const facts = [startedAt && `since ${dayText(startedAt)}`, copies > 1 && `×${shortNumber(copies)}`].filter(Boolean);
  return (
    <p class="run">
      {run && <b class={active ? 'running' : undefined}>{sanitizeLine(run)}</b>}
      {run && facts.length > 0 && ' · '}
      {facts.join(' · ')}
    </p>
  );
}

/** `2.5M`: no number is too long for a card. */
const shortFormat = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });
const shortNumber = (number: number): string => (number < 1e15 ? shortFormat.format(number) : 'very many');

/** One of twelve colours, the same for the same advertiser. */
function hueOf(name: string): number {
  let hash = 7;
  for (const letter of name) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) % 360;
  return Math.floor(hash / 30);
}

const hues = Array.from({ length: 12 }, (_, hue) => `.hue${hue} { --hue: ${hue * 30 + 15} }`).join('\n');

export const cardStyles = `
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(210px, 46%), 1fr)); gap: 16px }
.card { border: 1px solid var(--line); border-radius: 12px; overflow: hidden; display: flex; flex-direction: column; min-width: 0 }
.frame { position: relative; aspect-ratio: 1; display: grid; place-items: center; text-align: center; overflow: hidden;
  background: linear-gradient(160deg, light-dark(hsl(var(--hue) 34% 91%), hsl(var(--hue) 16% 24%)), light-dark(hsl(var(--hue) 30% 84%), hsl(var(--hue) 18% 17%))) }
${hues}
.frame img { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: contain }
.poster { padding: 34px 14px 44px; font-weight: 600; font-size: 16px; line-height: 1.35; overflow: hidden; overflow-wrap: anywhere; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 5; color: light-dark(hsl(var(--hue) 38% 24%), hsl(var(--hue) 22% 86%)) }
.reason { position: absolute; inset: auto 10px 8px; font-size: 11.5px; line-height: 1.35; overflow-wrap: anywhere; text-wrap: balance }
.facts { padding: 11px 13px 12px; display: grid; gap: 3px; font-size: 13px; line-height: 1.4; overflow-wrap: anywhere }
.clamp { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden }
.labels { display: flex; flex-wrap: wrap; gap: 4px; margin-top: 3px }
.labels span { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 0 6px; font-size: 11.5px; max-width: 100% }
.run { color: var(--soft); margin-top: 3px }
.run b { color: var(--ink); font-weight: 600 } .run .running { color: var(--run) }
.id { color: var(--soft); font: 11px / 1.4 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere }
@media (max-width: 560px) { .cards { gap: 10px } .facts { padding: 9px 10px 10px } }
`;
