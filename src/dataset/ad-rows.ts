import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { cardField, isTemplate, linkOf, mediaCounts } from '../present/ad-media.ts';
import { runOf } from '../present/dates.ts';
import { adFields } from '../present/fields.ts';
import { landingDomainOf, landingOf } from '../present/landing.ts';
import { type DetectLanguage, loadLanguageDetector } from '../present/language.ts';
import { groupBy } from '../present/lists.ts';
import { type Fields, isObject, objects } from '../present/view.ts';
import { type DatasetContents, idKey } from '../state/dataset.ts';
import { memoryTurns } from '../state/drivers/memory.ts';
import { objectOf, type StoredItem } from '../state/item-versions.ts';
import { pauses } from '../workers/pauses.ts';
import { type KnownPicture, pictureGroups, printInAddress } from './picture-groups.ts';
import {
  type AdRow,
  asTexts,
  clipText,
  dateCell,
  flagCell,
  idCell,
  isoTime,
  jsonCell,
  type Row,
  sentCells,
  textCell,
} from './tables.ts';
import { VariantIndex } from './variants.ts';

export interface KnownAd {
  pageId: string | null;
  pageName: string | null;
  language: string | null;
  /** The same for ads of the dataset whose copy is nearly the same. */
  variant: string | null;
}

interface Reading extends Pick<KnownAd, 'pageId' | 'pageName'> {
  hash: string;
  print: string | undefined;
}

interface PageVariants {
  hashes: string[];
  variants: (string | null)[];
  index: VariantIndex;
}

interface KnownAds {
  version: string;
  facts: ReadonlyMap<string, KnownAd>;
  byPage: ReadonlyMap<string | null, PageVariants>;
}

type AdContents = Pick<DatasetContents, 'version' | 'ads' | 'pictures' | 'picturesVersion'>;

/** As many as have their tables open for SQL. */
const maxTenants = 2;
/** Ads read before others may get a turn. */
const adsAtOnce = 10;

const maxTexts = 20_000;

const decoder = new TextDecoder();

/** Variants follow from the ads that are held and their order alone, so that every process finds the same. */
export class AdRowReader {
  readonly #tenants = new LRUCache<string, KnownAds>({ max: maxTenants });
  readonly #pictures = new LRUCache<string, { version: string; groups: ReadonlyMap<string, KnownPicture> }>({
    max: maxTenants,
  });
  readonly #languages = new LRUCache<string, { language: string | null }>({ max: maxTexts });
  readonly #read = new WeakMap<Uint8Array, Reading>();
  readonly #turns = memoryTurns();
  #detector: Promise<DetectLanguage> | undefined;

  async *read(tenantId: string, contents: AdContents, { json, ids }: { json: boolean; ids?: ReadonlySet<string> }) {
    const adFacts = await this.knownAds(tenantId, contents);
    const pictures = await this.#picturesOf(tenantId, contents);
    const { ads } = contents;
    const pause = pauses();
    const wanted = ids === undefined ? ads : ads.filter(({ id }) => ids.has(idKey(id)));
    for (let start = 0; start < wanted.length; start += adsAtOnce) {
      yield wanted.slice(start, start + adsAtOnce).map((item) => {
        const key = idKey(item.id);
        return rowsOf(item, { ...adFacts.get(key), ...pictures.get(key) }, json);
      });
      await pause();
    }
  }

  async #picturesOf(tenantId: string, contents: AdContents) {
    const version = `${contents.version} ${contents.picturesVersion}`;
    const before = this.#pictures.get(tenantId);
    const groups =
      before?.version === version ? before.groups : await pictureGroups(contents.ads, this.prints(contents));
    this.#pictures.set(tenantId, { version, groups });
    return groups;
  }

  /** As `picturePrint` writes them, by `idKey`: of pictures that were fetched, here or by a local library. */
  prints({ ads, pictures }: AdContents): Map<string, unknown> {
    const kept = ads.flatMap((item) => {
      const { print } = this.#reading(item);
      return print === undefined ? [] : [[idKey(item.id), print] as const];
    });
    return new Map<string, unknown>([...kept, ...pictures]);
  }

  async knownAds(tenantId: string, contents: Pick<AdContents, 'version' | 'ads'>) {
    this.#detector ??= loadLanguageDetector();
    const detect = await this.#detector;
    const endTurn = await this.#turns.acquire(tenantId, new AbortController().signal);
    try {
      const before = this.#tenants.get(tenantId);
      if (before?.version === contents.version) return before.facts;
      const now = await this.#readAll(contents, detect, before);
      this.#tenants.set(tenantId, now);
      return now.facts;
    } finally {
      endTurn();
    }
  }

  async #readAll({ version, ads }: Pick<AdContents, 'version' | 'ads'>, detect: DetectLanguage, before?: KnownAds) {
    const languages = new Map<StoredItem, string | null>();
    const pause = pauses();
    const inOrder = ads.toSorted(byArrival);
    for (const [index, item] of inOrder.entries()) {
      languages.set(item, this.#languageOf(item, this.#reading(item).hash, detect));
      if (index % adsAtOnce === 0) await pause();
    }
    const byPage = new Map<string | null, PageVariants>();
    const variants = new Map<StoredItem, string | null>();
    for (const [pageId, items] of groupBy(inOrder, (item) => this.#reading(item).pageId)) {
      const members = items.map((item) => ({ item, hash: `${item.id} ${this.#reading(item).hash}` }));
      const page = await variantsOf(members, before?.byPage.get(pageId), pause);
      byPage.set(pageId, page);
      for (const [index, item] of items.entries()) variants.set(item, page.variants[index] ?? null);
    }
    const factsById = ads.map((item): [string, KnownAd] => {
      const { pageId, pageName } = this.#reading(item);
      const [language = null, variant = null] = [languages.get(item), variants.get(item)];
      return [idKey(item.id), { pageId, pageName, language, variant }];
    });
    return { version, facts: new Map(factsById), byPage };
  }

  #languageOf(item: StoredItem, hash: string, detect: DetectLanguage): string | null {
    const found = this.#languages.get(hash) ?? { language: detect(languageText(objectOf(item))) };
    this.#languages.set(hash, found);
    return found.language;
  }

  #reading({ json }: StoredItem): Reading {
    const memo = this.#read.get(json);
    if (memo) return memo;
    const ad = objectOf({ json });
    const pageId = idCell(ad.pageId);
    const reading = {
      pageId,
      pageName: pageNameOf(ad),
      hash: hash('sha256', JSON.stringify(copyOf(ad)), 'base64url'),
      print: printInAddress(ad),
    };
    this.#read.set(json, reading);
    return reading;
  }
}

const byArrival = (left: StoredItem, right: StoredItem): number =>
  left.firstOrder - right.firstOrder || (idKey(left.id) < idKey(right.id) ? -1 : 1);

/** Extends the existing groups where ads were only appended; otherwise makes them anew. */
async function variantsOf(
  members: readonly { item: StoredItem; hash: string }[],
  before: PageVariants | undefined,
  pause: () => Promise<void>,
): Promise<PageVariants> {
  const isContinued = before?.hashes.every((hash, index) => hash === members[index]?.hash);
  const page = before && isContinued ? before : { hashes: [], variants: [], index: new VariantIndex() };
  for (const { item, hash } of members.slice(page.hashes.length)) {
    page.variants.push(page.index.add(item.id, variantCopy(copyOf(objectOf(item)))));
    page.hashes.push(hash);
    if (page.hashes.length % adsAtOnce === 0) await pause();
  }
  return page;
}

function rowsOf(item: StoredItem, facts: Partial<KnownAd & KnownPicture>, json: boolean): AdRows {
  const text = decoder.decode(item.json);
  const { at: gatheredAt, firstAt: firstGatheredAt } = item;
  return adRows(JSON.parse(text), { ...facts, gatheredAt, firstGatheredAt, json: json ? text : '' });
}

interface AdFacts extends Partial<Pick<KnownAd, 'language' | 'variant'> & KnownPicture> {
  /** Milliseconds: when this version came. How long the ad has run is counted up to then. */
  gatheredAt: number;
  firstGatheredAt?: number;
  /** The object as it came, where its text is known. */
  json?: string;
}

export interface AdRows {
  ad: AdRow;
  sent: object;
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
    sent: ad,
    // A literal that spreads both takes ten times as long, and rows are made by the thousand.
    ad: Object.assign(sentFields(fields, id), derivedFields(fields, copy, facts), {
      json: jsonCell(facts.json ?? JSON.stringify(ad)),
    }),
    countries: asTexts(fields.countries).map((country) => ({ id, country })),
    platforms: asTexts(fields.publisherPlatform).map((platform) => ({ id, platform })),
    cards: copy.cards.map((card, index) => ({ id, number: index + 1, ...card, url: links[index] ?? null })),
  };
}

/** The text from which the language of an ad is derived; null of a template, whose words only the network knows. */
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
  const {
    gatheredAt,
    firstGatheredAt = gatheredAt,
    language = null,
    variant = null,
    picture = null,
    group = null,
  } = facts;
  const { daysRunning, stillRunning } = runOf(ad, gatheredAt);
  const { page, utm } = landingOf(ad);
  return {
    landingDomain: landingDomainOf(ad) ?? null,
    landing: textCell(page),
    utm: utm && JSON.stringify(utm),
    daysRunning: daysRunning ?? null,
    active: flagCell(stillRunning),
    firstLine: firstLineOf(copy),
    startedMonth: dateCell(ad.startedAt)?.slice(0, 7) ?? null,
    text: wholeText(copy),
    language,
    variant,
    ...mediaCounts(ad),
    picture,
    pictureGroup: group,
    firstGatheredAt: isoTime(firstGatheredAt),
    gatheredAt: isoTime(gatheredAt),
  };
}

type AdCopy = ReturnType<typeof copyOf>;

export const copyOf = (ad: Fields) => ({
  headline: textCell(ad.headline),
  body: textCell(ad.body),
  cards: objects(ad.cards).map((card) => ({
    title: textCell(cardField(card, 'title')),
    body: textCell(cardField(card, 'body')),
  })),
});

function wholeText({ headline, body, cards }: AdCopy): string | null {
  const texts = [headline, body, ...cards.flatMap((card) => [card.title, card.body])];
  const uncut = [...new Set(texts.filter((text) => text !== null))].join('\n');
  return uncut === '' ? null : clipText(uncut);
}

/** What a reader sees first. A template of the network (`{{product.name}}`) is seen by nobody. */
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
