import { isNonBlank, type RecordType, type Tag } from './searchable-records.ts';

/**
 * A value by which a search can find a record, e.g. a country. Each different value is one row in the table of tag
 * values.
 */
export interface TagValue {
  key: string;
  /** The normalized value, which is compared with the values of filters. */
  value: string;
  /** The value as the record spells it, for counts and suggestions. */
  spelling: string;
  /** False for values that filters find but counts leave out, e.g. parent domains. */
  isCounted: boolean;
}

/** Trims a text and replaces characters that SQLite cannot store. */
const toStorableText = (text: string): string => text.trim().replace(/[\p{Cs}\0]/gu, '\uFFFD');

/**
 * Normalizes a tag value, so that stored values can be compared with the values of filters. All values except ids
 * become lower case.
 */
export function normalizeTagValue({ isId }: Pick<Tag, 'isId'>, value: string): string {
  return isId ? toStorableText(value) : toStorableText(value).toLowerCase();
}

/** Returns the values of all tags of a record, without duplicates. */
export function collectTagValues({ tags }: Pick<RecordType, 'tags'>, item: unknown): TagValue[] {
  return tags.flatMap((tag) => {
    const values = new Map<string, TagValue>();
    const addTexts = (isCounted: boolean, texts: (string | null | undefined)[]) => {
      for (const text of texts.filter(isNonBlank)) {
        const value = normalizeTagValue(tag, text);
        if (!values.has(value)) values.set(value, { key: tag.key, value, spelling: toStorableText(text), isCounted });
      }
    };
    addTexts(true, tag.getValues(item));
    addTexts(false, tag.getExtraValues?.(item) ?? []);
    return [...values.values()];
  });
}
