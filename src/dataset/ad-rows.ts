import { hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { type DetectLanguage, loadLanguageDetector } from '../language/detector.ts';
import { landingDomainOf } from '../present/ad.ts';
import { cardField, isTemplate, linkOf, mediaCounts } from '../present/ad-media.ts';
import { adFields } from '../present/fields.ts';
import { type Fields, isObject, objects, runOf } from '../present/values.ts';
import { type DatasetContents, idKey } from '../state/dataset.ts';
import { objectOf, type StoredItem } from '../state/item-versions.ts';
import { memoryTurns } from '../state/memory-state.ts';
import {
  type AdRow,
  bounded,
  dateCell,
  flagCell,
  idCell,
  isoTime,
  jsonCell,
  type Row,
  sentCells,
  textCell,
  textsOf,
} from './tables.ts';
import { VariantIndex } from './variants.ts';

/** What is known of an ad beside its own fields. */
export interface KnownAd {
  pageId: string | null;
  pageName: string | null;
  language: string | null;
  /** The same for ads of the dataset whose copy is nearly the same. */
  variant: string | null;
}

/** What an ad says, and who: it stays while others of its fields change. */
interface Copy {
  /** Equal for the same page and words. */
  hash: string;
  language: string | null;
  variant: string | null;
}

/** The ads of one page in the order they came first, and the groups that they make in this order. */
interface PageVariants {
  copies: Copy[];
  index: VariantIndex;
}

interface KnownCopies {
  /** Of the contents that they are from. */
  version: string;
  known: ReadonlyMap<string, KnownAd>;
  byId: ReadonlyMap<string, Copy>;
  byPage: ReadonlyMap<string | null, PageVariants>;
}

type Held = Pick<DatasetContents, 'version' | 'ads'>;

/** Tenants whose copies are remembered, as many as have their tables open for SQL. */
const maxTenants = 2;
/** Ads read at once; others get their turn in between. */
const adsAtOnce = 50;

const decoder = new TextDecoder();

/**
 * Makes rows of stored ads. Finds out only once in which language an ad is, and which ads are variants of it. Variants
 * follow from the ads that are held and their order alone, so that every process finds the same.
 */
export class AdRowReader {
  readonly #copies = new LRUCache<string, KnownCopies>({ max: maxTenants });
  /** What an object says of its page and its words, for as long as it is held. */
  readonly #read = new WeakMap<Uint8Array, Pick<KnownAd, 'pageId' | 'pageName'> & { hash: string }>();
  readonly #turns = memoryTurns();
  #language: Promise<DetectLanguage> | undefined;

  /** The rows of all ads of a dataset in parts, or of those with some ids. */
  async *read(
    tenantId: string,
    contents: Held,
    { json, ids }: { json: boolean; ids?: ReadonlySet<string> },
  ): AsyncGenerator<AdRows[]> {
    const known = await this.knownAds(tenantId, contents);
    const { ads } = contents;
    const wanted = ids === undefined ? ads : ads.filter(({ id }) => ids.has(idKey(id)));
    for (let start = 0; start < wanted.length; start += adsAtOnce) {
      yield wanted.slice(start, start + adsAtOnce).map((item) => rowsOf(item, known.get(idKey(item.id)), json));
      await setImmediate();
    }
  }

  /** All ads of a dataset by their ids. */
  async knownAds(tenantId: string, contents: Held): Promise<ReadonlyMap<string, KnownAd>> {
    this.#language ??= loadLanguageDetector();
    const detect = await this.#language;
    const endTurn = await this.#turns.take(tenantId, new AbortController().signal);
    try {
      const before = this.#copies.get(tenantId);
      if (before?.version === contents.version) return before.known;
      const copies = await this.#copiesOf(contents, detect, before);
      this.#copies.set(tenantId, copies);
      return copies.known;
    } finally {
      endTurn();
    }
  }

  async #copiesOf({ version, ads }: Held, detect: DetectLanguage, before?: KnownCopies): Promise<KnownCopies> {
    const pages = new Map<string | null, { item: StoredItem; copy: Copy }[]>();
    const copies = new Map<string, Copy>();
    // Many ads say the same.
    const languages = new Map<string | null, string | null>();
    const languageOf = (item: StoredItem) => {
      const text = languageText(objectOf(item));
      const language = languages.get(text) ?? detect(text);
      languages.set(text, language);
      return language;
    };
    for (const [index, item] of ads.toSorted(byArrival).entries()) {
      const { hash, pageId } = this.#reading(item);
      const same = before?.byId.get(idKey(item.id));
      const copy = same?.hash === hash ? same : { hash, language: languageOf(item), variant: null };
      copies.set(idKey(item.id), copy);
      const page = pages.get(pageId);
      if (page) page.push({ item, copy });
      else pages.set(pageId, [{ item, copy }]);
      if (index % adsAtOnce === 0) await setImmediate();
    }
    const byPage = new Map<string | null, PageVariants>();
    for (const [pageId, members] of pages) byPage.set(pageId, await variantsOf(members, before?.byPage.get(pageId)));
    const known = new Map(
      ads.map((item): [string, KnownAd] => {
        const { language = null, variant = null } = copies.get(idKey(item.id)) ?? {};
        const { pageId, pageName } = this.#reading(item);
        return [idKey(item.id), { pageId, pageName, language, variant }];
      }),
    );
    return { version, known, byId: copies, byPage };
  }

  #reading({ json, ...item }: StoredItem) {
    const known = this.#read.get(json);
    if (known) return known;
    const ad = objectOf({ json });
    const pageId = idCell(ad.pageId);
    const reading = {
      pageId,
      pageName: pageNameOf(ad),
      hash: hash('sha256', JSON.stringify([item.id, pageId, copyOf(ad)]), 'base64url'),
    };
    this.#read.set(json, reading);
    return reading;
  }
}

const byArrival = (left: StoredItem, right: StoredItem): number =>
  left.firstOrder - right.firstOrder || (idKey(left.id) < idKey(right.id) ? -1 : 1);

/** Goes on with the groups there are where ads were only added behind, and else makes them anew. */
async function variantsOf(
  members: readonly { item: StoredItem; copy: Copy }[],
  before: PageVariants | undefined,
): Promise<PageVariants> {
  const isContinued = before?.copies.every((copy, index) => copy === members[index]?.copy);
  const { copies, index } = before && isContinued ? before : { copies: [], index: new VariantIndex() };
  for (const { item, copy } of members.slice(copies.length)) {
    copy.variant = index.add(item.id, variantCopy(copyOf(objectOf(item))));
    copies.push(copy);
    if (copies.length % adsAtOnce === 0) await setImmediate();
  }
  return { copies, index };
}

function rowsOf(item: StoredItem, known: KnownAd | undefined, json: boolean): AdRows {
  const text = decoder.decode(item.json);
  const { language = null, variant = null } = known ?? {};
  const { at: gatheredAt, firstAt: firstGatheredAt } = item;
  return adRows(JSON.parse(text), { gatheredAt, firstGatheredAt, language, variant, json: json ? text : '' });
}

interface AdFacts {
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

const sentFields = (ad: Fields, id: string) =>
  Object.assign({ id, pageId: idCell(ad.pageId), pageName: pageNameOf(ad) }, sentAdCells(ad));

/** Without spaces around it, which would make two advertisers of one. */
function pageNameOf(ad: Fields): string | null {
  const page = isObject(ad.page) ? ad.page : {};
  return (textCell(page.pageName) ?? textCell(ad.pageName))?.trim() ?? null;
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

/** Everything an ad says in words: headline, body and what its cards say, each text once. */
interface AdCopy {
  headline: string | null;
  body: string | null;
  cards: CardCopy[];
}

interface CardCopy {
  title: string | null;
  body: string | null;
}

export const copyOf = (ad: Fields): AdCopy => ({
  headline: textCell(ad.headline),
  body: textCell(ad.body),
  cards: objects(ad.cards).map((card) => ({
    title: textCell(cardField(card, 'title')),
    body: textCell(cardField(card, 'body')),
  })),
});

/** All texts of an ad together, one after the other. */
function wholeText({ headline, body, cards }: AdCopy): string | null {
  const texts = [headline, body, ...cards.flatMap((card) => [card.title, card.body])];
  const whole = [...new Set(texts.filter((text) => text !== null))].join('\n');
  return whole === '' ? null : bounded(whole);
}

/**
 * What a reader sees first: the first line of the body, or of what stands in for it. A template of the network
 * (`{{product.name}}`) is seen by nobody.
 */
function firstLineOf({ headline, body, cards: [card] }: AdCopy): string | null {
  for (const text of [body, card?.body, headline, card?.title]) {
    if (!text || isTemplate(text)) continue;
    const line = text
      .trim()
      .split(/\r?\n|\r/, 1)[0]
      ?.trim();
    if (line) return line;
  }
  return null;
}

/** The words that make one ad's copy another's: headline and body, or what the cards say where it has neither. */
export function variantCopy({ headline, body, cards }: AdCopy): string | null {
  return wholeText({ headline, body, cards: [] }) ?? wholeText({ headline: null, body: null, cards });
}
