import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type DatasetContents, idKey } from '../storage/dataset.ts';
import { objectOf, type StoredItem } from '../storage/item-versions.ts';
import { cardField, isTemplate, linkOf, mediaCounts } from '../views/ad-media.ts';
import { runOf } from '../views/dates.ts';
import { adFields } from '../views/fields.ts';
import { landingDomainOf, landingOf } from '../views/landing.ts';
import { type DetectLanguage, loadLanguageDetector } from '../views/language.ts';
import { groupBy } from '../views/lists.ts';
import { sanitize } from '../views/safe-text.ts';
import { type Fields, isObject, objects } from '../views/view.ts';
import { pauses } from '../workers/pauses.ts';
import { byArrival, type KnownPicture, pictureGroups, printInAddress } from './picture-groups.ts';
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

/** What was found in the texts and objects of all tenants. */
const openMemory = () => ({
  languages: new LRUCache<string, { language: string | null }>({ max: maxTexts }),
  readings: new WeakMap<Uint8Array, Reading>(),
});
type Memory = ReturnType<typeof openMemory>;

export function openAdRows() {
  const memory = openMemory();
  const tenants = new LRUCache<string, AdRowReader>({ max: maxTenants, memoMethod: () => new AdRowReader(memory) });
  return { forTenant: (tenantId: string): AdRowReader => tenants.memo(tenantId) };
}

export type AdRowReaders = ReturnType<typeof openAdRows>;

/** Of one tenant. Variants follow from the ads that are held and their order alone, so that every process finds the same. */
export class AdRowReader {
  readonly #memory: Memory;
  #known: Promise<KnownAds | undefined> = Promise.resolve(undefined);
  #pictures: { version: string; groups: ReadonlyMap<string, KnownPicture> } | undefined;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  async *read(contents: AdContents, { json, ids }: { json: boolean; ids?: ReadonlySet<string> }) {
    const adFacts = await this.knownAds(contents);
    const pictures = await this.#picturesOf(contents);
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

  async #picturesOf(contents: AdContents) {
    const version = `${contents.version} ${contents.picturesVersion}`;
    if (this.#pictures?.version === version) return this.#pictures.groups;
    const groups = await pictureGroups(contents.ads, this.prints(contents));
    this.#pictures = { version, groups };
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

  /** One reading after the other: each extends what the one before has found. */
  async knownAds(contents: Pick<AdContents, 'version' | 'ads'>) {
    const reading = this.#known.then((before) =>
      before?.version === contents.version ? before : this.#readAll(contents, before),
    );
    this.#known = reading.catch(() => undefined);
    return (await reading).facts;
  }

  async #readAll({ version, ads }: Pick<AdContents, 'version' | 'ads'>, before?: KnownAds): Promise<KnownAds> {
    const detect = await loadLanguageDetector();
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
    const { languages } = this.#memory;
    const found = languages.get(hash) ?? { language: detect(languageText(objectOf(item))) };
    languages.set(hash, found);
    return found.language;
  }

  #reading({ json }: StoredItem): Reading {
    const { readings } = this.#memory;
    const memo = readings.get(json);
    if (memo) return memo;
    const ad = objectOf({ json });
    const pageId = idCell(ad.pageId);
    const reading = {
      pageId,
      pageName: pageNameOf(ad),
      hash: hash('sha256', JSON.stringify(copyOf(ad)), 'base64url'),
      print: printInAddress(ad),
    };
    readings.set(json, reading);
    return reading;
  }
}

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

/** Returns the text by which the variants of ads are told: headline and body, or the texts of the cards if the ad has neither. */
export function variantCopy({ headline, body, cards }: AdCopy): string | null {
  const own = wholeText({ headline, body, cards: [] });
  return own !== null && sanitize(own).trim() !== '' ? own : wholeText({ headline: null, body: null, cards });
}
