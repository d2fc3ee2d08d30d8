import { canonical } from '../../src/api/call.ts';
import { AdLibraryError } from '../../src/api/errors.ts';
import type { Fetch, HttpRequest, HttpResponse } from '../../src/api/http.ts';
import { uuidOf } from './uuid-of.ts';

type Filters = Record<string, unknown>;

/** What an ad says at one moment. A search leaves the body out, as lists do. */
export interface AdFields {
  id: string;
  headline: string;
  lastSeenAt: string;
  displayFormat: string;
  countries: string[];
  body?: string;
}

/** What answers say of totals, which may be wrong. */
export type Totals = 'right' | 'none' | 'none at the end' | 'zero' | 'low' | 'high';

export interface ServiceRule {
  /** Ads on a page at most, whatever is asked for. */
  pageSize: number;
  perCall: number;
  perAd: number;
  totals: Totals;
  /** Characters by which each ad is longer. */
  padding: number;
}

/** A page of a list, or a single ad, as the service sent it. */
export interface ServedPage {
  /** What it is a page of: filters, or a collection; undefined for a single ad. */
  question: string | undefined;
  /** Where it began; null for the first page. */
  cursor: string | null;
  next: string | null;
  limit: number;
  ids: string[];
  total: number | undefined;
  charged: number;
  /** Its place in the order in which answers arrived; 0 while it has not. */
  arrived: number;
  /** When it arrived, by the true time. */
  at: number;
}

export const collectionId = '6a1f7e0c-0000-4000-8000-00000000c011';

/** Tells the questions of pages apart. */
export const questionOf = (filters: Filters | undefined, collection?: string): string =>
  collection ?? canonical(filters ?? {});

/** Asked in place of a network: a service whose ads come, change and go, and which keeps a list of what it sent. */
export class GatheringService {
  readonly pages: ServedPage[] = [];
  /** Done while a page is under way: paid for, and not sent yet. Returns whether it will ever be sent. */
  underWay: (page: ServedPage) => Promise<'sent' | 'lost' | 'broken off'> = async () => 'sent';
  /** Receives the ads of each answer, in the order in which answers arrive. */
  onArrival: (ads: readonly AdFields[], arrived: number) => void = () => {};
  charged = 0;
  /** The true time, in milliseconds since the epoch. */
  time: number;
  #arrived = 0;
  readonly #ads = new Map<number, number>();
  readonly #positions = new Map<string, number>();
  readonly #rule: ServiceRule;

  constructor(rule: ServiceRule, { ads, time }: { ads: number; time: number }) {
    this.#rule = rule;
    this.time = time;
    for (let ad = 0; ad < ads; ad++) this.#ads.set(ad, 0);
  }

  /** The last answer so far. */
  get arrived(): number {
    return this.#arrived;
  }

  /** An ad appears, or says something else. */
  change(ad: number, version: number): void {
    this.#ads.set(ad, version);
  }

  vanish(ad: number): void {
    this.#ads.delete(ad);
  }

  /** No cursor that was given so far is taken any more. */
  expireCursors(): void {
    this.#positions.clear();
  }

  takes(cursor: string | null): boolean {
    return cursor === null || this.#positions.has(cursor);
  }

  fetch: Fetch = async (url, request) => {
    const { pathname, searchParams } = new URL(url);
    request.onSent();
    if (pathname === '/v1/whoami')
      return respond(200, { authenticated: true, user: { userId: userIdOfKey(keyIn(request)) } });
    if (pathname === '/v1/credits') return respond(200, credits);
    if (pathname === '/v1/collections') return respond(200, { items: [this.#collection()] }, 0);
    if (pathname === '/v1/ads/search') {
      const { limit = 20, cursor = null, ...filters } = JSON.parse(request.body ?? '{}') as Filters;
      return this.#page({ filters, limit: Number(limit), cursor: cursor as string | null }, request);
    }
    if (pathname.startsWith('/v1/collections/')) {
      const limit = Number(searchParams.get('limit') ?? 50);
      return this.#page({ collection: collectionId, limit, cursor: searchParams.get('cursor') }, request);
    }
    return this.#ad(pathname.slice('/v1/ads/'.length), request);
  };

  /** The ads that match, in order. */
  #matching({ filters = {}, collection }: { filters?: Filters | undefined; collection?: string | undefined }) {
    const ads = [...this.#ads.keys()].sort((left, right) => left - right).map((ad) => this.#fields(ad));
    if (collection !== undefined) return ads.filter(({ displayFormat }) => displayFormat === 'IMAGE');
    return ads.filter(({ displayFormat, countries }) => {
      const { displayFormat: format = displayFormat, countries: country = countries } = filters;
      return format === displayFormat && canonical(country) === canonical(countries);
    });
  }

  async #page(
    asked: { filters?: Filters; collection?: string; limit: number; cursor: string | null },
    request: HttpRequest,
  ): Promise<HttpResponse> {
    const { filters, collection, limit, cursor } = asked;
    const start = cursor === null ? 0 : this.#positions.get(cursor);
    if (start === undefined) return respond(422, { error: { code: 'c', message: 'unknown cursor', requestId: 'r' } });
    const matching = this.#matching({ filters, collection });
    const items = matching.slice(start, start + Math.min(limit, this.#rule.pageSize));
    const hasMore = start + items.length < matching.length;
    const next = hasMore ? `c${this.pages.length}` : null;
    if (next !== null) this.#positions.set(next, start + items.length);
    const total = this.#total(matching.length, hasMore);
    const question = questionOf(filters, collection);
    const body = {
      ...{ items, cursor: next, hasMore },
      ...(collection === undefined
        ? total !== undefined && { totalHits: total }
        : { collection: { ...this.#collection(), adCount: total }, itemType: 'ads' }),
    };
    return this.#send({ question, cursor, next, limit, total, ads: items }, body, request);
  }

  #ad(id: string, request: HttpRequest): Promise<HttpResponse> | HttpResponse {
    const ad = [...this.#ads.keys()].find((number) => adId(number) === id);
    if (ad === undefined) return respond(404, { error: { code: 'c', message: 'no such ad', requestId: 'r' } });
    const fields = { ...this.#fields(ad), body: `Text ${this.#ads.get(ad)} of ad ${ad}` };
    return this.#send(
      { question: undefined, cursor: null, next: null, limit: 1, total: undefined, ads: [fields] },
      fields,
      request,
    );
  }

  /** Charges an answer when it is asked for, and sends it when what happens meanwhile has happened. */
  async #send(
    { ads, ...about }: Pick<ServedPage, 'question' | 'cursor' | 'next' | 'limit' | 'total'> & { ads: AdFields[] },
    body: object,
    { signal }: HttpRequest,
  ): Promise<HttpResponse> {
    const charged = this.#rule.perCall + this.#rule.perAd * ads.length;
    const page: ServedPage = { ...about, ids: ads.map(({ id }) => id), charged, arrived: 0, at: 0 };
    this.pages.push(page);
    this.charged += charged;
    const text = JSON.stringify(body);
    const fate = await this.underWay(page);
    this.time++;
    if (fate === 'lost')
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    if (fate === 'broken off') throw new AdLibraryError({ kind: 'network' });
    page.arrived = ++this.#arrived;
    page.at = this.time;
    this.onArrival(ads, page.arrived);
    return respond(200, text, charged);
  }

  #fields(ad: number): AdFields {
    const version = this.#ads.get(ad) ?? 0;
    return {
      id: adId(ad),
      headline: `Offer ${version} of ad ${ad}${'.'.repeat(this.#rule.padding)}`,
      lastSeenAt: new Date(Math.floor(this.time / dayMs) * dayMs).toISOString(),
      displayFormat: ad % 2 === 0 ? 'IMAGE' : 'VIDEO',
      countries: [ad % 3 === 0 ? 'DE' : 'FR'],
    };
  }

  #total(real: number, hasMore: boolean): number | undefined {
    const totals = { right: real, none: undefined, zero: 0, low: Math.floor(real / 2), high: real + 5 };
    const { totals: said } = this.#rule;
    return said === 'none at the end' ? (hasMore ? real : undefined) : totals[said];
  }

  #collection() {
    const adCount = this.#matching({ collection: collectionId }).length;
    const what = { id: collectionId, name: 'Saved', type: 'ads', isDefault: false, defaultType: null };
    return { ...what, isOwner: true, adCount, pageCount: 0 };
  }
}

export const dayMs = 86_400_000;
export const adId = (ad: number): string => uuidOf(`${ad}`);

/** The account of a key. */
export const userIdOfKey = (key: string): string => `user of ${key}`;
const keyIn = ({ headers }: HttpRequest): string => headers.authorization?.slice('Bearer '.length) ?? '';

const usageLimit = { isLimitReached: false, limitType: 'none' };
const credits = { billingUserId: uuidOf('user'), credits: 1_000_000, usageLimit };

function respond(status: number, body: object | string, charged?: number): HttpResponse {
  const headers: Record<string, string> = { 'x-service-request-id': 'r' };
  if (charged !== undefined) headers['x-service-credits-charged'] = String(charged);
  return {
    status,
    headers: { get: (name) => headers[name] ?? null },
    text: async () => (typeof body === 'string' ? body : JSON.stringify(body)),
  };
}
