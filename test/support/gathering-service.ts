import { AdLibraryError } from '../../src/api/errors.ts';
import type { Fetch, HttpRequest, HttpResponse } from '../../src/api/http.ts';
import { canonical } from '../../src/api/json.ts';
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
  /** Whose budget it was paid from. */
  account: string;
  /** When it was asked for, by the true time. */
  asked: number;
  /** Its place in the order in which answers arrived; 0 while it has not. */
  arrived: number;
  /** When it arrived, by the true time. */
  at: number;
}

/** What pages that followed each other listed. */
export interface Listed {
  ids: string[];
  found: number | null;
  /** The service said that there were fewer than it listed. */
  isDoubtful: boolean;
  /** When the last page arrived, of the part where that is longest ago. */
  oldest: number;
  from: number;
  to: number;
}

/** A question of which no page came. */
export const unread: Listed = {
  ...{ ids: [], found: null, isDoubtful: false },
  ...{ oldest: Number.POSITIVE_INFINITY, from: Number.POSITIVE_INFINITY, to: 0 },
};

export const collectionId = '6a1f7e0c-0000-4000-8000-00000000c011';

/** Tells the questions of pages apart. */
export const questionOf = (filters: Filters | undefined, collection?: string): string =>
  collection ?? canonical(filters ?? {});

/** Asked in place of a network: a service whose ads come, change and go, and which keeps a list of what it sent. */
export class GatheringService {
  readonly pages: ServedPage[] = [];
  /** Done while a page is in flight: paid for, and not sent yet. Returns whether it will ever be sent. */
  inFlight: (page: ServedPage) => Promise<'sent' | 'lost' | 'broken off'> = async () => 'sent';
  /** Receives the ads of each answer, in the order in which answers arrive. */
  onArrival: (ads: readonly AdFields[], arrived: number) => void = () => {};
  charged = 0;
  /** Who refuses the key, if anybody: the service, or a gateway in front of it that has asked nobody. */
  rejectedBy: 'service' | 'gateway' | undefined;
  /** Who has asked whose key it is. */
  readonly named = new Set<string>();
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

  /** What was listed in answer to a question, in all ways in which its pages followed each other. */
  listed(question: string, isComplete: boolean): Listed[] {
    const own = this.pages.filter((page) => page.question === question && page.arrived > 0);
    const ways = own.flatMap((last): Listed[] => {
      if (isComplete && last.next !== null) return [];
      const way = [last];
      for (let first = last; first.cursor !== null; way.unshift(first)) {
        const before = own.find(({ next }) => next === first.cursor);
        if (before === undefined) return [];
        first = before;
      }
      const found = way.findLast(({ total }) => total !== undefined)?.total ?? null;
      const ids = [...new Set(way.flatMap((page) => page.ids))];
      const isDoubtful = found !== null && found < ids.length;
      return [{ ids, found, isDoubtful, oldest: last.at, from: way[0]?.arrived ?? 0, to: last.arrived }];
    });
    return isComplete ? ways : [unread, ...ways];
  }

  /** No cursor that was given so far is taken any more. */
  expireCursors(): void {
    this.#positions.clear();
  }

  takes(cursor: string | null): boolean {
    return cursor === null || this.#positions.has(cursor);
  }

  /** The network of one process, or of replicas with one budget. */
  fetchFor =
    (account: string): Fetch =>
    (url, request) =>
      this.#answer(url, request, account);

  async #answer(url: string, request: HttpRequest, account: string): Promise<HttpResponse> {
    const { pathname, searchParams } = new URL(url);
    request.onSent();
    if (this.rejectedBy === 'gateway') return respond(401, '<h1>Sign in</h1>', undefined, {});
    if (this.rejectedBy === 'service') return respond(401, { error: { code: 'c', message: 'no', requestId: 'r' } });
    if (pathname === '/v1/whoami') {
      this.named.add(account);
      return respond(200, { authenticated: true, user: { userId: userIdOfKey(keyIn(request)) } });
    }
    if (pathname === '/v1/credits') return respond(200, { ...credits, credits: 1_000_000 - this.charged });
    if (pathname === '/v1/collections') return respond(200, { items: [this.#collection()] }, 0);
    if (pathname === '/v1/ads/search') {
      const { limit = 20, cursor = null, ...filters } = JSON.parse(request.body ?? '{}') as Filters;
      return this.#page({ filters, limit: Number(limit), cursor: cursor as string | null, account }, request);
    }
    if (pathname.startsWith('/v1/collections/')) {
      const limit = Number(searchParams.get('limit') ?? 50);
      return this.#page({ collection: collectionId, limit, cursor: searchParams.get('cursor'), account }, request);
    }
    return this.#ad(pathname.slice('/v1/ads/'.length), account, request);
  }

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
    asked: { filters?: Filters; collection?: string; limit: number; cursor: string | null; account: string },
    request: HttpRequest,
  ): Promise<HttpResponse> {
    const { filters, collection, limit, cursor, account } = asked;
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
    return this.#send({ question, cursor, next, limit, total, account, ads: items }, body, request);
  }

  #ad(id: string, account: string, request: HttpRequest): Promise<HttpResponse> | HttpResponse {
    const ad = [...this.#ads.keys()].find((number) => adId(number) === id);
    if (ad === undefined) return respond(404, { error: { code: 'c', message: 'no such ad', requestId: 'r' } });
    const fields = { ...this.#fields(ad), body: `Text ${this.#ads.get(ad)} of ad ${ad}` };
    const about = { question: undefined, cursor: null, next: null, limit: 1, total: undefined };
    return this.#send({ ...about, account, ads: [fields] }, fields, request);
  }

  /** Charges an answer when it is asked for, and sends it when what happens meanwhile has happened. */
  async #send(
    { ads, ...about }: Omit<ServedPage, 'ids' | 'charged' | 'asked' | 'arrived' | 'at'> & { ads: AdFields[] },
    body: object,
    { signal }: HttpRequest,
  ): Promise<HttpResponse> {
    const charged = this.#rule.perCall + this.#rule.perAd * ads.length;
    const when = { asked: this.time, arrived: 0, at: 0 };
    const page: ServedPage = { ...about, ...when, ids: ads.map(({ id }) => id), charged };
    this.pages.push(page);
    this.charged += charged;
    const text = JSON.stringify(body);
    const fate = await this.inFlight(page);
    this.time++;
    if (fate === 'lost') await never({ signal });
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

/** What is not answered before its sender gives up. */
export const never = ({ signal }: Pick<HttpRequest, 'signal'>) =>
  new Promise<HttpResponse>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

export const dayMs = 86_400_000;
export const adId = (ad: number): string => uuidOf(`${ad}`);

/** The account of a key. */
export const userIdOfKey = (key: string): string => uuidOf(`user of ${key}`);
const keyIn = ({ headers }: HttpRequest): string => headers.authorization?.slice('Bearer '.length) ?? '';

const usageLimit = { isLimitReached: false, limitType: 'none' };
const credits = { billingUserId: uuidOf('user'), usageLimit };

function respond(
  status: number,
  body: object | string,
  charged?: number,
  headers: Record<string, string> = { 'x-service-request-id': 'r' },
): HttpResponse {
  if (charged !== undefined) headers['x-service-credits-charged'] = String(charged);
  return {
    status,
    headers: { get: (name) => headers[name] ?? null },
    text: async () => (typeof body === 'string' ? body : JSON.stringify(body)),
  };
}
