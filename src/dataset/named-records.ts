import { createInvalidRequestError } from '../api/errors.ts';
import { isSimilar, sortBySimilarity } from '../api/nearest.ts';
import { normalizeLine, quote } from '../views/safe-text.ts';
import { quoteUntrustedText } from '../views/tokens.ts';

/**
 * Returns the stored records (e.g. watches) with the given names, without duplicates.
 * @param recordNoun the noun for a record in the error message, e.g. `watch`
 * @throws AdLibraryError `invalid_request` for an unknown name; the message suggests a similar name or lists existing
 * names
 */
export function findRecordsByName<NamedRecord extends { name: string }>(
  recordNoun: string,
  records: readonly NamedRecord[],
  requestedNames: readonly string[],
): NamedRecord[] {
  const storedNames = records.map(({ name }) => name);
  return [...new Set(requestedNames.map(normalizeLine))].map((name) => {
    const record = records.find((storedRecord) => storedRecord.name === name);
    if (record) return record;
    const [nearestName = ''] = sortBySimilarity(name, storedNames);
    const hint = isSimilar(name, nearestName)
      ? `Did you mean ${quote(nearestName)}?`
      : `Existing: ${storedNames.slice(0, 20).map(quote).join(', ') || 'none'}.`;
    throw createInvalidRequestError(`There is no ${recordNoun} ${quoteUntrustedText(name, 30)}. ${hint}`);
  });
}
