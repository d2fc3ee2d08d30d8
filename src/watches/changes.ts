import { formatGoneAdsTitle } from '../dataset/gathering-summary.ts';
import { findLastResponseSequenceNumbers } from '../dataset/gatherings.ts';
import { buildReportCard } from '../reports/card.ts';
import { type DatasetContents, normalizeAdId, pickAdsById } from '../storage/dataset.ts';
import { findVersionAt, parseItem, type StoredItem } from '../storage/item-versions.ts';
import { pickTitle } from '../ui/ad-card.tsx';
import { type FieldChange, findChanges } from '../views/ad-changes.ts';
import { describeCreative } from '../views/ad-media.ts';
import { splitColumnName } from '../views/column-title.ts';
import { formatDay } from '../views/dates.ts';
import { buildDifferenceExcerpts } from '../views/differing-excerpts.ts';
import { formatCount } from '../views/numbers.ts';
import { joinLines, joinNonEmpty, quote, quoteUnlessConstant, quoteUnlessWord } from '../views/safe-text.ts';
import { countFittingItems, sanitizeId, truncateLine } from '../views/tokens.ts';
import { readText, type UntypedFields } from '../views/view.ts';
import type { WatchCheck } from './check.ts';

/** An ad that `check_watches` reports as new, changed or gone. */
interface ReportedAd extends ReturnType<typeof buildReportCard> {
  /** The format and the media of the ad in words, e.g. `VIDEO 15 s`. This text is safe to show to a model. */
  format: string;
  changes: readonly string[];
  appUrl: string | undefined;
}

/**
 * A group of reported ads, e.g. the new ads. `ads` contains only the first ads of the group. `totalCount` is the number
 * of all its ads.
 */
interface ReportedAdGroup {
  title: string;
  ads: readonly ReportedAd[];
  totalCount: number;
}

/** The maximum number of new and changed ads to list together. The same maximum applies separately to gone ads. */
const maxReportedAds = 10;
/** The number of places in the list that are reserved for changed ads. Otherwise, new ads could take all places. */
const placesReservedForChangedAds = 3;
/** The maximum number of changes to list for one ad. For further changes, the text contains only their number. */
const maxListedChangesPerAd = 3;

/**
 * Collects the new, changed and gone ads of a watch (a search that is repeated to find new ads). Returns an empty list
 * if there is no earlier check to compare with.
 */
export function collectReportedAds(
  { changes, previousCheck, gathering }: WatchCheck,
  contents: DatasetContents,
  now: number,
): ReportedAdGroup[] {
  if (changes === undefined) return [];
  const previousGathering = contents.gatherings.find(({ id }) => id === previousCheck?.gatheringId);
  const lastSequenceNumbers = previousGathering && findLastResponseSequenceNumbers(previousGathering);
  const { newIds, updatedIds, goneIds } = changes;
  const maxNewIds = maxReportedAds - Math.min(placesReservedForChangedAds, updatedIds.length);
  const reportedNewIds = newIds.slice(0, maxNewIds);
  const reportedChangedIds = updatedIds.slice(0, maxReportedAds - reportedNewIds.length);
  const reportedGoneIds = goneIds.slice(0, maxReportedAds);
  const items = pickAdsById(
    contents,
    new Set([...reportedNewIds, ...reportedChangedIds, ...reportedGoneIds].map(normalizeAdId)),
  );
  const createGroup = (
    title: string,
    ids: string[],
    allIds: string[],
    formatItemChanges = (_: StoredItem): string[] => [],
  ) => {
    const ads = ids.flatMap((id) => {
      const item = items.get(normalizeAdId(id));
      if (item === undefined) return [];
      const fields = parseItem(item) as UntypedFields;
      const displayFormat = readText(fields.displayFormat, 12);
      const format = joinNonEmpty([displayFormat && quoteUnlessConstant(displayFormat), describeCreative(fields)], ' ');
      const appUrl = readText(fields.appUrl, 100);
      return [{ ...buildReportCard(fields, { ...item, now }), format, changes: formatItemChanges(item), appUrl }];
    });
    return { title, ads, totalCount: allIds.length };
  };
  return [
    createGroup('New', reportedNewIds, newIds),
    createGroup('Changed', reportedChangedIds, updatedIds, (item) =>
      formatChanges(lastSequenceNumbers?.get(normalizeAdId(item.id)) ?? 0, item),
    ),
    createGroup(formatGoneAdsTitle(gathering.filters), reportedGoneIds, gathering.isComplete ? goneIds : []),
  ].filter(({ totalCount }) => totalCount > 0);
}

/**
 * Formats the first changes of an ad, e.g. as `headline "old" → "new"`. Only changes after the API response with the
 * sequence number `lastSequenceNumber` count.
 */
function formatChanges(lastSequenceNumber: number, item: StoredItem): string[] {
  const previousVersion = findVersionAt(lastSequenceNumber, item);
  const changes = previousVersion ? findChanges(parseItem(previousVersion), parseItem(item)) : [];
  const changeTexts = changes.slice(0, maxListedChangesPerAd).map((change) => {
    const label = splitColumnName(change.field);
    const valueTexts = formatValuePair(change);
    return valueTexts === undefined ? `${label} changed` : `${label} ${valueTexts.join(' → ')}`;
  });
  const omittedCount = changes.length - changeTexts.length;
  return omittedCount > 0 ? [...changeTexts, `${formatCount(omittedCount, 'more field')} changed`] : changeTexts;
}

/**
 * Formats the old and the new value of a field. Shortens long values so that their difference remains visible. Returns
 * undefined if the values cannot be shown.
 */
function formatValuePair({ oldValue, newValue }: FieldChange): [string, string] | undefined {
  if (oldValue === undefined || newValue === undefined) return;
  if (oldValue === null || newValue === null)
    return [oldValue === null ? 'none' : formatValue(oldValue), newValue === null ? 'none' : formatValue(newValue)];
  const [dayBefore, dayAfter] = [formatCalendarDay(oldValue), formatCalendarDay(newValue)];
  if (dayBefore !== undefined && dayAfter !== undefined && dayBefore !== dayAfter) return [dayBefore, dayAfter];
  return buildDifferenceExcerpts(oldValue, newValue);
}

const formatCalendarDay = (text: string) => (/^\d{4}-\d\d-\d\dT/.test(text) ? formatDay(text) : undefined);

const formatValue = (text: string) => formatCalendarDay(text) ?? quote(truncateLine(text, 28));

/** Formats the new, changed and gone ads as lists of text. All lists together have at most `maxTokens` tokens. */
export function formatReportedAds(groups: readonly ReportedAdGroup[], maxTokens: number): string {
  return groups
    .map(({ title, ads, totalCount }) => {
      const lines = ads.map(formatAdLine);
      const fittingLines = lines.slice(
        0,
        countFittingItems({
          items: lines,
          maxTokens: maxTokens / groups.length,
          renderItems: (some) => some.join('\n'),
        }),
      );
      return joinLines([
        `${title}:`,
        ...fittingLines,
        totalCount > fittingLines.length && `- and ${totalCount - fittingLines.length} more`,
      ]);
    })
    .join('\n');
}

function formatAdLine({ card, format, changes, appUrl }: ReportedAd): string {
  const { id, pageName, startedAt } = card;
  const details = [format, startedAt && `started ${formatDay(startedAt)}`].filter(Boolean);
  const parts = [...(changes.length > 0 ? changes : details), quoteUnlessWord(sanitizeId(id)), appUrl && quote(appUrl)];
  return `- ${quote(pageName ?? 'Advertiser unknown')}: ${quote(pickTitle(card))}; ${parts.filter(Boolean).join('; ')}`;
}
