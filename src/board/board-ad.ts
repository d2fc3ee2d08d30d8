import { adRows } from '../dataset/ad-row.ts';
import { add, type Fields } from '../present/copy-fields.ts';
import { creativeOf } from '../present/creative.ts';
import { sanitize, sanitizeLine } from '../present/text.ts';
import type { StoredItem } from '../state/dataset.ts';
import { objectOf } from '../state/item-history.ts';
import type { BoardAd, BoardCard } from './payload.ts';

/** In characters. One ad has to fit into a call, whatever its advertiser wrote. */
const maxCopy = 10_000;
const maxLine = 300;
const maxCardBody = 1000;
const maxCards = 20;
const maxWords = 60;

/** A stored ad as the board shows it. */
export function boardAd(item: StoredItem): BoardAd {
  const fields = objectOf(item) as Fields;
  const { ad, countries, platforms, cards } = adRows(fields, { gatheredAt: item.at, json: '' });
  const view: BoardAd = { id: item.id };
  add(view, {
    pageName: line(ad.pageName),
    headline: line(ad.headline),
    body: copy(ad.body, maxCopy),
    linkDescription: copy(ad.linkDescription, maxLine),
    firstLine: line(ad.firstLine),
    startedAt: ad.startedAt ?? undefined,
    lastSeenAt: ad.lastSeenAt ?? undefined,
    endDate: ad.endDate ?? undefined,
    daysRunning: ad.daysRunning ?? undefined,
    active: ad.active === null ? undefined : ad.active === 1,
    displayFormat: line(ad.displayFormat),
    creative: creativeOf(fields),
    ctaType: line(ad.ctaType),
    countries: words(countries.map(({ country }) => country)),
    publisherPlatform: words(platforms.map(({ platform }) => platform)),
    duplicates: ad.duplicates ?? undefined,
    audienceReach: ad.audienceReach ?? undefined,
    adSpendMin: ad.adSpendMin ?? undefined,
    adSpendMax: ad.adSpendMax ?? undefined,
    currency: line(fields.currency),
    landingDomain: line(ad.landingDomain),
    landingUrl: httpsAddress(ad.offerLink ?? cards[0]?.url),
    cards: cards.length > 0 ? cards.slice(0, maxCards).map(boardCard) : undefined,
  });
  return view;
}

function boardCard({ title, body }: { title: string | null; body: string | null }): BoardCard {
  const card: BoardCard = {};
  add(card, { title: line(title), body: copy(body, maxCardBody) });
  return card;
}

const line = (value: unknown): string | undefined =>
  typeof value === 'string' ? sanitizeLine(clip(value, maxLine)) || undefined : undefined;

const copy = (text: string | null, max: number): string | undefined =>
  text === null ? undefined : sanitize(clip(text, max)).trim() || undefined;

function words(texts: readonly (string | null)[]): string[] | undefined {
  const kept = texts.slice(0, maxWords).flatMap((text) => line(text) ?? []);
  return kept.length > 0 ? kept : undefined;
}

/** Says how much is missing, and cuts no character in two. */
function clip(text: string, max: number): string {
  if (text.length <= max) return text;
  const kept = text.slice(0, max).replace(/[\ud800-\udbff]$/, '');
  return `${kept}… (+${text.length - kept.length} characters)`;
}

/** Undefined for any other address, and for one that hides its host behind a user name. */
function httpsAddress(address: string | null | undefined): string | undefined {
  if (!address || address.length > 2000 || !URL.canParse(address)) return undefined;
  const { protocol, username, password, href } = new URL(address);
  return protocol === 'https:' && username === '' && password === '' ? href : undefined;
}
