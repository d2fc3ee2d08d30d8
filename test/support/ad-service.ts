import { type Behaviour, creditStatus, documented, json, paid, type Upstream } from './faulty-upstream.ts';
import { uuidOf } from './uuid-of.ts';

export interface Search {
  /** Counted from 1. */
  number: number;
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
  charged = 0;
  /** Ads that it has sent, counted each time. */
  served = 0;
  searches: Search[] = [];
  price = (limit: number, _search: Search): number => Math.ceil(limit / 10);
  /** Done in place of an answer, where it gives something to do. */
  instead: (search: Search) => Behaviour | undefined = () => undefined;
  matching = (_filters: Record<string, unknown>): ServedAd[] => this.ads;
  change: (answer: Answer, search: Search) => object = (answer) => answer;
  statesCharges = true;
  usualLimit = 20;

  constructor(count: number) {
    this.ads = Array.from({ length: count }, (_, index) => adOf(index));
  }

  /** Done before an answer to any request, where it gives something to do. */
  before: (path: string) => Behaviour | undefined = () => undefined;

  readonly behaviour: Behaviour = (request, response, body = '') => {
    const path = request.url ?? '';
    const reply = this.before(path) ?? this.#replyTo(path, body);
    reply(request, response, body);
  };

  #replyTo(path: string, body: string): Behaviour {
    if (path.endsWith('/v1/credits')) return json(creditStatus());
    if (path.endsWith('/v1/whoami')) return documented;
    const id = /\/v1\/ads\/([\da-f-]{36})$/.exec(path)?.[1];
    return id === undefined ? this.answer(body) : this.#answerOne(id);
  }

  #answerOne(id: string): Behaviour {
    this.charged += 1;
    return json(this.ads.find((one) => one.id === id) ?? {}, { headers: paid(1) });
  }

  answer(body: string): Behaviour {
    const {
      limit = this.usualLimit,
      cursor,
      ...filters
    } = JSON.parse(body || '{}') as { limit?: number; cursor?: string };
    const search = { number: this.searches.length + 1, limit, cursor, filters };
    this.searches.push(search);
    const fault = this.instead(search);
    if (fault) return fault;
    const start = Number(cursor ?? 0);
    const ads = this.matching(filters);
    const items = ads.slice(start, start + limit);
    const hasMore = start + limit < ads.length;
    this.served += items.length;
    const price = this.price(items.length, search);
    this.charged += price;
    const answer = { items, cursor: hasMore ? String(start + limit) : null, hasMore, totalHits: ads.length };
    return json(this.change(answer, search), this.statesCharges ? { headers: paid(price) } : {});
  }
}

export interface Answer {
  items: ServedAd[];
  cursor: string | null;
  hasMore: boolean;
  totalHits: number;
}

export const adOf = (index: number, fields: object = {}): ServedAd => ({
  id: uuidOf(`${index}`),
  headline: `Offer ${index}`,
  body: `Text of offer number ${index}`,
  displayFormat: index % 2 === 0 ? 'VIDEO' : 'IMAGE',
  ...fields,
});

/** Lets the upstream answer as such a service. */
export function serveAds(upstream: Pick<Upstream, 'does'>, count: number, price?: AdService['price']): AdService {
  const service = new AdService(count);
  if (price) service.price = price;
  upstream.does(service.behaviour);
  return service;
}
