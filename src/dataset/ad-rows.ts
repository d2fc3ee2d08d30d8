import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { createLazyGetter } from '../lazy-getter.ts';
import { createLruOptions } from '../lru-options.ts';
import { type DatasetContents, type Gathering, normalizeAdId } from '../storage/dataset.ts';
import { findVersionAt, type ItemVersion, parseItem, type StoredItem } from '../storage/item-versions.ts';
import { countMedia, hasPlaceholder, readCardField, readCardLink } from '../views/ad-media.ts';
import { parseTime } from '../views/dates.ts';
import { computeRunningTime } from '../views/days-running.ts';
import { dayMs } from '../views/durations.ts';
import { adFields } from '../views/fields.ts';
import { groupBy } from '../views/group-by.ts';
import { findLandingDomain, parseLandingPage } from '../views/landing.ts';
import { type DetectLanguage, loadLanguageDetector } from '../views/language.ts';
import { sanitize } from '../views/safe-text.ts';
import { isObject, isVisibleText, readObjects, type UntypedFields } from '../views/view.ts';
import { createEventLoopYielder } from '../workers/event-loop-yielder.ts';
import { createAdvertiserKeyFinder } from './advertisers.ts';
import { computeActiveWhenLastRead, findLastGatherings, findLastSeenRanges } from './last-seen.ts';
import { findListingOrder, type ListingOrder, type OrderValues, readOrderValues } from './listing-order.ts';
import {
  compareByArrival,
  findPictureState,
  type GroupedPicture,
  groupPictures,
  readPerceptualHash,
  readPictureRecord,
} from './picture-groups.ts';
import {
  type AdRow,
  createCellReader,
  formatIsoTime,
  type Row,
  readDistinctTexts,
  toDateCell,
  toFlagCell,
  toIdCell,
  toJsonCell,
  toTextCell,
  truncateCellText,
} from './tables.ts';
import { findPublicUrl, listReach, readPayers } from './transparency.ts';
import { VariantIndex } from './variants.ts';

/**
 * Facts about an ad that are computed once for each version of the dataset. Summaries, launch counts and notes on
 * missing data use these cached facts, because building the whole table row of an ad would be slower.
 */
export interface AdFacts {
  pageId: string | null;
  pageName: string | null;
  language: string | null;
  /**
   * The id of the ad's variant, which is a group of ads of the same advertiser with nearly the same text. Null if the
   * ad has no visible text.
   */
  variantId: string | null;
  /** The time at which the service last saw the ad running, in milliseconds since the Unix epoch. */
  lastSeenAt: number | null;
  /** True if the ad has an end date that had passed when the ad was read. */
  hasEndDatePassed: boolean;
  /** The time of the latest API response that contained the ad, in milliseconds since the Unix epoch. */
  readAt: number;
  /**
   * The fields for which the ad has a value, among those that the board shows in charts and filters, e.g. `startedAt`.
   */
  filledChartedFields: readonly ChartedField[];
}

/** The ad fields that the board (the interactive view of ads) shows in charts and filters. */
export const chartedFields = ['displayFormat', 'ctaType', 'startedAt', 'country'] as const;
type ChartedField = (typeof chartedFields)[number];

/**
 * Returns the time at which the service last saw an ad running, in milliseconds since the Unix epoch. Returns null for
 * a date more than one day after the ad was read (`readAt`), because such a date must be wrong. It would count as the
 * last day on which the search was observed, so all other ads would seem to have ended.
 */
function readLastSeenTime({ lastSeenAt }: UntypedFields, readAt: number): number | null {
  const lastSeenTime = parseTime(lastSeenAt);
  return lastSeenTime === undefined || lastSeenTime > readAt + dayMs ? null : lastSeenTime;
}

/** Values that are read from the JSON of an ad. They are cached, because parsing the JSON is slow. */
interface ParsedAd
  extends Pick<AdFacts, 'pageId' | 'pageName' | 'lastSeenAt' | 'hasEndDatePassed' | 'filledChartedFields'> {
  textHash: string;
  perceptualHash: string | undefined;
  /**
   * Dates, spend, reach and similar values of the ad. The server compares these values to detect how the service sorts
   * ads.
   */
  orderValues: OrderValues;
}

/**
 * The variants of one advertiser. A variant is a group of ads with nearly equal texts. `adHashes[i]` and
 * `variantIds[i]` belong to the same ad. The ads are in the order of their arrival.
 */
interface AdvertiserVariants {
  adHashes: string[];
  variantIds: (string | null)[];
  variantIndex: VariantIndex;
}

/** Facts about all ads in one version of a tenant's dataset. A tenant is the owner of an API key. */
interface DatasetFacts {
  version: string;
  factsById: ReadonlyMap<string, AdFacts>;
  /** The keys come from `createAdvertiserKeyFinder`. The key null stands for the ads whose advertiser is unknown. */
  variantsByAdvertiser: ReadonlyMap<string | null, AdvertiserVariants>;
}

/** Facts about the gatherings of a dataset. A gathering consists of the stored ads of one search. */
interface GatheringFacts {
  /** For each incomplete gathering, the order in which the service listed its ads. The keys are gathering ids. */
  listingOrders: ReadonlyMap<string, ListingOrder | undefined>;
  /**
   * For each gathering, the first and the last date on which any of its ads was seen running. The keys are gathering
   * ids.
   */
  lastSeenRanges: Awaited<ReturnType<typeof findLastSeenRanges>>;
  /** For each ad, the gathering that read the ad last. The keys are ad ids in lower case. */
  lastGatheringByAd: Awaited<ReturnType<typeof findLastGatherings>>;
}

type AdContents = Pick<DatasetContents, 'version' | 'ads' | 'gatherings' | 'pictureRecords' | 'pictureRecordsVersion'>;

/**
 * The maximum number of tenants (API keys) whose facts stay in memory. It is also the number of tenants whose SQL
 * tables stay loaded.
 */
const maxCachedTenants = 2;
/** The number of ads to process before the event loop gets a turn, so that other calls are not delayed. */
const adsPerBatch = 10;

const maxCachedLanguages = 20_000;

const decoder = new TextDecoder();

/**
 * Creates the caches that all tenants (API keys) share. No tenant can read data of another tenant through these caches,
 * because a lookup requires the hash of the ad text or the stored object itself.
 */
const createSharedCaches = () => ({
  languagesByTextHash: new LRUCache<string, { language: string | null }>(createLruOptions(maxCachedLanguages)),
  parsedAdsByJson: new WeakMap<Uint8Array, ParsedAd>(),
  currentHashesByJson: new WeakMap<Uint8Array, { record: unknown; perceptualHash: string | undefined }>(),
});
type SharedCaches = ReturnType<typeof createSharedCaches>;

/**
 * Returns a factory for `AdRowReader` objects, one for each tenant (API key). A reader caches facts between the calls
 * of its tenant.
 * @param now returns milliseconds since the Unix epoch; needed to detect expired picture URLs
 */
export function createAdRowReaderFactory(now: () => number) {
  // The caches are created on first use, because they allocate memory for all their entries at once.
  const getSharedCaches = createLazyGetter(createSharedCaches);
  const readersByTenant = new LRUCache<string, AdRowReader>({
    max: maxCachedTenants,
    memoMethod: () => new AdRowReader(getSharedCaches(), now),
  });
  return { forTenant: (tenantId: string): AdRowReader => readersByTenant.memo(tenantId) };
}

/** A factory of row readers, which creates one reader for each tenant (API key). */
export type AdRowReaderFactory = ReturnType<typeof createAdRowReaderFactory>;

/**
 * Converts the stored ads of one tenant (API key) to table rows. Each row contains the variant of its ad (the group of
 * ads with nearly equal texts). All processes compute the same groups, because the groups depend only on the stored ads
 * and their order of arrival.
 */
export class AdRowReader {
  readonly #sharedCaches: SharedCaches;
  readonly #now: () => number;
  #knownFacts: Promise<DatasetFacts | undefined> = Promise.resolve(undefined);
  #groupedPictures: { version: string; groups: ReadonlyMap<string, GroupedPicture> } | undefined;

  #gatheringFacts: { version: string; facts: Promise<GatheringFacts> } | undefined;

  constructor(sharedCaches: SharedCaches, now: () => number) {
    this.#sharedCaches = sharedCaches;
    this.#now = now;
  }

  /**
   * Returns a string that changes once a day. Table rows must then be rebuilt, because picture URLs may have expired.
   */
  getDailyVersion(): string {
    return String(Math.floor(this.#now() / dayMs));
  }

  /**
   * Yields the table rows of ads in batches.
   * @param options `includeJson`: true if each row includes the JSON of its ad. `ids`: the ids of the ads to read, in
   * lower case; all ads by default.
   */
  async *readRows(contents: AdContents, { includeJson, ids }: { includeJson: boolean; ids?: ReadonlySet<string> }) {
    const adFacts = await this.readFacts(contents);
    const pictures = await this.#groupPictures(contents);
    const perceptualHashes = this.readPerceptualHashes(contents);
    const { lastSeenRanges, lastGatheringByAd } = await this.#readGatheringFacts(contents);
    const now = this.#now();
    const { ads } = contents;
    const yieldToEventLoop = createEventLoopYielder();
    const selectedAds = ids === undefined ? ads : ads.filter(({ id }) => ids.has(normalizeAdId(id)));
    for (let start = 0; start < selectedAds.length; start += adsPerBatch) {
      yield selectedAds.slice(start, start + adsPerBatch).map((storedAd) => {
        const key = normalizeAdId(storedAd.id);
        const lastSeenTo = lastSeenRanges.get(lastGatheringByAd.get(key)?.id ?? '')?.lastSeenTo;
        const pictureAttempt = { now, perceptualHash: perceptualHashes.get(key) };
        return buildStoredAdRows(
          storedAd,
          { ...adFacts.get(key), ...pictures.get(key), lastSeenTo, pictureAttempt },
          includeJson,
        );
      });
      await yieldToEventLoop();
    }
  }

  async #groupPictures(contents: AdContents) {
    const version = `${contents.version} ${contents.pictureRecordsVersion}`;
    if (this.#groupedPictures?.version === version) return this.#groupedPictures.groups;
    const groups = await groupPictures(contents.ads, this.readPerceptualHashes(contents));
    this.#groupedPictures = { version, groups };
    return groups;
  }

  /**
   * Returns the perceptual hashes of ad pictures, by ad id in lower case. The value is the hash, or
   * `failedPictureMarker` if no attempt to fetch the picture has succeeded. If only the last attempt failed,
   * `failedPictureMarker` follows the hash. A picture that was never fetched has no entry, unless it comes from a local
   * library (a server of imported ads), which includes the hash in the picture URL. An ad whose picture has changed
   * since it was fetched has no entry either.
   */
  readPerceptualHashes({ ads, pictureRecords }: AdContents): Map<string, unknown> {
    const libraryHashes = ads.flatMap((storedAd) => {
      const { perceptualHash } = this.#parseAd(storedAd);
      return perceptualHash === undefined ? [] : [[normalizeAdId(storedAd.id), perceptualHash] as const];
    });
    const fetchedHashes = ads.flatMap((storedAd) => {
      const id = normalizeAdId(storedAd.id);
      const perceptualHash = pictureRecords.has(id)
        ? this.#readCurrentHash(storedAd, pictureRecords.get(id))
        : undefined;
      return perceptualHash === undefined ? [] : [[id, perceptualHash] as const];
    });
    // The hashes from a local library come last, so that they replace `failedPictureMarker`. The library may have
    // stored a picture after an attempt to fetch it had failed.
    return new Map<string, unknown>([...fetchedHashes, ...libraryHashes]);
  }

  #readCurrentHash({ json }: ItemVersion, record: unknown): string | undefined {
    const { currentHashesByJson } = this.#sharedCaches;
    const cachedHash = currentHashesByJson.get(json);
    if (cachedHash && cachedHash.record === record) return cachedHash.perceptualHash;
    const perceptualHash = readPictureRecord(record, parseItem({ json }));
    currentHashesByJson.set(json, { record, perceptualHash });
    return perceptualHash;
  }

  /**
   * Returns the first and the last date on which any ad of each gathering was seen running, by gathering id. A
   * gathering consists of the stored ads of one search.
   */
  async readLastSeenRanges(contents: AdContents): Promise<GatheringFacts['lastSeenRanges']> {
    return (await this.#readGatheringFacts(contents)).lastSeenRanges;
  }

  /**
   * Returns the order in which the service listed the ads of each incomplete gathering (the stored ads of one search),
   * by gathering id.
   */
  async readListingOrders(contents: AdContents): Promise<GatheringFacts['listingOrders']> {
    return (await this.#readGatheringFacts(contents)).listingOrders;
  }

  #readGatheringFacts(contents: AdContents): Promise<GatheringFacts> {
    const { version } = contents;
    if (this.#gatheringFacts?.version === version) return this.#gatheringFacts.facts;
    const gatheringFacts = this.#computeGatheringFacts(contents);
    this.#gatheringFacts = { version, facts: gatheringFacts };
    gatheringFacts.catch(() => {
      this.#gatheringFacts = undefined;
    });
    return gatheringFacts;
  }

  async #computeGatheringFacts({ ads, gatherings }: AdContents): Promise<GatheringFacts> {
    const adsById = new Map(ads.map((storedAd) => [normalizeAdId(storedAd.id), storedAd]));
    const incompleteGatherings = gatherings.filter(
      ({ isComplete, partGatheringIds }) => !isComplete && partGatheringIds.length === 0,
    );
    // Use the values that the ads had when the service listed them, because a later response may contain other values.
    const listOrderValues = ({ adIds, responseSequenceNumber }: Gathering) =>
      [...adIds].flatMap((id) => {
        const storedAd = adsById.get(id);
        return storedAd ? [this.#parseAd(findVersionAt(responseSequenceNumber, storedAd) ?? storedAd).orderValues] : [];
      });
    return {
      listingOrders: new Map(
        incompleteGatherings.map((gathering) => [
          gathering.id,
          findListingOrder(listOrderValues(gathering), gathering.filters ?? {}),
        ]),
      ),
      lastSeenRanges: await findLastSeenRanges(gatherings, (id) => {
        const storedAd = adsById.get(id);
        return storedAd && this.#parseAd(storedAd).lastSeenAt;
      }),
      lastGatheringByAd: await findLastGatherings({ gatherings }),
    };
  }

  /**
   * Returns the facts about each ad, by ad id in lower case. Concurrent calls wait for each other, because each call
   * reuses the facts that the previous call computed.
   */
  async readFacts(contents: Pick<AdContents, 'version' | 'ads'>) {
    const currentFacts = this.#knownFacts.then((previousFacts) =>
      previousFacts?.version === contents.version ? previousFacts : this.#buildFacts(contents, previousFacts),
    );
    this.#knownFacts = currentFacts.catch(() => undefined);
    return (await currentFacts).factsById;
  }

  async #buildFacts(
    { version, ads }: Pick<AdContents, 'version' | 'ads'>,
    previousFacts?: DatasetFacts,
  ): Promise<DatasetFacts> {
    const detectLanguage = await loadLanguageDetector();
    const languagesByTextHash = new Map<StoredItem, string | null>();
    const yieldToEventLoop = createEventLoopYielder();
    const adsByArrival = ads.toSorted(compareByArrival);
    for (const [index, storedAd] of adsByArrival.entries()) {
      languagesByTextHash.set(
        storedAd,
        this.#detectLanguage(storedAd, this.#parseAd(storedAd).textHash, detectLanguage),
      );
      if (index % adsPerBatch === 0) await yieldToEventLoop();
    }
    const findAdvertiserKey = createAdvertiserKeyFinder(ads.map((storedAd) => this.#parseAd(storedAd)));
    const variantsByAdvertiser = new Map<string | null, AdvertiserVariants>();
    const variants = new Map<StoredItem, string | null>();
    const adsByAdvertiser = groupBy(adsByArrival, (storedAd) => findAdvertiserKey(this.#parseAd(storedAd)));
    for (const [advertiserKey, adsOfAdvertiser] of adsByAdvertiser) {
      const hashedAds = adsOfAdvertiser.map((storedAd) => ({
        storedAd,
        adHash: `${storedAd.id} ${this.#parseAd(storedAd).textHash}`,
      }));
      const previousVariants = previousFacts?.variantsByAdvertiser.get(advertiserKey);
      const advertiserVariants = await extendVariants(hashedAds, previousVariants, yieldToEventLoop);
      variantsByAdvertiser.set(advertiserKey, advertiserVariants);
      for (const [index, storedAd] of adsOfAdvertiser.entries())
        variants.set(storedAd, advertiserVariants.variantIds[index] ?? null);
    }
    const factsById = ads.map((storedAd): [string, AdFacts] => {
      const { pageId, pageName, lastSeenAt, hasEndDatePassed, filledChartedFields } = this.#parseAd(storedAd);
      const [language = null, variant = null] = [languagesByTextHash.get(storedAd), variants.get(storedAd)];
      return [
        normalizeAdId(storedAd.id),
        {
          pageId,
          pageName,
          language,
          variantId: variant,
          lastSeenAt,
          hasEndDatePassed,
          filledChartedFields,
          readAt: storedAd.at,
        },
      ];
    });
    return { version, factsById: new Map(factsById), variantsByAdvertiser };
  }

  #detectLanguage(storedAd: StoredItem, hash: string, detectLanguage: DetectLanguage): string | null {
    const { languagesByTextHash } = this.#sharedCaches;
    const detectedLanguage = languagesByTextHash.get(hash) ?? {
      language: detectLanguage(extractLanguageText(parseItem(storedAd))),
    };
    languagesByTextHash.set(hash, detectedLanguage);
    return detectedLanguage.language;
  }

  #parseAd({ json, at }: ItemVersion): ParsedAd {
    const { parsedAdsByJson } = this.#sharedCaches;
    const cachedAd = parsedAdsByJson.get(json);
    if (cachedAd) return cachedAd;
    const ad = parseItem({ json });
    const pageId = toIdCell(ad.pageId);
    const parsedAd = {
      pageId,
      pageName: readPageName(ad),
      lastSeenAt: readLastSeenTime(ad, at),
      hasEndDatePassed: (parseTime(ad.endDate) ?? Number.POSITIVE_INFINITY) <= at,
      textHash: hash('sha256', JSON.stringify(extractAdTexts(ad)), 'base64url'),
      perceptualHash: readPerceptualHash(ad),
      orderValues: readOrderValues(ad, at),
      filledChartedFields: listChartedFields(ad),
    };
    parsedAdsByJson.set(json, parsedAd);
    return parsedAd;
  }
}

const listChartedFields = (ad: UntypedFields): ChartedField[] =>
  chartedFields.filter((field) => {
    if (field === 'country') return readDistinctTexts(ad.countries).length > 0;
    return field === 'startedAt' ? parseTime(ad.startedAt) !== undefined : toTextCell(ad[field]) !== null;
  });

/**
 * Groups the ads of one advertiser by nearly equal text. If ads were only appended since the previous call, extends the
 * previous groups. Otherwise computes all groups again.
 */
async function extendVariants(
  hashedAds: readonly { storedAd: StoredItem; adHash: string }[],
  previousVariants: AdvertiserVariants | undefined,
  yieldToEventLoop: () => Promise<void>,
): Promise<AdvertiserVariants> {
  const wereAdsOnlyAppended = previousVariants?.adHashes.every((adHash, index) => adHash === hashedAds[index]?.adHash);
  const advertiserVariants =
    previousVariants && wereAdsOnlyAppended
      ? previousVariants
      : { adHashes: [], variantIds: [], variantIndex: new VariantIndex() };
  for (const { storedAd, adHash } of hashedAds.slice(advertiserVariants.adHashes.length)) {
    advertiserVariants.variantIds.push(
      advertiserVariants.variantIndex.addAd(storedAd.id, selectVariantText(extractAdTexts(parseItem(storedAd)))),
    );
    advertiserVariants.adHashes.push(adHash);
    if (advertiserVariants.adHashes.length % adsPerBatch === 0) await yieldToEventLoop();
  }
  return advertiserVariants;
}

/** Builds the table rows of a stored ad from its JSON. */
function buildStoredAdRows(storedAd: StoredItem, facts: Omit<AdRowFacts, 'gatheredAt'>, includeJson: boolean): AdRows {
  const adJson = decoder.decode(storedAd.json);
  const { at: gatheredAt, firstAt: firstGatheredAt } = storedAd;
  return buildAdRows(JSON.parse(adJson), { ...facts, gatheredAt, firstGatheredAt, json: includeJson ? adJson : '' });
}

/** Values in the table row of an ad that do not come from the JSON of the ad, such as its time of arrival. */
interface AdRowFacts extends Partial<Pick<AdFacts, 'language' | 'variantId'> & GroupedPicture> {
  /**
   * The time at which this version of the ad arrived, in milliseconds since the Unix epoch. The columns `daysRunning`
   * and `active` describe the ad at this time.
   */
  gatheredAt: number;
  /**
   * The time at which the first version of the ad arrived, in milliseconds since the Unix epoch. Defaults to
   * `gatheredAt`.
   */
  firstGatheredAt?: number;
  /** The latest date on which any ad of the same search was seen running, as ISO text. */
  lastSeenTo?: string | null | undefined;
  /** The last attempt to fetch the ad's picture. If undefined, the `pictureState` column is null. */
  pictureAttempt?: Parameters<typeof findPictureState>[1];
  /** The JSON of the ad as the service sent it. Defaults to the serialized ad object. */
  json?: string;
}

/** The rows of one ad in all tables that contain ads, e.g. one row in `ads` and several in `ad_countries`. */
export interface AdRows {
  ad: AdRow;
  /** The ad as the service sent it, with all of its fields. */
  originalAd: object;
  countries: Row<'ad_countries'>[];
  platforms: Row<'ad_platforms'>[];
  reach: Row<'ad_reach'>[];
  cards: Row<'ad_cards'>[];
}

/**
 * Builds the rows of an ad in all tables. The service may omit fields, or send other types than the API document
 * defines.
 */
export function buildAdRows(ad: object, facts: AdRowFacts): AdRows {
  const fields = ad as UntypedFields;
  const id = toIdCell(fields.id) ?? '';
  const adTexts = extractAdTexts(fields);
  const cardLinks = readObjects(fields.cards).map((card) => toTextCell(readCardLink(card)));
  return {
    originalAd: ad,
    // This function runs for thousands of ads. `Object.assign` is ten times as fast as an object literal with two
    // spreads.
    ad: Object.assign(buildApiColumns(fields, id), buildDerivedColumns(fields, adTexts, facts), readPayers(fields), {
      json: toJsonCell(facts.json ?? JSON.stringify(ad)),
    }),
    countries: readDistinctTexts(fields.countries).map((country) => ({ id, country })),
    platforms: readDistinctTexts(fields.publisherPlatform).map((platform) => ({ id, platform })),
    reach: listReach(id, fields),
    cards: adTexts.cards.map((card, index) => ({ id, number: index + 1, ...card, url: cardLinks[index] ?? null })),
  };
}

/**
 * Returns the text from which the language of an ad is detected, or null if there is no such text. Omits texts with
 * placeholders such as `{{product.name}}`, because the ad network replaces the placeholders with different words.
 */
export function extractLanguageText(ad: object): string | null {
  return joinAdTexts(dropTextsWithPlaceholders(extractAdTexts(ad as UntypedFields)));
}

const dropTextsWithPlaceholders = ({ headline, body, cards }: AdTexts): AdTexts => ({
  headline: dropTextWithPlaceholder(headline),
  body: dropTextWithPlaceholder(body),
  cards: cards.map((card) => ({
    title: dropTextWithPlaceholder(card.title),
    body: dropTextWithPlaceholder(card.body),
  })),
});

const dropTextWithPlaceholder = (text: string | null) => (hasPlaceholder(text) ? null : text);

/**
 * Returns true if any text of an ad contains a placeholder such as `{{product.name}}`. The ad network replaces
 * placeholders, so people saw a different text.
 */
const hasTextWithPlaceholder = ({ linkDescription }: UntypedFields, { headline, body, cards }: AdTexts): boolean =>
  [headline, body, linkDescription, ...cards.flatMap((card) => [card.title, card.body])].some(hasPlaceholder);

const readApiCells = createCellReader(adFields);

const buildApiColumns = (ad: UntypedFields, id: string) =>
  Object.assign({ id, pageId: toIdCell(ad.pageId), pageName: readPageName(ad) }, readApiCells(ad));

/**
 * Returns the name of the ad's advertiser page. Removes spaces around the name. Otherwise, an advertiser whose name has
 * extra spaces in some ads would be counted as two advertisers.
 */
function readPageName(ad: UntypedFields): string | null {
  const page = isObject(ad.page) ? ad.page : {};
  return (toTextCell(page.pageName) ?? toTextCell(ad.pageName))?.trim() ?? null;
}

/** Builds the columns of the `ads` table that this server computes from API fields, e.g. `daysRunning`. */
function buildDerivedColumns(ad: UntypedFields, texts: AdTexts, facts: AdRowFacts) {
  const {
    gatheredAt,
    firstGatheredAt = gatheredAt,
    language = null,
    variantId = null,
    perceptualHash = null,
    groupId = null,
    lastSeenTo = null,
    pictureAttempt,
  } = facts;
  const { daysRunning, stillRunning } = computeRunningTime(ad, gatheredAt);
  const { landingPage, campaignParameters } = parseLandingPage(ad);
  return {
    landingDomain: findLandingDomain(ad) ?? null,
    landing: toTextCell(landingPage),
    utm: campaignParameters && JSON.stringify(campaignParameters),
    daysRunning: daysRunning ?? null,
    active: toFlagCell(stillRunning),
    activeWhenLastRead: computeActiveWhenLastRead(
      { lastSeenAt: toDateCell(ad.lastSeenAt), endDate: toDateCell(ad.endDate) },
      lastSeenTo,
    ),
    firstLine: findFirstLine(texts),
    startedMonth: toDateCell(ad.startedAt)?.slice(0, 7) ?? null,
    text: joinAdTexts(texts),
    language,
    variant: variantId,
    hasPlaceholders: Number(hasTextWithPlaceholder(ad, texts)),
    ...countMedia(ad),
    picture: perceptualHash,
    pictureGroup: groupId,
    pictureState: pictureAttempt === undefined ? null : findPictureState(ad, pictureAttempt),
    publicUrl: findPublicUrl(ad),
    firstGatheredAt: formatIsoTime(firstGatheredAt),
    gatheredAt: formatIsoTime(gatheredAt),
  };
}

type AdTexts = ReturnType<typeof extractAdTexts>;

/** Returns the texts of an ad: its headline, its body, and the title and body of each card. Missing texts are null. */
export const extractAdTexts = (ad: UntypedFields) => ({
  headline: toTextCell(ad.headline),
  body: toTextCell(ad.body),
  cards: readObjects(ad.cards).map((card) => ({
    title: toTextCell(readCardField(card, 'title')),
    body: toTextCell(readCardField(card, 'body')),
  })),
});

/** Joins all distinct texts of an ad with line breaks. Returns null if the ad has no text. */
function joinAdTexts({ headline, body, cards }: AdTexts): string | null {
  const texts = [headline, body, ...cards.flatMap((card) => [card.title, card.body])];
  const fullText = [...new Set(texts.filter((text) => text !== null))].join('\n');
  return fullText === '' ? null : truncateCellText(fullText);
}

/**
 * Returns the first line of text that people see in an ad. Skips texts with placeholders such as `{{product.name}}`,
 * because people see other words in their place.
 */
function findFirstLine({ headline, body, cards: [card] }: AdTexts): string | null {
  for (const text of [body, card?.body, headline, card?.title]) {
    if (!text || hasPlaceholder(text)) continue;
    const line = text.split(/\r?\n|\r/).find(isVisibleText);
    if (line !== undefined) return line.trim();
  }
  return null;
}

/**
 * Returns the text by which similar ads are grouped: headline and body, or the card texts if both are missing. Omits
 * texts with placeholders such as `{{product.name}}`, because ads for different products share such texts.
 */
export function selectVariantText(texts: AdTexts): string | null {
  const { headline, body, cards } = dropTextsWithPlaceholders(texts);
  const mainText = joinAdTexts({ headline, body, cards: [] });
  return mainText !== null && sanitize(mainText).trim() !== ''
    ? mainText
    : joinAdTexts({ headline: null, body: null, cards });
}
