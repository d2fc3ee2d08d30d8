import type { BoardAd } from '../payload.ts';
import { country, label, month } from './words.ts';

/** A property to filter by: the values of an ad, and how one reads. */
interface Facet {
  title: string;
  values(ad: BoardAd): readonly string[];
  read(value: string): string;
  /** By value rather than by how many ads have it. */
  inOrder?: true;
}

const one = (value: string | undefined) => (value === undefined ? [] : [value]);
const same = (value: string) => value;

export const facets = {
  state: {
    title: 'State',
    values: ({ active }) => (active === undefined ? [] : [active ? 'Running' : 'Ended']),
    read: same,
    inOrder: true,
  },
  format: { title: 'Format', values: ({ displayFormat }) => one(displayFormat), read: label },
  cta: { title: 'Call to action', values: ({ ctaType }) => one(ctaType), read: label },
  advertiser: { title: 'Advertiser', values: ({ pageName }) => one(pageName), read: same },
  country: { title: 'Country', values: ({ countries = [] }) => countries, read: country },
  month: { title: 'Started', values: ({ startedAt }) => one(startedAt?.slice(0, 7)), read: month, inOrder: true },
} satisfies Record<string, Facet>;

export type FacetName = keyof typeof facets;
export const facetNames = Object.keys(facets) as FacetName[];

/** The chosen values: any of those of one facet, and all facets together. */
export type Chosen = Partial<Record<FacetName, ReadonlySet<string>>>;

const matches = (ad: BoardAd, name: FacetName, chosen: Chosen): boolean => {
  const wanted = chosen[name];
  return wanted === undefined || wanted.size === 0 || facets[name].values(ad).some((value) => wanted.has(value));
};

export const filtered = (ads: readonly BoardAd[], chosen: Chosen): BoardAd[] =>
  ads.filter((ad) => facetNames.every((name) => matches(ad, name, chosen)));

export interface FacetValue {
  facet: FacetName;
  value: string;
  text: string;
  ads: number;
  isChosen: boolean;
}

/** The values of a facet with the number of ads that choosing each would show beside the other facets. */
export function valuesOf(ads: readonly BoardAd[], facet: FacetName, chosen: Chosen): FacetValue[] {
  const others = facetNames.filter((name) => name !== facet && chosen[name]?.size);
  const counts = new Map<string, number>();
  const { values, read }: Facet = facets[facet];
  for (const ad of ads) {
    const isCounted = others.every((name) => matches(ad, name, chosen));
    for (const value of values(ad)) counts.set(value, (counts.get(value) ?? 0) + Number(isCounted));
  }
  const all = [...counts].map(([value, ads]) => {
    const isChosen = chosen[facet]?.has(value) === true;
    return { facet, value, text: read(value), ads, isChosen };
  });
  const { inOrder }: Facet = facets[facet];
  return inOrder ? all.sort((a, b) => (a.value < b.value ? 1 : -1)) : all.sort((a, b) => b.ads - a.ads);
}

/** Chosen values with one more, or without it. */
export function toggled(chosen: Chosen, facet: FacetName, value: string): Chosen {
  const values = new Set(chosen[facet]);
  if (!values.delete(value)) values.add(value);
  return { ...chosen, [facet]: values };
}
