import { changedFields, type ItemVersion, objectOf } from '../storage/item-versions.ts';
import { adFields } from '../views/fields.ts';

export interface Change {
  field: string;
  from: ChangedValue;
  to: ChangedValue;
}

/** Null where a version says nothing; undefined for what is no text, such as media. */
export type ChangedValue = string | number | boolean | null | undefined;

/** What differs from one version of an ad to a later one, in the order of views. */
export function changesBetween(before: ItemVersion, after: ItemVersion): Change[] {
  const [old, now] = [objectOf(before), objectOf(after)];
  const names = changedFields(old, now).sort((left, right) => rank(left) - rank(right));
  return names.map((field) => ({ field, from: changedValue(old[field]), to: changedValue(now[field]) }));
}

const order = ['headline', 'body', ...Object.keys(adFields)];
const rank = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);

function changedValue(value: unknown): ChangedValue {
  if (value === undefined || value === null || value === '') return null;
  if (Array.isArray(value))
    return value.some((part) => typeof part === 'object') ? undefined : value.join(', ') || null;
  return typeof value === 'object' ? undefined : (value as string | number | boolean);
}
