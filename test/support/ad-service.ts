import { deriveUuid } from './derive-uuid.ts';
import {
  type Behaviour,
  createCreditHeaders,
  createCreditStatus,
  respondAsDocumented,
  respondWithJson,
  type Upstream,
} from './faulty-upstream.ts';

/** A search request that the service received. */
export interface AdSearch {
  /** The number of the request, from 1. */
  sequenceNumber: number;
  limit: number;
  cursor: string | undefined;
  filters: Record<string, unknown>;
}

/** An ad as the service sends it. */
export interface ServedAd {
  id: string;
  [field: string]: unknown;
}

/** A fake API that serves a list of ads in pages, as the API document specifies. Tests set its prices and faults. */
export class AdService {
  ads: ServedAd[];
  /** The credits charged so far, including charges that no response header reported. */
  chargedCredits = 0;
  /** The number of ads sent so far, including repeated ads. */
  servedAdCount = 0;
  searches: AdSearch[] = [];
  /** Returns the price of a search in credits. */
  priceSearch = (limit: number, _search: AdSearch): number => Math.ceil(limit / 10);
  /** Returns a special response to a search, e.g. a fault, or undefined for the normal one. */
  overrideResponse: (search: AdSearch) => Behaviour | undefined = () => undefined;
  /** Returns the ads that match the filters. By default, all ads match. */
  selectAds = (_filters: Record<string, unknown>): ServedAd[] => this.ads;
  /** Modifies the normal response to a search before it is sent. */
  modifyResponse: (responseBody: SearchResponse, search: AdSearch) => object = (answer) => answer;
  /** False if the responses have no header with the charge. */
  hasChargeHeaders = true;
  /** The number of ads that a search without a limit returns. */
  defaultLimit = 20;

  constructor(count: number) {
    this.ads = Array.from({ length: count }, (_, index) => createAd(index));
  }

  /** Returns a special response to any request, or undefined for the normal one. */
  interceptRequest: (path: string) => Behaviour | undefined = () => undefined;

  readonly respond: Behaviour = (request, response, body = '') => {
    const path = request.url ?? '';
    const reply = this.interceptRequest(path) ?? this.#selectResponse(path, body);
    reply(request, response, body);
  };

  #selectResponse(path: string, body: string): Behaviour {
    if (path.endsWith('/v1/credits')) return respondWithJson(createCreditStatus());
    if (path.endsWith('/v1/whoami')) return respondAsDocumented;
    const id = /\/v1\/ads\/([\da-f-]{36})$/.exec(path)?.[1];
    return id === undefined ? this.answerSearch(body) : this.#answerAd(id);
  }

  #answerAd(id: string): Behaviour {
    this.chargedCredits += 1;
    return respondWithJson(this.ads.find((ad) => ad.id === id) ?? {}, { headers: createCreditHeaders(1) });
  }

  answerSearch(body: string): Behaviour {
    const {
      limit = this.defaultLimit,
      cursor,
      ...filters
    } = JSON.parse(body || '{}') as { limit?: number; cursor?: string };
    const search = { sequenceNumber: this.searches.length + 1, limit, cursor, filters };
    this.searches.push(search);
    const override = this.overrideResponse(search);
    if (override) return override;
    const start = Number(cursor ?? 0);
    const ads = this.selectAds(filters);
    const items = ads.slice(start, start + limit);
    const hasMore = start + limit < ads.length;
    this.servedAdCount += items.length;
    const price = this.priceSearch(items.length, search);
    this.chargedCredits += price;
    const responseBody = { items, cursor: hasMore ? String(start + limit) : null, hasMore, totalHits: ads.length };
    return respondWithJson(
      this.modifyResponse(responseBody, search),
      this.hasChargeHeaders ? { headers: createCreditHeaders(price) } : {},
    );
  }
}

/** The response body of a search. */
export interface SearchResponse {
  items: ServedAd[];
  cursor: string | null;
  hasMore: boolean;
  totalHits: number;
}

/** Creates an ad whose id, texts and format depend on its index. */
export const createAd = (index: number, fields: object = {}): ServedAd => ({
  id: deriveUuid(`${index}`),
  headline: `Offer ${index}`,
  body: `Text of offer number ${index}`,
  displayFormat: index % 2 === 0 ? 'VIDEO' : 'IMAGE',
  ...fields,
});

/** Makes the upstream serve `count` ads. Returns the service, so that a test can change its behavior. */
export function serveAds(
  upstream: Pick<Upstream, 'respondWith'>,
  count: number,
  price?: AdService['priceSearch'],
): AdService {
  const service = new AdService(count);
  if (price) service.priceSearch = price;
  upstream.respondWith(service.respond);
  return service;
}
