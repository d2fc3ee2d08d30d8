import { type Fields, isObject } from '../present/view.ts';
import { objectOf, type StoredItem } from '../state/item-versions.ts';

/** A field that has one value in one version of an ad, and another in the next. */
export interface Change {
  /** When the newer version first came, in milliseconds since the epoch. */
  at: number;
  /** As the API names it. */
  field: string;
  from: string;
  to: string;
}

/** What a reader sees of an ad. Counts such as reach change with every answer. */
const fields = ['headline', 'body', 'linkDescription', 'ctaType', 'displayFormat', 'offerLink', 'countries', 'endDate'];

/** What differs from each version of an ad to the next, the newest first. A field that one of them lacks says nothing. */
export function changesBetween(item: StoredItem): Change[] {
  const versions = [...item.versions, item].map((version) => ({ at: version.since, ad: objectOf(version) as Fields }));
  return versions.toReversed().flatMap(({ at, ad }, index, all) => {
    const before = all[index + 1]?.ad;
    if (before === undefined) return [];
    return fields.flatMap((field) => {
      const [from, to] = [textIn(before[field]), textIn(ad[field])];
      return from === undefined || to === undefined || from === to ? [] : [{ at, field, from, to }];
    });
  });
}

function textIn(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.filter((part) => !isObject(part)).join(', ');
  return typeof value === 'string' && value !== '' ? value : undefined;
}
