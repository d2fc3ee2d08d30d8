import { landingDomainOf } from '../present/ad.ts';
import { isTemplate, linkOf, mediaCounts } from '../present/ad-media.ts';
import { type Fields, isObject, objects } from '../present/copy-fields.ts';
import { runOf } from '../present/dates.ts';
import { adFields } from '../present/fields.ts';
import { type AdCopy, copyOf, firstLineOf, wholeText } from './ad-copy.ts';
import { dateCell, flagCell, idCell, isoTime, jsonCell, sentCells, textCell, textsOf } from './cells.ts';
import type { AdRow, Row } from './columns.ts';

export interface AdFacts {
  /** Milliseconds: when this version came. How long the ad has run is counted up to then. */
  gatheredAt: number;
  /** When its first version came. */
  firstGatheredAt?: number;
  /** What `detectLanguage` makes of the text. */
  language?: string | null;
  /** What `VariantIndex` makes of the copy. */
  variant?: string | null;
  /** The object as it came, where its text is at hand. */
  json?: string;
}

export interface AdRows {
  ad: AdRow;
  countries: Row<'ad_countries'>[];
  platforms: Row<'ad_platforms'>[];
  cards: Row<'ad_cards'>[];
}

/** What all tables hold of an ad as the API sent it, where any field may be missing or of another type. */
export function adRows(ad: object, facts: AdFacts): AdRows {
  const fields = ad as Fields;
  const id = idCell(fields.id) ?? '';
  const copy = copyOf(fields);
  const links = objects(fields.cards).map((card) => textCell(linkOf(card)));
  return {
    // A literal that spreads both takes ten times as long, and rows are made by the thousand.
    ad: Object.assign(sentFields(fields, id), derivedFields(fields, copy, facts), {
      json: jsonCell(facts.json ?? JSON.stringify(ad)),
    }),
    countries: textsOf(fields.countries).map((country) => ({ id, country })),
    platforms: textsOf(fields.publisherPlatform).map((platform) => ({ id, platform })),
    cards: copy.cards.map((card, index) => ({ id, number: index + 1, ...card, url: links[index] ?? null })),
  };
}

/** The text that the language of an ad is told by; null of a template, whose words only the network knows. */
export function languageText(ad: object): string | null {
  const { headline, body, cards } = copyOf(ad as Fields);
  const spoken = (text: string | null) => (isTemplate(text) ? null : text);
  return wholeText({
    headline: spoken(headline),
    body: spoken(body),
    cards: cards.map((card) => ({ title: spoken(card.title), body: spoken(card.body) })),
  });
}

const sentAdCells = sentCells(adFields);

function sentFields(ad: Fields, id: string) {
  const page = isObject(ad.page) ? ad.page : {};
  const pageName = textCell(page.pageName) ?? textCell(ad.pageName);
  return Object.assign({ id, pageId: idCell(ad.pageId), pageName }, sentAdCells(ad));
}

function derivedFields(ad: Fields, copy: AdCopy, facts: AdFacts) {
  const { gatheredAt, firstGatheredAt = gatheredAt, language = null, variant = null } = facts;
  const { daysRunning, stillRunning } = runOf(ad, gatheredAt);
  return {
    landingDomain: landingDomainOf(ad) ?? null,
    daysRunning: daysRunning ?? null,
    active: flagCell(stillRunning),
    firstLine: firstLineOf(copy),
    startedMonth: dateCell(ad.startedAt)?.slice(0, 7) ?? null,
    text: wholeText(copy),
    language,
    variant,
    ...mediaCounts(ad),
    firstGatheredAt: isoTime(firstGatheredAt),
    gatheredAt: isoTime(gatheredAt),
  };
}
