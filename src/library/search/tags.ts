import { isNonBlank, type RecordType, type Tag } from './searchable-records.ts';

/**
 * A value by which a search can find a record, e.g. the country `DE`. Each distinct value has one row in the table of
 * tag values.
 */
export interface TagValue {
  key: string;
  /** The normalized value, which a search compares with filter values. */
  value: string;
  /** The value as the record spells it, for counts and suggestions. */
  spelling: string;
  /** False if filters find the value but counts ignore it, as for a parent domain. */
  isCounted: boolean;
}

/** Trims a text, and replaces characters that SQLite cannot store. */
const toStorableText = (text: string): string => text.trim().replace(/[\p{Cs}\0]/gu, '\uFFFD');

/** Normalizes a tag value for comparison with filter values. Converts all values except ids to lower case. */
export function normalizeTagValue({ isId }: Pick<Tag, 'isId'>, value: string): string {
  return isId ? toStorableText(value) : toStorableText(value).toLowerCase();
}

/** Collects the values of all tags of a record, without duplicates. */
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
