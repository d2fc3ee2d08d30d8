import { formatGoneAdsTitle } from '../dataset/gathering-summary.ts';
import { findLastResponseNumbers } from '../dataset/gatherings.ts';
import { buildReportCard } from '../reports/card.ts';
import { type DatasetContents, normalizeAdId, pickAdsById } from '../storage/dataset.ts';
import { findVersionAt, parseItem, type StoredItem } from '../storage/item-versions.ts';
import { pickTitle } from '../ui/ad-card.tsx';
import { type Change, findChanges } from '../views/ad-changes.ts';
import { describeCreative } from '../views/ad-media.ts';
import { splitColumnName } from '../views/column-title.ts';
import { formatDay } from '../views/dates.ts';
import { excerptDifference } from '../views/differing-excerpts.ts';
import { formatCount } from '../views/numbers.ts';
import { joinLines, joinNonEmpty, quote, quoteUnlessConstant, quoteUnlessWord } from '../views/safe-text.ts';
import { countFittingItems, sanitizeId, truncateLine } from '../views/tokens.ts';
import { type Fields, readText } from '../views/view.ts';
import type { Check } from './check.ts';

/** An ad that `check_watches` lists as new, changed or gone, with the changes of its fields. */
interface NewsAd extends ReturnType<typeof buildReportCard> {
  /** Format and creative of the ad, e.g. `VIDEO 15 s`. The text is safe to show to a model. */
  format: string;
  changes: readonly string[];
  page: string | undefined;
}

/**
 * The new, changed or gone ads that a check found. `ads` contains only the first of them; `total` is the full count.
 */
interface NewsGroup {
  title: string;
  ads: readonly NewsAd[];
  total: number;
}

/** The largest number of ads that are listed: of new and changed ads together, and of gone ads. */
const maxNamedAds = 10;
/** How many places in the list are reserved for changed ads. Otherwise new ads could take all of them. */
const reservedForChanged = 3;
/** The largest number of changes that are listed for one ad. */
const maxChanges = 3;

/**
 * Collects the new, changed and gone ads of a watch (a saved search). Returns an empty list if there is no earlier
 * check to compare with.
 */
export function collectNews(
  { changes, previousCheck, gathering }: Check,
  contents: DatasetContents,
  now: number,
): NewsGroup[] {
  if (changes === undefined) return [];
  const previousGathering = contents.gatherings.find(({ id }) => id === previousCheck?.gathering);
  const lastAnswerOrders = previousGathering && findLastResponseNumbers(previousGathering);
  const { newIds, updatedIds, goneIds } = changes;
  const maxNew = maxNamedAds - Math.min(reservedForChanged, updatedIds.length);
  const namedNewIds = newIds.slice(0, maxNew);
  const namedChangedIds = updatedIds.slice(0, maxNamedAds - namedNewIds.length);
  const namedGoneIds = goneIds.slice(0, maxNamedAds);
  const items = pickAdsById(
    contents,
    new Set([...namedNewIds, ...namedChangedIds, ...namedGoneIds].map(normalizeAdId)),
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
      const fields = parseItem(item) as Fields;
      const kind = readText(fields.displayFormat, 12);
      const format = joinNonEmpty([kind && quoteUnlessConstant(kind), describeCreative(fields)], ' ');
      const page = readText(fields.appUrl, 100);
      return [{ ...buildReportCard(fields, { ...item, now }), format, changes: formatItemChanges(item), page }];
    });
    return { title, ads, total: allIds.length };
  };
  return [
    createGroup('New', namedNewIds, newIds),
    createGroup('Changed', namedChangedIds, updatedIds, (item) =>
      formatChanges(lastAnswerOrders?.get(normalizeAdId(item.id)) ?? 0, item),
    ),
    createGroup(formatGoneAdsTitle(gathering.filters), namedGoneIds, gathering.complete ? goneIds : []),
  ].filter(({ total }) => total > 0);
}

/**
 * Formats the first changes of an ad since the API response with the sequence number `order`, e.g. `headline "old" →
 * "new"`.
 */
function formatChanges(order: number, item: StoredItem): string[] {
  const previousVersion = findVersionAt(order, item);
  const changes = previousVersion ? findChanges(parseItem(previousVersion), parseItem(item)) : [];
  const texts = changes.slice(0, maxChanges).map((change) => {
    const label = splitColumnName(change.field);
    const values = formatValues(change);
    return values === undefined ? `${label} changed` : `${label} ${values.join(' → ')}`;
  });
  const omittedCount = changes.length - texts.length;
  return omittedCount > 0 ? [...texts, `${formatCount(omittedCount, 'more field')} changed`] : texts;
}

/**
 * Shortens the old and the new value of a field so that the difference stays visible. Returns undefined if the values
 * cannot be shown.
 */
function formatValues({ from, to }: Change): [string, string] | undefined {
  if (from === undefined || to === undefined) return;
  if (from === null || to === null)
    return [from === null ? 'none' : formatValue(from), to === null ? 'none' : formatValue(to)];
  const [dayBefore, dayAfter] = [formatCalendarDay(from), formatCalendarDay(to)];
  if (dayBefore !== undefined && dayAfter !== undefined && dayBefore !== dayAfter) return [dayBefore, dayAfter];
  return excerptDifference(from, to);
}

const formatCalendarDay = (text: string) => (/^\d{4}-\d\d-\d\dT/.test(text) ? formatDay(text) : undefined);

const formatValue = (text: string) => formatCalendarDay(text) ?? quote(truncateLine(text, 28));

/** Formats the new, changed and gone ads as lists. All groups together take at most `maxTokens` tokens. */
export function formatNews(groups: readonly NewsGroup[], maxTokens: number): string {
  return groups
    .map(({ title, ads, total }) => {
      const lines = ads.map(formatAdLine);
      const fittingLines = lines.slice(
        0,
        countFittingItems({ items: lines, budget: maxTokens / groups.length, render: (some) => some.join('\n') }),
      );
      return joinLines([
        `${title}:`,
        ...fittingLines,
        total > fittingLines.length && `- and ${total - fittingLines.length} more`,
      ]);
    })
    .join('\n');
}

function formatAdLine({ card, format, changes, page }: NewsAd): string {
  const { id, pageName, startedAt } = card;
  const details = [format, startedAt && `started ${formatDay(startedAt)}`].filter(Boolean);
  const parts = [...(changes.length > 0 ? changes : details), quoteUnlessWord(sanitizeId(id)), page && quote(page)];
  return `- ${quote(pageName ?? 'Advertiser unknown')}: ${quote(pickTitle(card))}; ${parts.filter(Boolean).join('; ')}`;
}
