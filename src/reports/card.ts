import { adRows } from '../dataset/ad-rows.ts';
import { creativeOf, pictureOf } from '../present/ad-media.ts';
import { count } from '../present/lists.ts';
import { type Fields, textOf } from '../present/view.ts';
import { dayText, escaped, text } from './page.ts';

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
  /** The address of the ad's own page, where there is one. */
  href?: string | undefined;
  /** A picture by its address, such as `data:image/jpeg;base64,…`, or why there is none. */
  picture: { src: string } | { reason: string };
}

/** An ad of the API as a card, and the address of its picture: the caller fetches the picture. */
export function cardOf(fields: Fields, { id, at, now }: { id: string; at: number; now: number }) {
  const { ad, cards } = adRows(fields, { gatheredAt: at, json: '' });
  const picture = pictureOf(fields, { now });
  const card: CardAd = {
    id,
    pageName: line(ad.pageName),
    title: line(ad.headline ?? cards[0]?.title),
    line: line(ad.firstLine),
    format: line(creativeOf(fields) ?? ad.displayFormat?.toLowerCase()),
    domain: line(ad.landingDomain),
    startedAt: ad.startedAt ?? undefined,
    lastSeenAt: ad.lastSeenAt ?? undefined,
    daysRunning: ad.daysRunning ?? undefined,
    active: ad.active === null ? undefined : ad.active === 1,
    copies: ad.duplicates ?? undefined,
    picture: 'reason' in picture ? picture : { reason: 'there was no time left for it' },
  };
  return { card, address: 'reason' in picture ? undefined : picture.address };
}

const lineTokens = 60;
const line = (words: string | null | undefined) => textOf(words, lineTokens);

export function cardHtml(ad: CardAd): string {
  const { id, pageName, title, line, format, domain, picture, href } = ad;
  const shown =
    'src' in picture
      ? `<img src="${escaped(picture.src)}" alt="">`
      : `<span class="initial" aria-hidden="true">${text([...(pageName ?? '?')][0] ?? '?')}</span><span class="reason">${text(`No picture: ${picture.reason}`)}</span>`;
  const badge = format ? `<span class="badge">${text(format)}</span>` : '';
  const seconds = line === undefined || line === title ? '' : `<p class="soft clamp" dir="auto">${text(line)}</p>`;
  const name = text(title ?? line ?? 'Ad without words');
  const linked = href === undefined ? name : `<a href="${escaped(href)}">${name}</a>`;
  return `<li class="card"><div class="frame hue${hueOf(pageName ?? id)}">${shown}${badge}</div><div class="facts"><p class="soft" dir="auto">${text(pageName ?? 'Advertiser unknown')}</p><h3 class="clamp" dir="auto">${linked}</h3>${seconds}${labelsHtml(ad)}<p class="run">${runText(ad)}</p>${domain ? `<p class="soft">${text(domain)}</p>` : ''}<p class="id">${text(id)}</p></div></li>`;
}

const labelsHtml = ({ labels = [] }: CardAd): string =>
  labels.length === 0
    ? ''
    : `<p class="labels">${labels.map((label) => `<span dir="auto">${text(label)}</span>`).join(' ')}</p>`;

/** `92 days, running · since 21 Aug 2026 · ×3`; for an ad whose state is not known, the day it was last seen. */
export function runText({ daysRunning, active, startedAt, lastSeenAt, copies = 1 }: CardAd): string {
  const state = active === undefined ? lastSeenAt && `last seen ${dayText(lastSeenAt)}` : active ? 'running' : 'ended';
  const run = [daysRunning === undefined ? '' : count(daysRunning, 'day'), state].filter(Boolean).join(', ');
  const facts = [
    run && `<b${active ? ' class="running"' : ''}>${text(run)}</b>`,
    startedAt && `since ${dayText(startedAt)}`,
    copies > 1 && `×${shortNumber(copies)}`,
  ];
  return facts.filter(Boolean).join(' · ');
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
