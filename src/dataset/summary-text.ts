import { seenText } from '../present/dates.ts';
import { count } from '../present/list-text.ts';
import { constant, quote, word } from '../present/safe-text.ts';
import { estimateTokens } from '../present/tokens.ts';
import type { Breakdown, Spread, Summary, ValueCount } from './summary.ts';

/**
 * The summary for a reader, within so many tokens: one line a label, every value with its number of ads, and the number
 * of what is left out. What does not fit is left out evenly, and counted too.
 */
export function summaryText(summary: Summary, maxTokens = 700): string {
  for (let share = 1; ; share *= 0.8) {
    const text = linesOf(summary, share).join('\n');
    if (estimateTokens(text) <= maxTokens || share < 0.01) return text;
  }
}

function linesOf(summary: Summary, share: number): string[] {
  const { active, known, variants } = summary;
  const line = (label: string, breakdown: Breakdown, show: (value: string) => string) =>
    `${label} (${breakdown.distinct}): ${valuesText(breakdown, { share, show })}`;
  return [
    `${count(summary.ads, 'ad')}: ${active.running} still running, ${active.ended} ended, ${active.unknown} unknown${active.lastSeen ? `, ${seenText(active.lastSeen)}` : ''}.`,
    line('Advertisers', summary.advertisers, quote),
    line('Formats', summary.formats, constant),
    line('Calls to action', summary.callsToAction, constant),
    line('Months started, newest first', summary.monthsStarted, word),
    line('Landing domains', summary.domains, word),
    line('Countries (an ad may count for several)', summary.countries, word),
    line('Languages of the copy', summary.languages, word),
    spreadText(summary.daysRunning),
    `Known of so many ads: reach ${known.reach}, spend ${known.spend}, revenue ${known.revenue}`,
    `Variants (copy of a page nearly the same): ${variants.distinct}; ads without copy: ${variants.adsWithoutCopy}`,
    line('First lines', summary.firstLines, quote),
  ];
}

function valuesText(
  { counts, left }: Breakdown,
  { share, show }: { share: number; show: (value: string) => string },
): string {
  const named = counts.filter(({ value }) => value !== null);
  const none = counts.find(({ value }) => value === null);
  const shown = named.slice(0, Math.round(share * named.length));
  const rest = named.slice(shown.length);
  const values = left.values + rest.length;
  const ads = left.ads + rest.reduce((sum, one) => sum + one.ads, 0);
  const text = ({ value, ads: number }: ValueCount) => `${show(value ?? '')} ${number}`;
  const parts = [
    ...shown.map(text),
    ...(values > 0 ? [`${count(values, 'other')} ${ads}`] : []),
    ...(none ? [`none ${none.ads}`] : []),
  ];
  return parts.join(', ') || 'none';
}

function spreadText({ ads, unknown, min, median, p90, max }: Spread): string {
  if (ads === 0) return `Days running: unknown of ${count(unknown, 'ad')}`;
  return `Days running: min ${min}, median ${median}, 90th percentile ${p90}, max ${max}; unknown of ${count(unknown, 'ad')}`;
}
