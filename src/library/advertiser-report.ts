import type { Page } from '../api/schemas.ts';
import { type Json, list, numeric, object, text, withoutAbsent } from './loose-values.ts';
import { idText } from './public-archive.ts';

const maxDisclaimers = 500;

export const isReportRow = (value: Json): boolean => columnOf(value, /^page id$/i) !== undefined;

/**
 * The page of a row of the public archive's report. The report has a row for each disclaimer of a page, so a row
 * replaces the one with the same disclaimer and adds to the others. A record of the page itself knows its other fields
 * better.
 * @throws Error when the page has no id or too many disclaimers
 */
export function pageOfReport(row: Json, pageById: (id: string) => Page | undefined): Page {
  const pageId = idText('Page ID', columnOf(row, /^page id$/i)?.cell);
  if (!pageId) throw new Error('Page ID: missing, so the page has no identity');
  const earlier = pageById(pageId);
  const disclaimer = disclaimerOf(row);
  const others = list(earlier?.disclaimers)
    .map(object)
    .filter(({ bylines }) => bylines !== disclaimer.bylines);
  if (others.length >= maxDisclaimers) throw new Error(`Disclaimer: more than ${maxDisclaimers} for one page`);
  const disclaimers = [...others, disclaimer];
  if (earlier && !earlier.detailsEstimated) return { ...earlier, disclaimers };
  const pageName = text(columnOf(row, /^page name$/i)?.cell) ?? pageId;
  const adsAmount = disclaimers.reduce((sum, one) => sum + (numeric(one.adsAmount) ?? 0), 0);
  return { ...earlier, pageId, pageName, adsAmount, detailsEstimated: true, disclaimers };
}

/** What was spent under one disclaimer; small amounts are only known to be at most 100. */
function disclaimerOf(row: Json): Json {
  const spent = columnOf(row, /^amount spent/i);
  const [, upTo, amount] = /^([≤<]?)\s*(\d[\d.,\s]*)$/.exec(String(spent?.cell ?? '').trim()) ?? [];
  const adSpendMax = numeric(amount?.replace(/[,\s]/g, ''));
  return withoutAbsent({
    bylines: text(columnOf(row, /^disclaimer$/i)?.cell),
    adsAmount: numeric(columnOf(row, /^number of ads/i)?.cell),
    adSpendMin: upTo ? 0 : adSpendMax,
    adSpendMax,
    currency: /\(([A-Z]{3})\)/.exec(spent?.name ?? '')?.[1],
  });
}

function columnOf(row: Json, pattern: RegExp): { name: string; cell: unknown } | undefined {
  const name = Object.keys(row).find((key) => pattern.test(key));
  return name === undefined ? undefined : { name, cell: row[name] };
}
