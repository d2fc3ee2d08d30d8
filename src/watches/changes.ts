import { answerOrders } from '../dataset/gatherings.ts';
import { cardOf } from '../reports/card.ts';
import { adsByKey, type DatasetContents, idKey } from '../storage/dataset.ts';
import { objectOf, type StoredItem, versionAt } from '../storage/item-versions.ts';
import { pickTitle } from '../ui/ad-card.tsx';
import { type Change, changesBetween } from '../views/ad-changes.ts';
import { creativeOf } from '../views/ad-media.ts';
import { columnWords } from '../views/column-title.ts';
import { dayOf } from '../views/dates.ts';
import { differingExcerpts } from '../views/differing-excerpts.ts';
import { count } from '../views/numbers.ts';
import { constant, joinFilled, linesOf, quote, word } from '../views/safe-text.ts';
import { fit, lineWithin, untrustedId } from '../views/tokens.ts';
import { type Fields, textOf } from '../views/view.ts';
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

export function newsOf({ changes, since, gathering }: Check, contents: DatasetContents, now: number): NewsGroup[] {
  if (changes === undefined) return [];
  const before = contents.gatherings.find(({ id }) => id === since?.gathering);
  const orders = before && answerOrders(before);
  const { fresh, updated, gone } = changes;
  const maxNew = maxNamed - Math.min(minChanged, updated.length);
  const newest = fresh.slice(0, maxNew);
  const changed = updated.slice(0, maxNamed - newest.length);
  const ended = gone.slice(0, maxNamed);
  const items = adsByKey(contents, new Set([...newest, ...changed, ...ended].map(idKey)));
  const group = (title: string, ids: string[], all: string[], changesOf = (_: StoredItem): string[] => []) => {
    const ads = ids.flatMap((id) => {
      const item = items.get(idKey(id));
      if (item === undefined) return [];
      const fields = objectOf(item) as Fields;
      const kind = textOf(fields.displayFormat, 12);
      const format = joinFilled([kind && constant(kind), creativeOf(fields)], ' ');
      const page = textOf(fields.appUrl, 100);
      return [{ ...cardOf(fields, { ...item, now }), format, changes: changesOf(item), page }];
    });
    return { title, ads, total: all.length };
  };
  return [
    group('New', newest, fresh),
    group('Changed', changed, updated, (item) => changeTexts(orders?.get(idKey(item.id)) ?? 0, item)),
    group('No longer listed (they may still be running)', ended, gathering.complete ? gone : []),
  ].filter(({ total }) => total > 0);
}

/** Writes `headline "old" → "new"` for the first fields that differ from the version after answer number `order`. */
function changeTexts(order: number, item: StoredItem): string[] {
  const then = versionAt(order, item);
  const changes = then ? changesBetween(objectOf(then), objectOf(item)) : [];
  const texts = changes.slice(0, maxChanges).map((change) => {
    const label = columnWords(change.field);
    const values = shownValues(change);
    return values === undefined ? `${label} changed` : `${label} ${values.join(' → ')}`;
  });
  const more = changes.length - texts.length;
  return more > 0 ? [...texts, `${count(more, 'more field')} changed`] : texts;
}

/** Returns both values in a form in which they look different; undefined if there is none. */
function shownValues({ from, to }: Change): [string, string] | undefined {
  if (from === undefined || to === undefined) return;
  if (from === null || to === null) return [from === null ? 'none' : startOf(from), to === null ? 'none' : startOf(to)];
  const [before, after] = [calendarDay(from), calendarDay(to)];
  if (before !== undefined && after !== undefined && before !== after) return [before, after];
  return differingExcerpts(from, to);
}

const calendarDay = (text: string) => (/^\d{4}-\d\d-\d\dT/.test(text) ? dayOf(text) : undefined);

const startOf = (text: string) => calendarDay(text) ?? quote(lineWithin(text, 28));

export function newsText(groups: readonly NewsGroup[], tokens: number): string {
  return groups
    .map(({ title, ads, total }) => {
      const lines = ads.map(adLine);
      const shown = lines.slice(
        0,
        fit({ items: lines, budget: tokens / groups.length, render: (some) => some.join('\n') }),
      );
      return linesOf([`${title}:`, ...shown, total > shown.length && `- and ${total - shown.length} more`]);
    })
    .join('\n');
}

function adLine({ card, format, changes, page }: NewsAd): string {
  const { id, pageName, startedAt } = card;
  const about = [format, startedAt && `started ${dayOf(startedAt)}`].filter(Boolean);
  const facts = [...(changes.length > 0 ? changes : about), word(untrustedId(id)), page && quote(page)];
  return `- ${quote(pageName ?? 'Advertiser unknown')}: ${quote(pickTitle(card))}; ${facts.filter(Boolean).join('; ')}`;
}
