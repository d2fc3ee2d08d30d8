import { isFilled, type RecordType, type Tag } from './ads-and-pages.ts';

/** A value that a record has for a tag, as a row of the table of tags. */
export interface TagValue {
  key: string;
  /** In the form in which stored values and filters are compared. */
  value: string;
  /** The value as the record writes it. */
  spelling: string;
  /** False for values that only the filter finds, such as parent domains. */
  isCounted: boolean;
}

/** Replaces the characters that SQLite cannot store in a text. */
const storable = (text: string): string => text.trim().replace(/[\p{Cs}\0]/gu, '\uFFFD');

/** Returns a value in the form in which stored values and filters are compared: ids as they are, others in lower case. */
export function comparableValue({ opaque }: Pick<Tag, 'opaque'>, value: string): string {
  return opaque ? storable(value) : storable(value).toLowerCase();
}

/** Returns each value of a record once. */
export function tagValuesOf({ tags }: Pick<RecordType, 'tags'>, item: unknown): TagValue[] {
  return tags.flatMap((tag) => {
    const values = new Map<string, TagValue>();
    const add = (isCounted: boolean, texts: (string | null | undefined)[]) => {
      for (const text of texts.filter(isFilled)) {
        const value = comparableValue(tag, text);
        if (!values.has(value)) values.set(value, { key: tag.key, value, spelling: storable(text), isCounted });
      }
    };
    add(true, tag.valuesOf(item));
    add(false, tag.furtherValuesOf?.(item) ?? []);
    return [...values.values()];
  });
}
