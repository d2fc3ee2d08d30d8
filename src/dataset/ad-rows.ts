import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type DatasetContents, normalizeAdId } from '../storage/dataset.ts';
import { parseItem, type StoredItem } from '../storage/item-versions.ts';
import { countMedia, isTemplate, readCardField, readCardLink } from '../views/ad-media.ts';
import { computeRun } from '../views/dates.ts';
import { adFields } from '../views/fields.ts';
import { findLandingDomain, parseLanding } from '../views/landing.ts';
import { type DetectLanguage, loadLanguageDetector } from '../views/language.ts';
import { groupBy } from '../views/lists.ts';
import { sanitize } from '../views/safe-text.ts';
import { type Fields, isObject, readObjects } from '../views/view.ts';
import { createEventLoopYielder } from '../workers/event-loop-yielder.ts';
import { compareArrival, type GroupedPicture, groupPictures, readPerceptualHash } from './picture-groups.ts';
import {
  type AdRow,
  clipText,
  createCellReader,
  formatIsoTime,
  type Row,
  readTexts,
  toDateCell,
  toFlagCell,
  toIdCell,
  toJsonCell,
  toTextCell,
} from './tables.ts';
import { VariantIndex } from './variants.ts';

export interface KnownAdFacts {
  pageId: string | null;
  pageName: string | null;
  language: string | null;
  /** The same for ads of the dataset whose copy is nearly the same. */
  variant: string | null;
}

interface Reading extends Pick<KnownAdFacts, 'pageId' | 'pageName'> {
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
  facts: ReadonlyMap<string, KnownAdFacts>;
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

export function createAdRowReaders() {
  const memory = openMemory();
  const tenants = new LRUCache<string, AdRowReader>({ max: maxTenants, memoMethod: () => new AdRowReader(memory) });
  return { forTenant: (tenantId: string): AdRowReader => tenants.memo(tenantId) };
}

export type AdRowReaders = ReturnType<typeof createAdRowReaders>;

/** Of one tenant. Variants follow from the ads that are held and their order alone, so that every process finds the same. */
export class AdRowReader {
  readonly #memory: Memory;
  #known: Promise<KnownAds | undefined> = Promise.resolve(undefined);
  #pictures: { version: string; groups: ReadonlyMap<string, GroupedPicture> } | undefined;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  async *readRows(contents: AdContents, { json, ids }: { json: boolean; ids?: ReadonlySet<string> }) {
    const adFacts = await this.readFacts(contents);
    const pictures = await this.#picturesOf(contents);
    const { ads } = contents;
    const pause = createEventLoopYielder();
    const wanted = ids === undefined ? ads : ads.filter(({ id }) => ids.has(normalizeAdId(id)));
    for (let start = 0; start < wanted.length; start += adsAtOnce) {
      yield wanted.slice(start, start + adsAtOnce).map((item) => {
        const key = normalizeAdId(item.id);
        return rowsOf(item, { ...adFacts.get(key), ...pictures.get(key) }, json);
      });
      await pause();
    }
  }

  async #picturesOf(contents: AdContents) {
    const version = `${contents.version} ${contents.picturesVersion}`;
    if (this.#pictures?.version === version) return this.#pictures.groups;
    const groups = await groupPictures(contents.ads, this.readPerceptualHashes(contents));
    this.#pictures = { version, groups };
    return groups;
  }

  /** As `picturePrint` writes them, by `normalizeAdId`: of pictures that were fetched, here or by a local library. */
  readPerceptualHashes({ ads, pictures }: AdContents): Map<string, unknown> {
    const kept = ads.flatMap((item) => {
      const { print } = this.#reading(item);
      return print === undefined ? [] : [[normalizeAdId(item.id), print] as const];
    });
    return new Map<string, unknown>([...kept, ...pictures]);
  }

  /** One reading after the other: each extends what the one before has found. */
  async readFacts(contents: Pick<AdContents, 'version' | 'ads'>) {
    const reading = this.#known.then((before) =>
      before?.version === contents.version ? before : this.#readAll(contents, before),
    );
    this.#known = reading.catch(() => undefined);
    return (await reading).facts;
  }

  async #readAll({ version, ads }: Pick<AdContents, 'version' | 'ads'>, before?: KnownAds): Promise<KnownAds> {
    const detect = await loadLanguageDetector();
    const languages = new Map<StoredItem, string | null>();
    const pause = createEventLoopYielder();
    const inOrder = ads.toSorted(compareArrival);
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
    const factsById = ads.map((item): [string, KnownAdFacts] => {
      const { pageId, pageName } = this.#reading(item);
      const [language = null, variant = null] = [languages.get(item), variants.get(item)];
      return [normalizeAdId(item.id), { pageId, pageName, language, variant }];
    });
    return { version, facts: new Map(factsById), byPage };
  }

  #languageOf(item: StoredItem, hash: string, detect: DetectLanguage): string | null {
    const { languages } = this.#memory;
    const found = languages.get(hash) ?? { language: detect(extractLanguageText(parseItem(item))) };
    languages.set(hash, found);
    return found.language;
  }

  #reading({ json }: StoredItem): Reading {
    const { readings } = this.#memory;
    const memo = readings.get(json);
    if (memo) return memo;
    const ad = parseItem({ json });
    const pageId = toIdCell(ad.pageId);
    const reading = {
      pageId,
      pageName: pageNameOf(ad),
      hash: hash('sha256', JSON.stringify(extractAdTexts(ad)), 'base64url'),
      print: readPerceptualHash(ad),
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
    page.variants.push(page.index.add(item.id, selectVariantText(extractAdTexts(parseItem(item)))));
    page.hashes.push(hash);
    if (page.hashes.length % adsAtOnce === 0) await pause();
  }
  return page;
}

function rowsOf(item: StoredItem, facts: Partial<KnownAdFacts & GroupedPicture>, json: boolean): AdRows {
  const text = decoder.decode(item.json);
  const { at: gatheredAt, firstAt: firstGatheredAt } = item;
  return buildAdRows(JSON.parse(text), { ...facts, gatheredAt, firstGatheredAt, json: json ? text : '' });
}

interface AdRowFacts extends Partial<Pick<KnownAdFacts, 'language' | 'variant'> & GroupedPicture> {
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
export function buildAdRows(ad: object, facts: AdRowFacts): AdRows {
  const fields = ad as Fields;
  const id = toIdCell(fields.id) ?? '';
  const copy = extractAdTexts(fields);
  const links = readObjects(fields.cards).map((card) => toTextCell(readCardLink(card)));
  return {
    sent: ad,
    // A literal that spreads both takes ten times as long, and rows are made by the thousand.
    ad: Object.assign(sentFields(fields, id), derivedFields(fields, copy, facts), {
      json: toJsonCell(facts.json ?? JSON.stringify(ad)),
    }),
    countries: readTexts(fields.countries).map((country) => ({ id, country })),
    platforms: readTexts(fields.publisherPlatform).map((platform) => ({ id, platform })),
    cards: copy.cards.map((card, index) => ({ id, number: index + 1, ...card, url: links[index] ?? null })),
  };
}

/** The text from which the language of an ad is derived; null of a template, whose words only the network knows. */
export function extractLanguageText(ad: object): string | null {
  const { headline, body, cards } = extractAdTexts(ad as Fields);
  const spoken = (text: string | null) => (isTemplate(text) ? null : text);
  return wholeText({
    headline: spoken(headline),
    body: spoken(body),
    cards: cards.map((card) => ({ title: spoken(card.title), body: spoken(card.body) })),
  });
}

const sentAdCells = createCellReader(adFields);

const sentFields = (ad: Fields, id: string) =>
  Object.assign({ id, pageId: toIdCell(ad.pageId), pageName: pageNameOf(ad) }, sentAdCells(ad));

/** Without spaces around it, which would make two advertisers of one. */
function pageNameOf(ad: Fields): string | null {
  const page = isObject(ad.page) ? ad.page : {};
  return (toTextCell(page.pageName) ?? toTextCell(ad.pageName))?.trim() ?? null;
}

function derivedFields(ad: Fields, copy: AdTexts, facts: AdRowFacts) {
  const {
    gatheredAt,
    firstGatheredAt = gatheredAt,
    language = null,
    variant = null,
    picture = null,
    group = null,
  } = facts;
  const { daysRunning, stillRunning } = computeRun(ad, gatheredAt);
  const { page, utm } = parseLanding(ad);
  return {
    landingDomain: findLandingDomain(ad) ?? null,
    landing: toTextCell(page),
    utm: utm && JSON.stringify(utm),
    daysRunning: daysRunning ?? null,
    active: toFlagCell(stillRunning),
    firstLine: firstLineOf(copy),
    startedMonth: toDateCell(ad.startedAt)?.slice(0, 7) ?? null,
    text: wholeText(copy),
    language,
    variant,
    ...countMedia(ad),
    picture,
    pictureGroup: group,
    firstGatheredAt: formatIsoTime(firstGatheredAt),
    gatheredAt: formatIsoTime(gatheredAt),
  };
}

type AdTexts = ReturnType<typeof extractAdTexts>;

export const extractAdTexts = (ad: Fields) => ({
  headline: toTextCell(ad.headline),
  body: toTextCell(ad.body),
  cards: readObjects(ad.cards).map((card) => ({
    title: toTextCell(readCardField(card, 'title')),
    body: toTextCell(readCardField(card, 'body')),
  })),
});

function wholeText({ headline, body, cards }: AdTexts): string | null {
  const texts = [headline, body, ...cards.flatMap((card) => [card.title, card.body])];
  const uncut = [...new Set(texts.filter((text) => text !== null))].join('\n');
  return uncut === '' ? null : clipText(uncut);
}

/** What a reader sees first. A template of the network (`{{product.name}}`) is seen by nobody. */
function firstLineOf({ headline, body, cards: [card] }: AdTexts): string | null {
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
export function selectVariantText({ headline, body, cards }: AdTexts): string | null {
  const own = wholeText({ headline, body, cards: [] });
  return own !== null && sanitize(own).trim() !== '' ? own : wholeText({ headline: null, body: null, cards });
}
