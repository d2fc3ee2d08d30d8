import { type ChangedValue, changesBetween } from '../dataset/changes.ts';
import { answerOrders } from '../dataset/gatherings.ts';
import type { UsualView } from '../dataset/launches.ts';
import type { Check } from '../dataset/watches.ts';
import { cardOf } from '../reports/card.ts';
import { adsByKey, type DatasetContents, idKey } from '../storage/dataset.ts';
import { objectOf, type StoredItem, versionAt } from '../storage/item-versions.ts';
import { titleOf } from '../ui/ad-card.tsx';
import { creativeOf } from '../views/ad-media.ts';
import { columnWords } from '../views/column-title.ts';
import { dayOf } from '../views/dates.ts';
import { count } from '../views/lists.ts';
import { constant, joinFilled, linesOf, quote, word } from '../views/safe-text.ts';
import { fit, lineWithin, untrustedId } from '../views/tokens.ts';
import { type Fields, textOf } from '../views/view.ts';

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

/** `headline "old" → "new"` of the first fields that differ. */
function changeTexts(order: number, item: StoredItem): string[] {
  const then = versionAt(order, item);
  const changes = then ? changesBetween(then, item) : [];
  const texts = changes.slice(0, maxChanges).map(({ field, from, to }) => {
    const [old, now] = [valueText(from, to), valueText(to, from)];
    const label = quoteless(columnWords(lineWithin(field, 12)));
    return old === undefined || now === undefined ? `${label} changed` : `${label} ${old} → ${now}`;
  });
  const more = changes.length - texts.length;
  return more > 0 ? [...texts, `${count(more, 'more field')} changed`] : texts;
}

/** Names of fields are the service's, too. */
const quoteless = (name: string) => (/^[a-z\d ]{1,40}$/i.test(name) ? name : quote(name));

/** A value beside its other version: of a long text, what stands around the first difference. */
function valueText(value: ChangedValue, other: ChangedValue): string | undefined {
  if (value === null) return 'none';
  if (typeof value !== 'string') return value === undefined ? undefined : String(value);
  const day = /^\d{4}-\d\d-\d\dT/.test(value) ? dayOf(value) : undefined;
  if (day !== undefined && day !== dayOf(other)) return day;
  const text = textOf(value, 2000) ?? '';
  let same = 0;
  if (typeof other === 'string') while (same < text.length && text[same] === other[same]) same++;
  const start = same > 60 ? text.lastIndexOf(' ', same - 20) + 1 : 0;
  return quote(`${start > 0 ? '…' : ''}${lineWithin(text.slice(start), 28)}`);
}

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
  return `- ${quote(pageName ?? 'Advertiser unknown')}: ${quote(titleOf(card))}; ${facts.filter(Boolean).join('; ')}`;
}

const numbers: Record<number, string> = { 4: 'four', 5: 'five', 6: 'six', 7: 'seven', 8: 'eight' };

/** `Of 14 new, 9 started since 16 Nov; in the eight weeks before 3 to 9 a week (median 5).` */
export function usualText({ started, weeks, median, least, most }: UsualView, { since, changes, at }: Check): string {
  const days = (at - (since?.at ?? at)) / 86_400_000;
  const each = Math.abs(days - 7) < 0.5 ? 'a week' : 'in as many days';
  const range = least === most ? String(least) : `${least} to ${most}`;
  const day = dayFormat.format(since?.at);
  return `Of ${changes?.fresh.length} new, ${started} started since ${day}; in the ${numbers[weeks]} weeks before ${range} ${each} (median ${median}).`;
}

const dayFormat = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });
