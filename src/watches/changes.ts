import { findLastAnswers } from '../dataset/gatherings.ts';
import { cardOf } from '../reports/card.ts';
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

interface NewsAd extends ReturnType<typeof cardOf> {
  /** `VIDEO 15 s`, safe to stand in a text. */
  format: string;
  changes: readonly string[];
  page: string | undefined;
}

interface NewsGroup {
  title: string;
  ads: readonly NewsAd[];
  total: number;
}

/** New and changed ads that are named, and as many that are gone. */
const maxNamed = 10;
/** Of them changed ones, however many are new. */
const minChanged = 3;
const maxChanges = 3;

export function collectNews(
  { changes, previousCheck, gathering }: Check,
  contents: DatasetContents,
  now: number,
): NewsGroup[] {
  if (changes === undefined) return [];
  const before = contents.gatherings.find(({ id }) => id === previousCheck?.gathering);
  const orders = before && findLastAnswers(before);
  const { newIds, updatedIds, goneIds } = changes;
  const maxNew = maxNamed - Math.min(minChanged, updatedIds.length);
  const newest = newIds.slice(0, maxNew);
  const changed = updatedIds.slice(0, maxNamed - newest.length);
  const ended = goneIds.slice(0, maxNamed);
  const items = pickAdsById(contents, new Set([...newest, ...changed, ...ended].map(normalizeAdId)));
  const group = (title: string, ids: string[], all: string[], changesOf = (_: StoredItem): string[] => []) => {
    const ads = ids.flatMap((id) => {
      const item = items.get(normalizeAdId(id));
      if (item === undefined) return [];
      const fields = parseItem(item) as Fields;
      const kind = readText(fields.displayFormat, 12);
      const format = joinNonEmpty([kind && quoteUnlessConstant(kind), describeCreative(fields)], ' ');
      const page = readText(fields.appUrl, 100);
      return [{ ...cardOf(fields, { ...item, now }), format, changes: changesOf(item), page }];
    });
    return { title, ads, total: all.length };
  };
  return [
    group('New', newest, newIds),
    group('Changed', changed, updatedIds, (item) => changeTexts(orders?.get(normalizeAdId(item.id)) ?? 0, item)),
    group('No longer listed (they may still be running)', ended, gathering.complete ? goneIds : []),
  ].filter(({ total }) => total > 0);
}

/** Writes `headline "old" → "new"` for the first fields that differ from the version after answer number `order`. */
function changeTexts(order: number, item: StoredItem): string[] {
  const then = findVersionAt(order, item);
  const changes = then ? findChanges(parseItem(then), parseItem(item)) : [];
  const texts = changes.slice(0, maxChanges).map((change) => {
    const label = splitColumnName(change.field);
    const values = shownValues(change);
    return values === undefined ? `${label} changed` : `${label} ${values.join(' → ')}`;
  });
  const more = changes.length - texts.length;
  return more > 0 ? [...texts, `${formatCount(more, 'more field')} changed`] : texts;
}

/** Returns both values in a form in which they look different; undefined if there is none. */
function shownValues({ from, to }: Change): [string, string] | undefined {
  if (from === undefined || to === undefined) return;
  if (from === null || to === null) return [from === null ? 'none' : startOf(from), to === null ? 'none' : startOf(to)];
  const [before, after] = [calendarDay(from), calendarDay(to)];
  if (before !== undefined && after !== undefined && before !== after) return [before, after];
  return excerptDifference(from, to);
}

const calendarDay = (text: string) => (/^\d{4}-\d\d-\d\dT/.test(text) ? formatDay(text) : undefined);

const startOf = (text: string) => calendarDay(text) ?? quote(truncateLine(text, 28));

export function formatNews(groups: readonly NewsGroup[], tokens: number): string {
  return groups
    .map(({ title, ads, total }) => {
      const lines = ads.map(adLine);
      const shown = lines.slice(
        0,
        countFittingItems({ items: lines, budget: tokens / groups.length, render: (some) => some.join('\n') }),
      );
      return joinLines([`${title}:`, ...shown, total > shown.length && `- and ${total - shown.length} more`]);
    })
    .join('\n');
}

function adLine({ card, format, changes, page }: NewsAd): string {
  const { id, pageName, startedAt } = card;
  const about = [format, startedAt && `started ${formatDay(startedAt)}`].filter(Boolean);
  const facts = [...(changes.length > 0 ? changes : about), quoteUnlessWord(sanitizeId(id)), page && quote(page)];
  return `- ${quote(pageName ?? 'Advertiser unknown')}: ${quote(pickTitle(card))}; ${facts.filter(Boolean).join('; ')}`;
}
