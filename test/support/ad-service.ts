import {
  type Behaviour,
  creditHeaders,
  creditStatus,
  documentedResponse,
  json,
  type Upstream,
} from './faulty-upstream.ts';
import { deriveUuid } from './uuid-of.ts';

export interface AdSearch {
  /** Counted from 1. */
  sequenceNumber: number;
  limit: number;
  cursor: string | undefined;
  filters: Record<string, unknown>;
}

export interface ServedAd {
  id: string;
  [field: string]: unknown;
}

/** A service with a list of ads, which it pages through as the document says, at prices of a test's choice. */
export class AdService {
  ads: ServedAd[];
  /** What it has charged, as it knows itself, and for which searches. */
  chargedCredits = 0;
  /** Ads that it has sent, counted each time. */
  servedAdCount = 0;
  searches: AdSearch[] = [];
  priceSearch = (limit: number, _search: AdSearch): number => Math.ceil(limit / 10);
  /** Done in place of an answer, where it gives something to do. */
  overrideResponse: (search: AdSearch) => Behaviour | undefined = () => undefined;
  selectAds = (_filters: Record<string, unknown>): ServedAd[] => this.ads;
  changeAnswer: (answer: SearchAnswer, search: AdSearch) => object = (answer) => answer;
  hasChargeHeaders = true;
  defaultLimit = 20;

  constructor(count: number) {
    this.ads = Array.from({ length: count }, (_, index) => createAd(index));
  }

  /** Done before an answer to any request, where it gives something to do. */
  interceptRequest: (path: string) => Behaviour | undefined = () => undefined;

  readonly respond: Behaviour = (request, response, body = '') => {
    const path = request.url ?? '';
    const reply = this.interceptRequest(path) ?? this.#selectResponse(path, body);
    reply(request, response, body);
  };

  #selectResponse(path: string, body: string): Behaviour {
    if (path.endsWith('/v1/credits')) return json(creditStatus());
    if (path.endsWith('/v1/whoami')) return documentedResponse;
    const id = /\/v1\/ads\/([\da-f-]{36})$/.exec(path)?.[1];
    return id === undefined ? this.answerSearch(body) : this.#answerAd(id);
  }

  #answerAd(id: string): Behaviour {
    this.chargedCredits += 1;
    return json(this.ads.find((one) => one.id === id) ?? {}, { headers: creditHeaders(1) });
  }

  answerSearch(body: string): Behaviour {
    const {
      limit = this.defaultLimit,
      cursor,
      ...filters
    } = JSON.parse(body || '{}') as { limit?: number; cursor?: string };
    const search = { sequenceNumber: this.searches.length + 1, limit, cursor, filters };
    this.searches.push(search);
    const fault = this.overrideResponse(search);
    if (fault) return fault;
    const start = Number(cursor ?? 0);
    const ads = this.selectAds(filters);
    const items = ads.slice(start, start + limit);
    const hasMore = start + limit < ads.length;
    this.servedAdCount += items.length;
    const price = this.priceSearch(items.length, search);
    this.chargedCredits += price;
    const answer = { items, cursor: hasMore ? String(start + limit) : null, hasMore, totalHits: ads.length };
    return json(this.changeAnswer(answer, search), this.hasChargeHeaders ? { headers: creditHeaders(price) } : {});
  }
}

export interface SearchAnswer {
  items: ServedAd[];
  cursor: string | null;
  hasMore: boolean;
  totalHits: number;
}

export const createAd = (index: number, fields: object = {}): ServedAd => ({
  id: deriveUuid(`${index}`),
  headline: `Offer ${index}`,
  body: `Text of offer number ${index}`,
  displayFormat: index % 2 === 0 ? 'VIDEO' : 'IMAGE',
  ...fields,
});

/** Lets the upstream answer as such a service. */
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
