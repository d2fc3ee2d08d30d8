import { findLastAnswers } from '../dataset/gatherings.ts';
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

/** An ad in the news of a watch, with what changed. */
interface NewsAd extends ReturnType<typeof buildReportCard> {
  /** Format and creative of the ad, for example `VIDEO 15 s`, safe to use in a text. */
  format: string;
  changes: readonly string[];
  page: string | undefined;
}

/** The new, changed or missing ads of a watch. `total` counts all of them, `ads` holds the first ones. */
interface NewsGroup {
  title: string;
  ads: readonly NewsAd[];
  total: number;
}

/** The most new and changed ads that are named. As many ads that are gone are named. */
const maxNamedAds = 10;
/** The number of named ads that is reserved for changed ads, however many are new. */
const reservedForChanged = 3;
/** The most changes that are shown for an ad. */
const maxChanges = 3;

/**
 * Collects the new, changed and missing ads of a check. Returns no groups if there is no earlier check to compare with.
 */
export function collectNews(
  { changes, previousCheck, gathering }: Check,
  contents: DatasetContents,
  now: number,
): NewsGroup[] {
  if (changes === undefined) return [];
  const previousGathering = contents.gatherings.find(({ id }) => id === previousCheck?.gathering);
  const orders = previousGathering && findLastAnswers(previousGathering);
  const { newIds, updatedIds, goneIds } = changes;
  const maxNew = maxNamedAds - Math.min(reservedForChanged, updatedIds.length);
  const newest = newIds.slice(0, maxNew);
  const changed = updatedIds.slice(0, maxNamedAds - newest.length);
  const ended = goneIds.slice(0, maxNamedAds);
  const items = pickAdsById(contents, new Set([...newest, ...changed, ...ended].map(normalizeAdId)));
  const group = (title: string, ids: string[], all: string[], changesOf = (_: StoredItem): string[] => []) => {
    const ads = ids.flatMap((id) => {
      const item = items.get(normalizeAdId(id));
      if (item === undefined) return [];
      const fields = parseItem(item) as Fields;
      const kind = readText(fields.displayFormat, 12);
      const format = joinNonEmpty([kind && quoteUnlessConstant(kind), describeCreative(fields)], ' ');
      const page = readText(fields.appUrl, 100);
      return [{ ...buildReportCard(fields, { ...item, now }), format, changes: changesOf(item), page }];
    });
    return { title, ads, total: all.length };
  };
  return [
    group('New', newest, newIds),
    group('Changed', changed, updatedIds, (item) => formatChanges(orders?.get(normalizeAdId(item.id)) ?? 0, item)),
    group('No longer listed (they may still be running)', ended, gathering.complete ? goneIds : []),
  ].filter(({ total }) => total > 0);
}

/** Formats the first changes of an ad since answer number `order`, for example `headline "old" → "new"`. */
function formatChanges(order: number, item: StoredItem): string[] {
  const then = findVersionAt(order, item);
  const changes = then ? findChanges(parseItem(then), parseItem(item)) : [];
  const texts = changes.slice(0, maxChanges).map((change) => {
    const label = splitColumnName(change.field);
    const values = formatValues(change);
    return values === undefined ? `${label} changed` : `${label} ${values.join(' → ')}`;
  });
  const more = changes.length - texts.length;
  return more > 0 ? [...texts, `${formatCount(more, 'more field')} changed`] : texts;
}

/** Formats both values so that their difference is visible. Returns undefined for values that cannot be shown. */
function formatValues({ from, to }: Change): [string, string] | undefined {
  if (from === undefined || to === undefined) return;
  if (from === null || to === null)
    return [from === null ? 'none' : formatValue(from), to === null ? 'none' : formatValue(to)];
  const [before, after] = [formatCalendarDay(from), formatCalendarDay(to)];
  if (before !== undefined && after !== undefined && before !== after) return [before, after];
  return excerptDifference(from, to);
}

const formatCalendarDay = (text: string) => (/^\d{4}-\d\d-\d\dT/.test(text) ? formatDay(text) : undefined);

const formatValue = (text: string) => formatCalendarDay(text) ?? quote(truncateLine(text, 28));

/** Formats the news of a watch within a number of tokens, which the groups share. */
export function formatNews(groups: readonly NewsGroup[], tokens: number): string {
  return groups
    .map(({ title, ads, total }) => {
      const lines = ads.map(formatAdLine);
      const fittingLines = lines.slice(
        0,
        countFittingItems({ items: lines, budget: tokens / groups.length, render: (some) => some.join('\n') }),
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
  const about = [format, startedAt && `started ${formatDay(startedAt)}`].filter(Boolean);
  const facts = [...(changes.length > 0 ? changes : about), quoteUnlessWord(sanitizeId(id)), page && quote(page)];
  return `- ${quote(pageName ?? 'Advertiser unknown')}: ${quote(pickTitle(card))}; ${facts.filter(Boolean).join('; ')}`;
}
