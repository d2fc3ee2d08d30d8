import { parseDomain } from '../../views/urls.ts';
import { isNonBlank, type RecordType, type TagFilter } from './searchable-records.ts';

/**
 * A value by which a search can find a record, e.g. the country `DE`. Each distinct value has one row in the table of
 * tag values.
 */
export interface TagValue {
  key: string;
  /** The normalized value, which a search compares with filter values. */
  normalizedValue: string;
  /** The value as the record spells it, for counts and suggestions. */
  spelling: string;
  /** False if filters find the value but counts ignore it, as for a parent domain. */
  isCounted: boolean;
}

/** Trims a text, and replaces characters that SQLite cannot store. */
const toStorableText = (text: string): string => text.trim().replace(/[\p{Cs}\0]/gu, '\uFFFD');

/**
 * Normalizes a tag value for comparison with filter values. For all values except ids, differences in case and in the
 * Unicode form of letters do not matter. A domain is converted to the form in which DNS and the links of ads write it.
 */
export function normalizeTagValue({ isId, isDomain }: Pick<TagFilter, 'isId' | 'isDomain'>, tagValue: string): string {
  const text = toStorableText(tagValue);
  if (isId) return text;
  return (isDomain ? parseDomain(text) : undefined) ?? text.normalize('NFC').toLowerCase();
}

/** Collects the values of all tags of a record, without duplicates. */
export function collectTagValues({ tagFilters }: Pick<RecordType, 'tagFilters'>, record: unknown): TagValue[] {
  return tagFilters.flatMap((tagFilter) => {
    const tagValueByNormalizedValue = new Map<string, TagValue>();
    const addTexts = (isCounted: boolean, texts: (string | null | undefined)[]) => {
      for (const text of texts.filter(isNonBlank)) {
        const normalizedValue = normalizeTagValue(tagFilter, text);
        if (!tagValueByNormalizedValue.has(normalizedValue))
          tagValueByNormalizedValue.set(normalizedValue, {
            key: tagFilter.key,
            normalizedValue,
            spelling: toStorableText(text),
            isCounted,
          });
      }
    };
    addTexts(true, tagFilter.getValues(record));
    addTexts(false, tagFilter.getExtraValues?.(record) ?? []);
    return [...tagValueByNormalizedValue.values()];
  });
}
