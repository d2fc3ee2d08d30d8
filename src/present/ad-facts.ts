import type { AdView } from './ad-view.ts';
import { codes, constant, quote, word } from './fence.ts';
import { COUNTRY, copies, count } from './list-text.ts';
import { dayOf, daysBetween } from './running.ts';

/** The abbreviations that are usual in advertising. */
export const NETWORKS: ReadonlyMap<string, string> = new Map([
  ['FACEBOOK', 'FB'],
  ['INSTAGRAM', 'IG'],
  ['AUDIENCE_NETWORK', 'AN'],
  ['MESSENGER', 'MSG'],
  ['THREADS', 'TH'],
  ['WHATSAPP', 'WA'],
]);

/** What is known about an ad besides its copy: one short phrase for each fact, the most useful first. */
export function factsOf(ad: AdView, asOf?: string): string[] {
  return [
    [ad.displayFormat && constant(ad.displayFormat), ad.creative].filter((part) => part).join(' '),
    runFact(ad, asOf),
    ad.duplicates === undefined ? undefined : copies(ad.duplicates),
    ad.audienceReach === undefined ? undefined : `reach ${ad.audienceReach}`,
    range('spend est.', [ad.adSpendMin, ad.adSpendMax], ad),
    range('revenue est.', [ad.revenueMin, ad.revenueMax], ad),
    ad.trendPublic === undefined ? undefined : `trend ${ad.trendPublic}`,
    ad.performancePublic === undefined ? undefined : `performance ${ad.performancePublic}`,
    productFact(ad),
    actionFact(ad),
    ad.publisherPlatform && codes(ad.publisherPlatform.map(shortName), NETWORK),
    ad.countries && codes(ad.countries, COUNTRY),
  ].filter((fact): fact is string => fact !== undefined && fact !== '');
}

const shortName = (name: string) => NETWORKS.get(name) ?? name;
const NETWORK = new RegExp(`^(?:${[...NETWORKS.values()].join('|')})$`);

function runFact(ad: AdView, asOf: string | undefined): string | undefined {
  const from = dayOf(ad.startedAt);
  const seen = dayOf(ad.lastSeen ?? ad.lastSeenAt);
  const since = ad.daysSinceSeen ?? (seen && asOf ? daysBetween(seen, asOf) : undefined);
  const end = dayOf(ad.endDate);
  const state = [
    ad.daysRunning === undefined ? undefined : count(ad.daysRunning, 'day'),
    ad.stillRunning === undefined ? undefined : ad.stillRunning ? 'running' : 'ended',
    since === undefined || ad.stillRunning !== undefined ? undefined : `seen ${count(since, 'day')} ago`,
    end !== undefined && seen !== undefined && seen !== end ? `last seen ${seen}` : undefined,
  ].filter((part) => part !== undefined);
  const last = end ?? seen;
  const dates =
    from && last ? `${from}–${last}` : from ? `since ${from}` : last && `${end ? 'ended' : 'last seen'} ${last}`;
  if (!dates) return;
  return state.length > 0 ? `${dates} (${state.join(', ')})` : dates;
}

type Range = [min: number | undefined, max: number | undefined];

function range(label: string, [min, max]: Range, ad: AdView): string | undefined {
  if (min === undefined && max === undefined) return;
  if (min === undefined) return `${label} up to ${max}${currencyOf(ad)}`;
  if (max === undefined) return `${label} from ${min}${currencyOf(ad)}`;
  return `${label} ${min === max ? min : `${min}–${max}`}${currencyOf(ad)}`;
}

/** ` EUR`. The document names no currency, but imported ads have one. */
const currencyOf = ({ currency }: AdView) => (currency === undefined ? '' : ` ${codes([currency], CURRENCY)}`);
const CURRENCY = /^[A-Z]{3}$/;

function productFact(ad: AdView): string | undefined {
  const { productTitle, productPrice } = ad;
  const price = productPrice === undefined ? '' : `${productPrice}${currencyOf(ad)}`;
  if (productTitle === undefined) return price && `price ${price}`;
  return `product ${quote(productTitle)}${price && ` at ${price}`}`;
}

function actionFact({ ctaType, landingDomain, displayUrl }: AdView): string | undefined {
  const action = ctaType === undefined ? '' : constant(ctaType);
  const domain = landingDomain === undefined ? '' : `${action ? '→' : 'lands on'} ${word(landingDomain)}`;
  const shown = displayUrl === undefined ? '' : `shown as ${word(displayUrl)}`;
  return [action, domain, shown].filter((part) => part).join(' ') || undefined;
}
