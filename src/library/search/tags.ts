import { isNonBlank, type RecordType, type Tag } from './searchable-records.ts';

/** A value that a record has for a tag, as a row of the table of tag values. */
export interface TagValue {
  key: string;
  /** The value in the form in which stored values and filters are compared. */
  value: string;
  /** The value as the record writes it. */
  spelling: string;
  /** False for values that only the filter finds and that counts leave out, such as parent domains. */
  isCounted: boolean;
}

/** Trims a text and replaces the characters that SQLite cannot store. */
const toStorableText = (text: string): string => text.trim().replace(/[\p{Cs}\0]/gu, '\uFFFD');

/** Returns a value in the form in which stored values and filters are compared. Ids keep their case. */
export function normalizeTagValue({ isId }: Pick<Tag, 'isId'>, value: string): string {
  return isId ? toStorableText(value) : toStorableText(value).toLowerCase();
}

/** Returns the values of all tags of a record, each value once for its tag. */
export function collectTagValues({ tags }: Pick<RecordType, 'tags'>, item: unknown): TagValue[] {
  return tags.flatMap((tag) => {
    const values = new Map<string, TagValue>();
    const add = (isCounted: boolean, texts: (string | null | undefined)[]) => {
      for (const text of texts.filter(isNonBlank)) {
        const value = normalizeTagValue(tag, text);
        if (!values.has(value)) values.set(value, { key: tag.key, value, spelling: toStorableText(text), isCounted });
      }
    };
    add(true, tag.getValues(item));
    add(false, tag.getExtraValues?.(item) ?? []);
    return [...values.values()];
  });
}
