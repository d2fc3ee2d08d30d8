import { isNonBlank, type RecordType, type Tag } from './searchable-records.ts';

/**
 * A value by which a search can find a record, e.g. the country `DE`. Each different value has one row in the table of
 * tag values.
 */
export interface TagValue {
  key: string;
  /** The normalized value, which is compared with filter values. */
  value: string;
  /** The value as the record spells it. Counts and suggestions show it. */
  spelling: string;
  /** False for a value that filters find but counts ignore, e.g. a parent domain. */
  isCounted: boolean;
}

/** Trims a text and replaces the characters that SQLite cannot store. */
const toStorableText = (text: string): string => text.trim().replace(/[\p{Cs}\0]/gu, '\uFFFD');

/** Normalizes a tag value, so that it can be compared with filter values. All values except ids become lower case. */
export function normalizeTagValue({ isId }: Pick<Tag, 'isId'>, value: string): string {
  return isId ? toStorableText(value) : toStorableText(value).toLowerCase();
}

/** Returns the values of all tags of a record, without duplicates. */
export function collectTagValues({ tags }: Pick<RecordType, 'tags'>, record: unknown): TagValue[] {
  return tags.flatMap((tag) => {
    const valueByNormalizedText = new Map<string, TagValue>();
    const addTexts = (isCounted: boolean, texts: (string | null | undefined)[]) => {
      for (const text of texts.filter(isNonBlank)) {
        const value = normalizeTagValue(tag, text);
        if (!valueByNormalizedText.has(value))
          valueByNormalizedText.set(value, { key: tag.key, value, spelling: toStorableText(text), isCounted });
      }
    };
    addTexts(true, tag.getValues(record));
    addTexts(false, tag.getExtraValues?.(record) ?? []);
    return [...valueByNormalizedText.values()];
  });
}
