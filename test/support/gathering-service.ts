import { AdLibraryError } from '../../src/api/errors.ts';
import type { Fetch, HttpResponse } from '../../src/api/http.ts';
import { toCanonicalJson } from '../../src/api/json.ts';
import { deriveUuid } from './derive-uuid.ts';

type Filters = Record<string, unknown>;

/** One version of an ad. Searches omit the body, as the real API does in lists. */
export interface AdFields {
  id: string;
  headline: string;
  lastSeenAt: string;
  displayFormat: string;
  countries: string[];
  body?: string;
}

interface ServiceRule {
  /** The maximum page size, in ads, for any requested limit. */
  pageSize: number;
  /** The price of each call, in credits. */
  pricePerCall: number;
  /** The price of each ad on a page, in credits. */
  pricePerAd: number;
  reportsTotals: boolean;
}

/** A result page or a single ad that the fake API sent. */
export interface ServedPage {
  /** The filters as canonical JSON, or a collection id. Undefined for a single ad. */
  question: string | undefined;
  cursor: string | null;
  nextCursor: string | null;
  limit: number;
  ids: string[];
  total: number | undefined;
  charged: number;
  /** The position of the response in the order of arrival, from 1. Until it arrives, 0. */
  arrival: number;
  /** The time of arrival on the service's clock, in milliseconds. */
  arrivedAt: number;
}

/** The id of the only collection. */
export const collectionId = '6a1f7e0c-0000-4000-8000-00000000c011';
/** The length of a day in milliseconds. */
export const dayMs = 86_400_000;
/** Returns the id of an ad. */
export const createAdId = (ad: number): string => deriveUuid(`${ad}`);

/** A fake API, called without a network, whose ads appear, change and disappear. Records each page that it sends. */
export class GatheringService {
  readonly pages: ServedPage[] = [];
  /** Runs after a page was charged and before it is sent. Decides what happens to the response. */
  beforeResponse: (page: ServedPage) => Promise<'sent' | 'broken off'> = async () => 'sent';
  /** Called with the ads of each response, in the order of arrival. */
  onArrival: (ads: readonly AdFields[], arrival: number) => void = () => {};
  time: number;
  arrivedCount = 0;
  readonly ads = new Map<number, number>();
  readonly #positions = new Map<string, number>();
  readonly #rule: ServiceRule;

  readonly userId: string;

  constructor(rule: ServiceRule, { apiKey, ads, time }: { apiKey: string; ads: number; time: number }) {
    this.#rule = rule;
    this.userId = deriveUuid(apiKey);
    this.time = time;
    for (let ad = 0; ad < ads; ad++) this.ads.set(ad, 0);
  }

  expireCursors(): void {
    this.#positions.clear();
  }

  readonly fetch: Fetch = async (url, request) => {
    const { pathname, searchParams } = new URL(url);
    request.onSent();
    if (pathname === '/v1/whoami') return respond(200, { authenticated: true, user: { userId: this.userId } });
    if (pathname === '/v1/credits') return respond(200, credits);
    if (pathname === '/v1/ads/search') {
      const { limit = 20, cursor = null, ...filters } = JSON.parse(request.body ?? '{}') as Filters;
      return this.#respondWithPage(toCanonicalJson(filters), filters, Number(limit), cursor as string | null);
    }
    if (pathname.startsWith('/v1/collections/')) {
      const limit = Number(searchParams.get('limit') ?? 50);
      return this.#respondWithPage(collectionId, { displayFormat: 'IMAGE' }, limit, searchParams.get('cursor'));
    }
    const ad = [...this.ads.keys()].find((number) => createAdId(number) === pathname.slice('/v1/ads/'.length));
    if (ad === undefined) return respond(404, { error: { code: 'c', message: 'no such ad', requestId: 'r' } });
    const fields = { ...this.#buildFields(ad), body: `Text ${this.ads.get(ad)} of ad ${ad}` };
    const defaultFields = { question: undefined, cursor: null, nextCursor: null, limit: 1, total: undefined };
    return this.#sendResponse({ ...defaultFields, ads: [fields] }, fields);
  };

  async #respondWithPage(question: string, filters: Filters, limit: number, cursor: string | null) {
    const start = cursor === null ? 0 : this.#positions.get(cursor);
    if (start === undefined) return respond(422, { error: { code: 'c', message: 'unknown cursor', requestId: 'r' } });
    const matchingAds = [...this.ads.keys()]
      .sort((left, right) => left - right)
      .map((ad) => this.#buildFields(ad))
      .filter(({ displayFormat, countries }) => {
        const { displayFormat: format = displayFormat, countries: country = countries } = filters;
        return format === displayFormat && toCanonicalJson(country) === toCanonicalJson(countries);
      });
    const items = matchingAds.slice(start, start + Math.min(limit, this.#rule.pageSize));
    const hasMore = start + items.length < matchingAds.length;
    const nextCursor = hasMore ? `c${this.pages.length}` : null;
    if (nextCursor !== null) this.#positions.set(nextCursor, start + items.length);
    const total = this.#rule.reportsTotals ? matchingAds.length : undefined;
    const collection = { id: collectionId, name: 'Saved', adCount: total };
    const body = { items, cursor: nextCursor, hasMore, totalHits: total, collection, itemType: 'ads' };
    return this.#sendResponse({ question, cursor, nextCursor, limit, total, ads: items }, body);
  }

  async #sendResponse(
    { ads, ...pageFields }: Omit<ServedPage, 'ids' | 'charged' | 'arrival' | 'arrivedAt'> & { ads: AdFields[] },
    body: object,
  ): Promise<HttpResponse> {
    const charged = this.#rule.pricePerCall + this.#rule.pricePerAd * ads.length;
    const page: ServedPage = { ...pageFields, ids: ads.map(({ id }) => id), charged, arrival: 0, arrivedAt: 0 };
    this.pages.push(page);
    const text = JSON.stringify(body);
    const fate = await this.beforeResponse(page);
    this.time++;
    if (fate === 'broken off') throw new AdLibraryError({ kind: 'network' });
    page.arrival = ++this.arrivedCount;
    page.arrivedAt = this.time;
    this.onArrival(ads, page.arrival);
    return respond(200, text, charged);
  }

  #buildFields(ad: number): AdFields {
    return {
      id: createAdId(ad),
      headline: `Offer ${this.ads.get(ad)} of ad ${ad}`,
      lastSeenAt: new Date(Math.floor(this.time / dayMs) * dayMs).toISOString(),
      displayFormat: ad % 2 === 0 ? 'IMAGE' : 'VIDEO',
      countries: [ad % 3 === 0 ? 'DE' : 'FR'],
    };
  }
}

const usageLimit = { isLimitReached: false, limitType: 'none' };
const credits = { billingUserId: deriveUuid('user'), usageLimit, credits: 1_000_000 };

function respond(status: number, body: object | string, charged?: number): HttpResponse {
  const headers: Record<string, string> = { 'x-service-request-id': 'r' };
  if (charged !== undefined) headers['x-service-credits-charged'] = String(charged);
  return {
    status,
    headers: { get: (name) => headers[name] ?? null },
    text: async () => (typeof body === 'string' ? body : JSON.stringify(body)),
  };
}
