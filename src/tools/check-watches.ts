import * as z from 'zod';
import type { AdLibraryError } from '../api/call.ts';
import { isAbandoned, type Stop, stopOf } from '../dataset/gather.ts';
import { beginsAnew, changedLines, cleanId, minute } from '../dataset/gathering-report.ts';
import { foundBy, isComplete, questionKey } from '../dataset/gatherings.ts';
import { isoTime } from '../dataset/tables.ts';
import {
  type Check,
  compareWithLast,
  leastRecentFirst,
  questionOf,
  saveChecks,
  type Watch,
  watchesIn,
} from '../dataset/watches.ts';
import { count } from '../present/list-text.ts';
import { quote } from '../present/safe-text.ts';
import { estimateTokens, fit } from '../present/tokens.ts';
import { type DatasetContents, idKey } from '../state/dataset.ts';
import { objectOf } from '../state/item-versions.ts';
import { contentsOf, type Gathered, gatherAnew, roomText, stopData } from './gather-ads.ts';
import { adViews } from './pager.ts';
import { defineListTool, readOnly, type ToolContext } from './tool.ts';
import { namedWatches } from './watch-ads.ts';

export const checkWatches = defineListTool({
  name: 'check_watches',
  title: 'Check watches',
  description: 'Check the questions of watch_ads: which ads are new, changed or gone since the last complete check.',
  guide: 'What is new since the last time: check_watches.',
  annotations: readOnly,
  example: () => ({ maxCredits: 20 }),
  operations: ['searchAds', 'listCollectionItems'],
  severalCalls: true,
  keepsRecords: true,
  showsBoard: true,
  forBoard: (data) => {
    const { watches } = data as { watches: WatchCheck[] };
    const ids = watches.flatMap((watch) => [...(watch.new ?? []), ...(watch.changed ?? [])]);
    return ids.length > 0
      ? { ids: [...new Set(ids)] }
      : { gathering: watches.find((one) => one.gathering)?.gathering ?? null };
  },
  reportsProgress: true,
  input: z.strictObject({
    names: z.array(z.string()).min(1).optional().describe('default all'),
    maxCredits: z.number().min(0).describe('in all'),
  }),
  output: z.looseObject({ watches: z.array(z.looseObject({ name: z.string() })), stopped: z.string().optional() }),
  async run({ names, maxCredits }, context) {
    const { own } = await context.dataset();
    const all = watchesIn(await own.read('watch'));
    const chosen = names ? namedWatches(all, names) : all;
    const { checked, ended } = await checkAll(chosen, maxCredits, context);
    const failure = checked.find(({ stop }) => stop.error)?.stop.error;
    if (failure && checked.every(({ check }) => check === undefined)) throw failure;
    const note = isAbandoned(context.signal) ? undefined : await keep(checked, context);
    return viewChecks(checked, { ended, note }, context);
  },
});

/** What the board reads of a check. */
interface WatchCheck extends Record<'new' | 'changed', string[] | null> {
  gathering?: string;
}

interface Checked {
  watch: Watch;
  /** Why it read no more. */
  stop: Stop;
  gathered?: Gathered;
  /** Undefined where nothing of it was read. */
  check?: Check;
  contents: DatasetContents;
}

const defaultMaxAds = 1000;

/** One after the other, the one that was checked longest ago first. Watches of the same question are read once. */
async function checkAll(chosen: readonly Watch[], maxCredits: number, context: ToolContext) {
  const before = await contentsOf(context);
  const sorted = leastRecentFirst(chosen);
  const known = new Map<string, Gathered>();
  const checked: Checked[] = [];
  let left = maxCredits;
  let adsRead = 0;
  let ended: Stop | undefined;
  for (const [index, watch] of sorted.entries()) {
    const key = questionKey(watch);
    const same = known.get(key);
    const request = {
      question: questionOf(watch),
      maxAds: watch.maxAds ?? defaultMaxAds,
      maxCredits: Math.max(0, Math.min(watch.maxCredits, left)),
    };
    const own = { ...context, ...progressOf(context, `watch ${index + 1} of ${sorted.length}: `, adsRead) };
    const made = same ?? ended ?? (await gatherAnew(request, before, own).catch((error) => stopOf(error, context)));
    if ('reason' in made) {
      checked.push({ watch, stop: made, contents: before });
      ended ??= endOf(made);
      continue;
    }
    if (made !== same) left -= made.spent;
    adsRead += made.brought.size;
    const { gathering, contents, stop } = made;
    const complete = gathering !== undefined && isComplete(gathering, contents);
    if (complete) known.set(key, made);
    const isRead = gathering !== undefined && (complete || made.read > 0);
    checked.push({
      ...{ watch, stop, gathered: made, contents },
      ...(isRead && { check: compareWithLast(watch, { at: context.clock(), gathering, complete }, contents) }),
    });
    ended ??= endOf(stop);
  }
  const isShort = ({ stop, watch }: Checked) => stop.reason === 'maxCredits' && watch.maxCredits > left;
  const reason = ended?.reason ?? (checked.some(isShort) ? 'maxCredits' : undefined);
  return { checked, ended: reason };
}

/** After these no other watch is read: it would be refused, or there is no time. */
function endOf(stop: Stop): Stop | undefined {
  const isOver = ['usage_limit', 'deadline', 'shutdown'].includes(stop.reason);
  return isOver || stop.error?.failure.kind === 'payment_required' ? stop : undefined;
}

const progressOf = ({ onProgress }: ToolContext, start: string, before: number) =>
  onProgress && {
    onProgress: ({ progress, message }: { progress: number; message: string }) =>
      onProgress({ progress: before + progress, message: start + message }),
  };

/**
 * First what was checked, then that its gatherings were returned. If the process ends in between, the next check takes
 * the same gatherings, and compares them with the same check as this one.
 */
async function keep(checked: readonly Checked[], context: ToolContext): Promise<string | undefined> {
  const { own } = await context.dataset();
  const checks = new Map(checked.flatMap(({ watch, check }) => (check ? [[watch, check] as const] : [])));
  try {
    await saveChecks(own, checks);
  } catch (error) {
    const { text } = context.explain(error as AdLibraryError);
    return `This check could not be kept, so the next one compares with the same one as this. ${text}`;
  }
  for (const { gathered } of checked) await gathered?.markReturned();
  return;
}

/** Ids that a result lists in all. */
const maxIds = 600;

function viewChecks(
  checked: readonly Checked[],
  { ended, note }: { ended: string | undefined; note: string | undefined },
  context: ToolContext,
) {
  const lists = checked.flatMap(({ check }) =>
    check?.changes ? Object.values(check.changes).filter((ids: string[]) => ids.length > 0) : [],
  );
  const max = Math.max(4, Math.floor(maxIds / Math.max(1, lists.length)));
  const views = checked.map((one) => viewCheck(one, max, context));
  const data = { watches: views.map(({ data }) => data), ...(ended && { stopped: ended }), ...(note && { note }) };
  const heads = [checked.length === 0 ? 'There are no watches to check.' : undefined, note];
  const written = [...heads, ...views.map(({ text }) => text)].filter((line) => line !== undefined);
  let left = context.resultTokens - estimateTokens(written.join('\n')) - 20 * views.length;
  let waiting = views.filter(({ newAds }) => newAds.length > 0).length;
  const text = views.map((view) => {
    if (view.newAds.length === 0) return view.text;
    const list = newAdsText(view.newAds, Math.floor(left / waiting--), context);
    left -= estimateTokens(list);
    return `${view.text}\n${list}`;
  });
  return { data, text: [...heads.filter((line) => line !== undefined), ...text].join('\n\n') };
}

function viewCheck({ watch, stop, gathered, check, contents }: Checked, max: number, context: ToolContext) {
  const { gathering, complete = false, since, changes, lost } = check ?? {};
  const last = watch.complete[0];
  const compared = check ? since : last;
  const gone = complete ? changes?.gone : undefined;
  const ids = { new: changes?.fresh, changed: changes?.updated, gone };
  const more = Object.entries(ids).flatMap(([list, all = []]) => (all.length > max ? [[list, all.length - max]] : []));
  const { next: _, ...stopped } = stopData(stop, context);
  const room = roomText(stop, { maxAds: watch.maxAds ?? defaultMaxAds });
  const listed = (all: readonly string[] | undefined) => all?.slice(0, max).map(cleanId) ?? null;
  const data = {
    name: watch.name,
    ...{ new: listed(ids.new), changed: listed(ids.changed), gone: listed(ids.gone) },
    ...(more.length > 0 && { more: Object.fromEntries(more) }),
    found: gathering ? foundBy(gathering, contents) : null,
    read: check?.ads ?? 0,
    complete,
    ...stopped,
    since: compared ? isoTime(compared.at) : null,
    ...(gathering && { gathering: gathering.id }),
  };
  const { found, read } = data;
  const state = complete ? 'complete' : `not complete, stopped: ${stop.reason}`;
  const size = `${count(read, 'ad')} read${found === null ? '' : ` of ${found} found`}, ${state}.`;
  const notes = [
    changes && !complete && 'Only what was read is compared.',
    lost && `What the check of ${minute(isoTime(lost.at))} read is no longer kept, so this one counts as the first.`,
    check && !changes && !lost && 'First check: the next one tells what is new.',
    gathered?.startedOver && beginsAnew,
    stopped.problem,
    room ?? (!complete && check && 'check_watches goes on with it within a day; later it starts over.'),
  ];
  const counts =
    changes && since
      ? `${changes.fresh.length} new, ${changes.updated.length} changed${gone ? `, ${gone.length} not seen any more` : ''} since ${minute(isoTime(since.at))}; `
      : '';
  const lines = [
    [`${quote(watch.name)}: ${counts}${size}`, ...notes].filter(Boolean).join(' '),
    ...changedLines({ ...(ids.changed && { updated: ids.changed }), ...(gone && { gone }) }),
    more.length > 0 &&
      gathering &&
      since &&
      `All ids: query_ads: SELECT adId FROM gathered WHERE gatheringId = '${gathering.id}' EXCEPT SELECT adId FROM gathered WHERE gatheringId = '${since.gathering}'`,
  ];
  const fresh = new Set(changes?.fresh.map(idKey));
  const newAds = fresh.size === 0 ? [] : contents.ads.filter(({ id }) => fresh.has(idKey(id)));
  return { data, text: lines.filter(Boolean).join('\n'), newAds };
}

/** Below this nothing of a list is worth its frame. */
const minTokens = 200;

/** The new ads as a brief list, as many as fit. */
function newAdsText(ads: DatasetContents['ads'], tokens: number, { now }: ToolContext): string {
  const left = (shown: number) =>
    ads.length > shown ? `\n${count(ads.length - shown, 'new ad')} more: query_ads shows any of them.` : '';
  if (tokens < minTokens) return left(0).trimStart();
  const views = adViews('brief', { now, resultTokens: tokens });
  const all = ads.slice(0, Math.ceil(tokens / 20)).map((ad) => objectOf(ad));
  const items = all.map((ad) => views.view(ad));
  const shared = views.shared?.(all);
  const render = (leading: readonly (typeof items)[number][]) =>
    `New: ${views.text({ ...shared, items: leading })}${left(leading.length)}`;
  return render(items.slice(0, fit({ items, budget: tokens, render })));
}
